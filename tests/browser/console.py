"""Console on its own server, with data on every page."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from adapters.files.workspaces import FileWorkspaces
from tests.browser.service import run_service
from tests.http.application import ApplicationHarness
from tests.support.console_seed import SeededOrganisation, seed_console
from tests.support.memory.limits import UnlimitedRates
from tests.support.readers import create_in_process_readers
from tests.support.services import ExternalFakes

TITLES = (
    "Oak dining table",
    "Walnut lounge chair with a rather long name that has to break somewhere",
    "Linen sofa",
    "Brass lamp",
)


@dataclass
class LiveConsole:
    """Address of the console, cookies and data."""

    address: str
    cookie: str
    empty_cookie: str
    """Cookie of an owner of an empty organisation."""
    data: SeededOrganisation

    def open_context(self, browser: Any, cookie: str | None = None, **more: Any) -> Any:
        """Open a browser context with a signed-in person."""
        made = browser.new_context(reduced_motion="reduce", **more)
        made.add_cookies([{"name": "joinery", "value": cookie or self.cookie, "url": self.address}])
        return made


@contextmanager
def run_console() -> Iterator[LiveConsole]:
    """Run the console until the context ends."""
    outside = ExternalFakes()
    given: dict[str, Any] = {
        "connectors": outside.connectors,
        "objects": outside.objects,
        "limits": UnlimitedRates(),  # the clock stands still, so buckets are not refilled
        "feed_readers": create_in_process_readers(outside.connectors),
    }
    with run_service(_prepare, workspaces=FileWorkspaces(), **given) as made:
        yield LiveConsole(made.address, **made.prepared)


async def _prepare(application: ApplicationHarness) -> dict[str, Any]:
    made, owner, newcomer = (
        await seed_console(application, TITLES),
        await application.open_browser(),
        await application.open_browser("Oak"),
    )
    owner_cookie, newcomer_cookie = (next(iter(one.cookies.values())) for one in (owner, newcomer))
    return {"cookie": owner_cookie, "empty_cookie": newcomer_cookie, "data": made}
