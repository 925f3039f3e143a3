"""Column mappings of sources: the field of each column of one header set, and the confirmation by users."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from domain.audit.model import Change
from domain.catalogue.model import Stream
from domain.ingestion.mapping.columns import combine_entries, split_entries
from domain.ingestion.model import Column, MappingTier, UnmappedColumn, UnmappedReason
from domain.kernel.enums import StoredEnum
from domain.kernel.json_values import to_json_value
from domain.kernel.paging import Filter
from domain.kernel.problems import ProblemKind

MAX_MAPPINGS = 200
"""Maximum number of mappings of a source; beyond it, the oldest unconfirmed mappings are deleted."""
MAX_CONFIRMED_MAPPINGS = 200
"""Maximum number of confirmed mappings that a run uses from its own source, and again from all other sources."""
MAX_REPLACEMENTS = 200
"""Maximum number of replacements of cells (`Column.values`) of a column."""


class MappingStatus(StoredEnum):
    """Status of a mapping: proposed by a run, or confirmed by a user."""

    PROPOSED = "proposed"
    CONFIRMED = "confirmed"


@dataclass(frozen=True, slots=True)
class SourceMapping:
    """Column mapping of one header set in files of a source.

    Attributes:
        digest: The hash that identifies the headers (domain.ingestion.mapping.learned.header_digest).
        stream: The stream of the last run that proposed the mapping.
        headers: The headers in their order.
        samples: A few rows below the headers, with shortened cells.
        columns: The columns that are imported, with their fields and settings.
        unmapped: The columns that are not imported, with the reasons.
        question_positions: The positions of the columns that were already sent to a language model.
    """

    id: str
    source: str
    digest: str
    stream: Stream
    status: MappingStatus
    headers: tuple[str, ...]
    samples: tuple[tuple[str, ...], ...]
    columns: tuple[Column, ...]
    unmapped: tuple[UnmappedColumn, ...]
    created_at: datetime
    updated_at: datetime
    confirmed_at: datetime | None = None
    question_positions: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ColumnEdit:
    """Edit of one column by a user; the column is identified by its position or its exact header.

    Attributes:
        field: The field of the column; None excludes the column from the import.
        position: The position of the column, from 0.
        column: The exact header of the column.
        settings: The settings of the column. None keeps the settings if the field does not change; otherwise, they
            are determined from the samples.
        values: The replacements of cells (`Column.values`); None keeps them if the field does not change.
        ignored_problems: The kinds of problems that are not reported; None keeps them if the field does not change.
    """

    field: str | None
    position: int | None = None
    column: str | None = None
    settings: Mapping[str, str] | None = None
    values: Mapping[str, str] | None = None
    ignored_problems: tuple[ProblemKind, ...] | None = None


@dataclass(frozen=True, slots=True)
class MappingConfirmation:
    """Request of a user to confirm a mapping, with edits of some columns."""

    columns: tuple[ColumnEdit, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class MappingFilter(Filter):
    """Condition of a list of mappings: the ID of the source, or None for all sources."""

    source: str | None = None


def build_confirmation_change(before: SourceMapping, after: SourceMapping) -> Change:
    """Return the change for the audit log when a mapping is confirmed: the status, and the columns that differ."""
    old, new = _build_json_columns(before), _build_json_columns(after)
    differing = [position for position in range(len(after.headers)) if old.get(position) != new.get(position)]
    return Change(
        "mapping",
        after.id,
        "update",
        _build_audit_data(before, old, differing),
        _build_audit_data(after, new, differing),
    )


def _build_json_columns(mapping: SourceMapping) -> dict[int, Any]:
    """Return each column as JSON values, by position."""
    entries = combine_entries(mapping.columns, mapping.unmapped)
    return {
        position: {**to_json_value(entry), "field": getattr(entry, "field", None)}
        for position, entry in entries.items()
    }


def restore_mapping(mapping: SourceMapping, audited_values: Mapping[str, Any], now: datetime) -> SourceMapping:
    """Return the mapping with the status and the columns that it had before an audited change.

    Args:
        mapping: The mapping.
        audited_values: The values before the change, from the audit entry.
        now: The current time.
    """
    entries = combine_entries(mapping.columns, mapping.unmapped)
    for entry in audited_values.get("columns", ()):
        if entry["field"] is not None:
            kinds = tuple(map(ProblemKind, entry.get("ignored_problems", ())))
            entries[entry["position"]] = Column(
                **{**entry, "tier": MappingTier(entry["tier"]), "ignored_problems": kinds}
            )
        elif "reason" in entry:
            entries[entry["position"]] = UnmappedColumn(
                entry["position"], entry["column"], UnmappedReason(entry["reason"])
            )
        else:
            entries.pop(entry["position"], None)
    columns, unmapped = split_entries(entries)
    return replace(
        mapping,
        status=MappingStatus(audited_values["status"]),
        columns=columns,
        unmapped=unmapped,
        confirmed_at=mapping.confirmed_at if audited_values["status"] == MappingStatus.CONFIRMED else None,
        updated_at=now,
    )


def _build_audit_data(
    mapping: SourceMapping, columns: Mapping[int, Any], differing_positions: Sequence[int]
) -> dict[str, Any]:
    """Return the status of a mapping and its differing columns, as stored in audit entries."""
    data: dict[str, Any] = {"status": mapping.status}
    if differing_positions:
        data["columns"] = [
            columns.get(position, {"position": position, "column": mapping.headers[position], "field": None})
            for position in differing_positions
        ]
    return data
