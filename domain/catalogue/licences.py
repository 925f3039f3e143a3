"""Licences: what an organisation reads of another organisation's published catalogue (docs/conventions.md#licences)."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from domain.catalogue.model import LicenceBasis
from domain.events.model import LogPosition

FIELD_GROUPS = ("base", "stock", "retail", "trade")
"""Groups of an offer's fields."""
GROUP_BY_FIELD: Final[Mapping[str, str]] = {
    "quantity": "stock",
    "incoming": "stock",
    "lead_time_days": "stock",
    "msrp": "retail",
    "map": "retail",
    "price": "retail",
    "compare_at": "retail",
    "cost": "trade",
}
"""Field groups of an offer's fields; other fields are in `base`."""
NETWORK_GROUPS = frozenset({"base", "retail"})
"""Field groups of a published catalogue that every organisation may read."""
EVERYONE = "*"
"""Holder of the licence by which every organisation reads a published catalogue."""
NETWORK_VIEW = "network"
OWN_VIEW = "own"
"""View of the organisation to which a product belongs, with all fields."""
_VIEW_BY_EXTRA_GROUPS = {
    frozenset(): NETWORK_VIEW,
    frozenset({"stock"}): "stock",
    frozenset({"trade"}): "trade",
    frozenset({"stock", "trade"}): "all",
}
HIDDEN_FIELDS_BY_VIEW: Final[Mapping[str, frozenset[str]]] = {
    OWN_VIEW: frozenset(),
    **{
        view: frozenset(name for name, group in GROUP_BY_FIELD.items() if group not in NETWORK_GROUPS | groups)
        for groups, view in _VIEW_BY_EXTRA_GROUPS.items()
    },
}
"""Fields of an offer that a document of each view does not contain."""
UNSHAREABLE_BASES = frozenset({LicenceBasis.UNKNOWN, LicenceBasis.PUBLIC_DATA})
"""Legal bases of sources whose data never leaves its organisation."""


@dataclass(frozen=True, slots=True)
class Licence:
    """Permission to read a published catalogue.

    Attributes:
        catalogue: The ID of the catalogue.
        holder: The ID of the organisation that may read it; EVERYONE for all.
        groups: The field groups that are granted, in addition to NETWORK_GROUPS.
        view: The view whose documents the holder reads.
        created_at: When the licence was granted first, or the catalogue was published.
        withdrawn_at: When the whole catalogue was withdrawn; the licence of EVERYONE then remains for the events of the withdrawal.
    """

    catalogue: str
    holder: str
    groups: frozenset[str]
    view: str
    created_at: datetime
    withdrawn_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ReadableCatalogue:
    """Publisher and view by which an organisation reads another organisation's catalogue.

    Attributes:
        publisher: The ID of the organisation that published the catalogue; None without a licence.
        view: The view whose documents the organisation reads; None without a licence.
    """

    publisher: str | None = None
    view: str | None = None

    @property
    def is_readable(self) -> bool:
        """True if the organisation has a licence."""
        return self.publisher is not None

    def describe_state(self, position: LogPosition | None) -> str:
        """Return a text that changes whenever the licence or a published product changes.

        Args:
            position: Position up to which the publisher's events are in the network log.
        """
        at = position or LogPosition()
        return f"{self.publisher} {self.view} {at.epoch} {at.position}"


def find_view(groups: Collection[str]) -> str:
    """Return the view of a licence with these field groups."""
    return _VIEW_BY_EXTRA_GROUPS[frozenset(groups) - NETWORK_GROUPS]
