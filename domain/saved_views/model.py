"""Saved views, and the view with which a person's product list starts."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Final

from domain.audit.model import AuditedFields
from domain.kernel.names import MAX_NAME_CHARS
from domain.kernel.resource import settable
from domain.kernel.schema import boolean, text

MAX_QUERY_CHARS = 4_000
MAX_VIEWS = 50
"""Maximum number of a person's own views, and of an organisation's shared views."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedView:
    """Named state of the product list.

    Attributes:
        person: The ID of the person who created the view.
        query: The query string of the list.
        is_shared: Whether all members of the organisation have the view.
    """

    id: str
    person: str
    name: Annotated[str, settable(text("Low stock", max_length=MAX_NAME_CHARS), required=True)]
    query: Annotated[str, settable(text("availability=low_stock", max_length=MAX_QUERY_CHARS), required=True)]
    is_shared: Annotated[bool, settable(boolean(False))] = False
    version: int = 1
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPreferences:
    """Preferences of a person for the product list; `id` is the ID of the person.

    Attributes:
        default_view: The ID of the view with which the list starts; None for no view.
    """

    id: str
    default_view: str | None = None
    version: int = 1
    created_at: datetime
    updated_at: datetime


AUDITED_VIEW: Final = AuditedFields.from_resource(SavedView, "saved_view")
