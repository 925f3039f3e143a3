"""The mapping of one header set of a source, what people confirm of it, and how much of it is kept."""

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
"""Header sets that are kept for a source; beyond that the oldest ones that nobody confirmed go."""
KNOWN = 200
"""Confirmed header sets of a source, and as many of the other sources of its organisation, that its runs go by."""


class MappingStatus(StoredEnum):
    """Whether a person has confirmed it."""

    PROPOSED = "proposed"
    CONFIRMED = "confirmed"


@dataclass(frozen=True, slots=True)
class SourceMapping:
    """What the columns of one header set mean, of all those that a source's files have had.

    `digest` tells the header set (ingestion.mapping.learned.digest_of); `stream` is that of the run which last proposed it;
    `samples` are a few rows below the headers, their cells shortened; `asked` the positions that a model was asked about.
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
    """What a person says of one column, named by its position or by its exact header; None for `field`: not to be read.

    Without `settings` those of the column stay if its field does, and are worked out from its samples otherwise.
    """

    field: str | None
    position: int | None = None
    column: str | None = None
    settings: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Confirmation:
    """What a person confirms: the mapping as it is, but for these columns."""

    columns: tuple[ColumnEdit, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class MappingFilter(Filter):
    """Which mappings a list shows."""

    source: str | None = None


def confirmed(before: SourceMapping, after: SourceMapping) -> Change:
    """The audit entry of a confirmation: the status, and the columns that changed."""
    old, new = _read(before), _read(after)
    differing = [position for position in range(len(after.headers)) if old.get(position) != new.get(position)]
    return Change("mapping", after.id, "update", _told(before, old, differing), _told(after, new, differing))


def _read(mapping: SourceMapping) -> dict[int, Any]:
    entries = by_position(mapping.columns, mapping.unmapped)
    return {position: {**plain(one), "field": getattr(one, "field", None)} for position, one in entries.items()}


def put_back(mapping: SourceMapping, before: Mapping[str, Any], now: datetime) -> SourceMapping:
    """The mapping with what an audit entry says was before: its status, and the columns that were otherwise."""
    entries = by_position(mapping.columns, mapping.unmapped)
    for one in before.get("columns", ()):
        if one["field"] is not None:
            entries[one["position"]] = Column(**{**one, "tier": MappingTier(one["tier"])})
        elif "reason" in one:
            entries[one["position"]] = Unmapped(one["position"], one["column"], UnmappedReason(one["reason"]))
        else:
            entries.pop(one["position"], None)
    columns, unmapped = parted(entries)
    return replace(
        mapping,
        status=MappingStatus(before["status"]),
        columns=columns,
        unmapped=unmapped,
        confirmed_at=mapping.confirmed_at if before["status"] == MappingStatus.CONFIRMED else None,
        updated_at=now,
    )


def _told(mapping: SourceMapping, columns: Mapping[int, Any], differing: Sequence[int]) -> dict[str, Any]:
    told: dict[str, Any] = {"status": mapping.status}
    if differing:
        told["columns"] = [
            columns.get(place, {"position": place, "column": mapping.headers[place], "field": None})
            for place in differing
        ]
    return told
