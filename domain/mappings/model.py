"""Mapping of one header set of a source, its confirmation and the limits on stored mappings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from domain.audit.model import Change
from domain.catalogue.model import Stream
from domain.ingestion.mapping.columns import by_position, parted
from domain.ingestion.model import Column, MappingTier, Unmapped, UnmappedReason
from domain.kernel.enums import StoredEnum
from domain.kernel.paging import Filter
from domain.kernel.plain import plain

KEPT = 200
"""Maximum number of mappings of a source; beyond it the oldest unconfirmed ones are deleted."""
KNOWN = 200
"""Maximum number of confirmed mappings of a source that a run uses, and of its organisation's other sources."""


class MappingStatus(StoredEnum):
    """State of a mapping: proposed by a run, or confirmed by a person."""

    PROPOSED = "proposed"
    CONFIRMED = "confirmed"


@dataclass(frozen=True, slots=True)
class SourceMapping:
    """Column mapping of one header set that files of a source have had.

    `digest` identifies the header set (ingestion.mapping.learned.digest_of). `stream` is that of the last run that proposed
    the mapping. `samples` are a few rows below the headers, with shortened cells. `asked` are the positions of the columns
    about which a model was asked.
    """

    id: str
    source: str
    digest: str
    stream: Stream
    status: MappingStatus
    headers: tuple[str, ...]
    samples: tuple[tuple[str, ...], ...]
    columns: tuple[Column, ...]
    unmapped: tuple[Unmapped, ...]
    created_at: datetime
    updated_at: datetime
    confirmed_at: datetime | None = None
    asked: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ColumnEdit:
    """Edit of one column, identified by its position or its exact header; a `field` of None excludes the column.

    Without `settings` the column keeps its settings if its field is unchanged; otherwise they follow from its samples.
    """

    field: str | None
    position: int | None = None
    column: str | None = None
    settings: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Confirmation:
    """Request to confirm a mapping, with edits of some columns."""

    columns: tuple[ColumnEdit, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class MappingFilter(Filter):
    """Filter of the list of mappings."""

    source: str | None = None


def confirmed(before: SourceMapping, after: SourceMapping) -> Change:
    """Return the audit change of a confirmation: the status and the columns that changed."""
    old, new = _plain_entries(before), _plain_entries(after)
    differing = [position for position in range(len(after.headers)) if old.get(position) != new.get(position)]
    return Change(
        "mapping", after.id, "update", _audit_data(before, old, differing), _audit_data(after, new, differing)
    )


def _plain_entries(mapping: SourceMapping) -> dict[int, Any]:
    entries = by_position(mapping.columns, mapping.unmapped)
    return {position: {**plain(entry), "field": getattr(entry, "field", None)} for position, entry in entries.items()}


def put_back(mapping: SourceMapping, before: Mapping[str, Any], now: datetime) -> SourceMapping:
    """Return the mapping with the status and columns of an audit entry's `before`."""
    entries = by_position(mapping.columns, mapping.unmapped)
    for entry in before.get("columns", ()):
        if entry["field"] is not None:
            entries[entry["position"]] = Column(**{**entry, "tier": MappingTier(entry["tier"])})
        elif "reason" in entry:
            entries[entry["position"]] = Unmapped(entry["position"], entry["column"], UnmappedReason(entry["reason"]))
        else:
            entries.pop(entry["position"], None)
    columns, unmapped = parted(entries)
    return replace(
        mapping,
        status=MappingStatus(before["status"]),
        columns=columns,
        unmapped=unmapped,
        confirmed_at=mapping.confirmed_at if before["status"] == MappingStatus.CONFIRMED else None,
        updated_at=now,
    )


def _audit_data(mapping: SourceMapping, columns: Mapping[int, Any], differing: Sequence[int]) -> dict[str, Any]:
    data: dict[str, Any] = {"status": mapping.status}
    if differing:
        data["columns"] = [
            columns.get(place, {"position": place, "column": mapping.headers[place], "field": None})
            for place in differing
        ]
    return data
