"""Confirmation of a mapping by a person, with edits; invalid edits are refused with the reasons."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from domain.ingestion.columns.settings import read_settings
from domain.ingestion.mapping.columns import by_position, missing, parted, repeated, with_proven_settings
from domain.ingestion.model import Column, FeedSettings, MappingTier, Unmapped, UnmappedReason
from domain.ingestion.vocabulary.fields import (
    CARTON_PARTS,
    COMPLIANCE,
    DIMENSION_PARTS,
    FAMILIES,
    IGNORE,
    OFFER,
    PRODUCT,
    RUG_PARTS,
    VARIANT,
    is_field,
)
from domain.kernel.closeness import Closeness
from domain.kernel.errors import FieldError, InvalidRequest, Unprocessable
from domain.mappings.model import ColumnEdit, MappingStatus, SourceMapping

CUT = "…"
"""End mark of a shortened sample; shortened samples are not used as evidence."""
_UNITS = ("unit", "unit_by")
_MAX_LISTED = 10
_MAX_POSITIONS = 20
_MAX_QUOTED = 100
_NUMBERED_FIELDS = ("category_path.0", "option_name.1", "option_value.1", "incoming.0.quantity", "incoming.0.eta")
FIELDS = tuple(
    sorted(
        {
            *(PRODUCT | VARIANT | OFFER) - {"axes"},
            *_NUMBERED_FIELDS,
            *(f"compliance.{part}" for part in COMPLIANCE),
            *(f"dimensions.{part}" for part in DIMENSION_PARTS),
            *(f"rug.{part}" for part in RUG_PARTS),
            *(f"cartons.0.{part}" for part in CARTON_PARTS),
            "axes.Color",
            "axes.Size",
        }
    )
)
"""Names of all fields, for suggestions; a number in a field may have up to two digits, an axis any name."""
_MISSING_DETAILS = {
    "key": "no column identifies the item of a row; map one to sku, variant_key, product_key, gtin, mpn or title",
    "stock": "no column states stock; map one to quantity, availability, lead_time_days, discontinued or a price",
}


def confirm(
    mapping: SourceMapping, edits: Sequence[ColumnEdit], settings: FeedSettings, now: datetime
) -> SourceMapping:
    """Return the mapping as confirmed with the edits; the same object if it was confirmed already and nothing changes.

    Raises:
        InvalidRequest: An edit names an unknown column, field or setting, or a column twice.
        Unprocessable: Two columns have a field that only one can have, or a field that every run needs is not mapped.

    """
    closeness = Closeness()
    edited = _index_edits(mapping, edits, closeness)
    entries = {
        position: Unmapped(position, header, UnmappedReason.IGNORED) for position, header in enumerate(mapping.headers)
    } | by_position(mapping.columns, mapping.unmapped)
    faults: list[FieldError] = []
    for position, (place, edit) in edited.items():
        if edit.field is None:
            entries[position] = Unmapped(position, mapping.headers[position], UnmappedReason.IGNORED)
            continue
        entries[position], edit_faults = _apply_edit(edit, mapping.headers[position], entries[position], closeness)
        faults += [replace(fault, field=f"columns.{place}.{fault.field}") for fault in edit_faults]
    _refuse(faults)
    kept, unmapped = parted(entries)
    _refuse_repeats(kept)
    if lacking := missing(kept, settings.stream):
        detail = (
            "No items can be read with this mapping: " + "; ".join(_MISSING_DETAILS[name] for name in lacking) + "."
        )
        raise Unprocessable.of("columns", "required", detail)
    # Only units are taken from the samples. Formats of prices and dates are detected for each file, since they may change.
    whole = [
        [row[place] for row in mapping.samples if place < len(row) and not row[place].endswith(CUT)]
        for place in range(len(mapping.headers))
    ]
    units = {
        column.position: {name: value for name, value in column.settings.items() if name in _UNITS}
        for column in with_proven_settings(kept, whole, settings)
    }
    proven = [
        replace(column, settings={**units[column.position], **column.settings}) if column.position in edited else column
        for column in kept
    ]
    after = replace(mapping, columns=tuple(proven), unmapped=unmapped, status=MappingStatus.CONFIRMED)
    return after if after == mapping else replace(after, confirmed_at=now, updated_at=now)


def _refuse(faults: Sequence[FieldError]) -> None:
    if faults:
        raise InvalidRequest(faults[0].detail, fields=tuple(faults))


def _index_edits(
    mapping: SourceMapping, edits: Sequence[ColumnEdit], closeness: Closeness
) -> dict[int, tuple[int, ColumnEdit]]:
    """Return each edit and its index in the request, by column position. Raises InvalidRequest."""
    edited: dict[int, tuple[int, ColumnEdit]] = {}
    faults = []
    for place, edit in enumerate(edits):
        position = _find_position(mapping.headers, edit, closeness)
        if isinstance(position, FieldError):
            faults.append(replace(position, field=f"columns.{place}.{position.field}"))
        elif position in edited:
            detail = f"Column {position} is listed twice. Keep one of the two entries."
            faults.append(FieldError(f"columns.{place}", "duplicate", detail))
        else:
            edited[position] = (place, edit)
    _refuse(faults)
    return edited


def _find_position(headers: Sequence[str], edit: ColumnEdit, closeness: Closeness) -> int | FieldError:
    if edit.position is not None:
        if edit.position >= len(headers):
            detail = f"Must be between 0 and {len(headers) - 1}; positions start at 0."
            return FieldError("position", "too_large", detail)
        if edit.column in (None, headers[edit.position]):
            return edit.position
        detail = f"The header of column {edit.position} is {_quote(headers[edit.position])}."
        return FieldError("column", "invalid_value", detail)
    if edit.column is None:
        return FieldError("column", "required", "Identify the column by its position or its exact header.")
    found = [position for position, header in enumerate(headers) if header == edit.column]
    if len(found) == 1:
        return found[0]
    if found:
        listed = ", ".join(map(str, found[:_MAX_POSITIONS]))
        detail = f"Several columns have the header {_quote(edit.column)}. Give the position of one: {listed}."
        return FieldError("position", "required", detail)
    closest = _suggest(edit.column, headers, closeness)
    return FieldError("column", "invalid_value", f"No column has the header {_quote(edit.column)}{closest}.")


def _quote(text: str) -> str:
    return f"`{text[:_MAX_QUOTED]}`"


def _suggest(word: str, known: Sequence[str], closeness: Closeness) -> str:
    close = closeness.nearest(word, known)
    return f"; closest: {', '.join(map(_quote, close))}" if close else ""


def _apply_edit(
    edit: ColumnEdit, header: str, known: Column | Unmapped, closeness: Closeness
) -> tuple[Column, Sequence[FieldError]]:
    """Return the column with the edit applied, and the errors of the edit."""
    name = edit.field or ""
    prefix = name in FAMILIES and any(letter.isdigit() for letter in header)
    column = Column(known.position, header, name, {}, MappingTier.PERSON, prefix)
    if not is_field(name) or name == IGNORE:
        detail = f"The field {_quote(name)} does not exist{_suggest(name, FIELDS, closeness)}."
        return column, [FieldError("field", "invalid_value", detail)]
    before: dict[str, str] = {}
    given = edit.settings
    if isinstance(known, Column):
        before = {key: str(value) for key, value in known.settings.items()}
        given = before if given is None and known.field == name else given
    settings, bad = read_settings(name, given or {}, before)
    faults = [FieldError(f"settings.{fault.name[:_MAX_QUOTED]}", fault.code, fault.detail) for fault in bad]
    return replace(column, settings=settings), faults


def _refuse_repeats(columns: Sequence[Column]) -> None:
    repeats = []
    for name in sorted({column.field for column in repeated(columns)})[:_MAX_LISTED]:
        heads = [f"{_quote(column.column)} (position {column.position})" for column in columns if column.field == name]
        repeats.append(f"{name}: {', '.join(heads[:_MAX_LISTED])}")
    if repeats:
        detail = (
            "These fields can have only one column each, or one for each location. Keep one column of each and set the field of "
            f"the others to null or to another field. {'; '.join(repeats)}."
        )
        raise Unprocessable.of("columns", "duplicate", detail)
