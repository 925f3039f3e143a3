"""Writes the package's smaller modules: the clients with their groups, the events, and what one imports."""

from typing import Final

from entrypoints.clients.generating.model import Group, Json, groups_of, known_types
from entrypoints.clients.generating.naming import type_name
from entrypoints.clients.generating.shared_tables import error_names
from entrypoints.clients.version import VERSION

_EVENTS: Final = '''"""Events by their types, and webhooks. Generated from the API's description; do not edit."""

from collections.abc import Iterable
from typing import Final, TypeGuard

from .runtime.signatures import HeaderFields, verified
from .types import Event, TypedEvent

KNOWN_TYPES: Final = frozenset(
    {{
{types}    }}
)
"""The types that this package knows. Newer ones come without a new version of the API: ignore what you do not know."""


def is_typed(event: Event | TypedEvent) -> TypeGuard[TypedEvent]:
    """Whether the event's type is one that this package knows."""
    return event["type"] in KNOWN_TYPES


def verify_webhook(
    body: bytes | str, headers: HeaderFields, secret: str | Iterable[str], tolerance: float = 300.0
) -> TypedEvent:
    """The event of a webhook that one of the secrets has signed (Standard Webhooks 1.0.0).

    `body` is what came, before any parsing; while a secret is being rotated give both. A type may be newer than this
    package: ignore what you do not know. Raises WebhookVerificationError when a header is missing, the time is more than
    `tolerance` seconds off, or no signature fits; ValueError when a secret is not valid.
    """
    event: TypedEvent = verified(body, headers, secret, tolerance)
    return event
'''
_CLIENT: Final = '''"""The clients. Generated from the API's description; do not edit."""

from typing import Final

from . import async_operations, operations
from .runtime.clients import AsyncClient, SyncClient
from .runtime.core import Core
from .runtime.driving import AsyncDriver, Driver

API_VERSION: Final = "{version}"
"""The dated version of the API that these types are those of."""


class Joinery(SyncClient):
    """The API, with one attribute for each area. Close it, or use it with `with`. Threads may share it."""

    _version = API_VERSION
    _agent = "joinery-client-python/{package}"

{sync}
    def _mount(self, driver: Driver, core: Core) -> None:
{mount_sync}

class AsyncJoinery(AsyncClient):
    """The API for asyncio, with one attribute for each area. Close it, or use it with `async with`."""

    _version = API_VERSION
    _agent = "joinery-client-python/{package}"

{awaited}
    def _mount(self, driver: AsyncDriver, core: Core) -> None:
{mount_async}'''


def python_events(document: Json) -> str:
    """The module `events.py`."""
    return _EVENTS.format(types="".join(f'        "{name}",\n' for name in known_types(document)))


def python_client(document: Json) -> str:
    """The module `client.py`."""
    groups = groups_of(document)
    return _CLIENT.format(
        version=document["info"]["version"],
        package=VERSION,
        sync=_attributes(groups, "operations."),
        mount_sync=_mounted(groups, "operations."),
        awaited=_attributes(groups, "async_operations.Async"),
        mount_async=_mounted(groups, "async_operations.Async"),
    )


def _attributes(groups: tuple[Group, ...], place: str) -> str:
    return "".join(f"    {group.name}: {place}{type_name(group.name)}\n" for group in groups)


def _mounted(groups: tuple[Group, ...], place: str) -> str:
    return "".join(f"        self.{group.name} = {place}{type_name(group.name)}(driver, core)\n" for group in groups)


def python_init(document: Json) -> str:
    """The package's own module."""
    names = [
        "API_VERSION",
        "AsyncFollower",
        "AsyncJoinery",
        "AsyncListing",
        "CursorStore",
        "Follower",
        "Joinery",
        "Listing",
        "KNOWN_TYPES",
        "is_typed",
        "types",
        "verify_webhook",
    ]
    listed = "".join(f'    "{name}",\n' for name in sorted([*names, *error_names()]))
    errors = "".join(f"    {name},\n" for name in error_names())
    first = document["info"]["title"]
    return (
        f'"""The Python client of the {first}. Generated; do not edit."""\n\n'
        "from . import types\n"
        "from .client import API_VERSION, AsyncJoinery, Joinery\n"
        "from .events import KNOWN_TYPES, is_typed, verify_webhook\n"
        f"from .runtime.errors import (\n{errors})\n"
        "from .runtime.following import AsyncFollower, Follower\n"
        "from .runtime.paging import AsyncListing, Listing\n"
        "from .runtime.steps import CursorStore\n\n"
        f'__version__ = "{VERSION}"\n\n__all__ = [\n{listed}]\n'
    )
