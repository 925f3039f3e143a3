"""What a mapping becomes when a person confirms it with changes; whatever cannot be is refused with its reasons."""

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
"""The end of a sample that was shortened: it proves nothing."""
_UNITS = ("unit", "unit_by")
_MOST_NAMED = 10
_MOST_POSITIONS = 20
_SHOWN = 100
_NUMBERED = ("category_path.0", "option_name.1", "option_value.1", "incoming.0.quantity", "incoming.0.eta")
FIELDS = tuple(
    sorted(
        {
            *(PRODUCT | VARIANT | OFFER) - {"axes"},
            *_NUMBERED,
            *(f"compliance.{part}" for part in COMPLIANCE),
            *(f"dimensions.{part}" for part in DIMENSION_PARTS),
            *(f"rug.{part}" for part in RUG_PARTS),
            *(f"cartons.0.{part}" for part in CARTON_PARTS),
            "axes.Color",
            "axes.Size",
        }
    )
)
"""Fields by name; those with a number may have any of two digits, and an axis any name."""
_NEEDED = {
    "key": "no column says which item a row is about: map one to sku, variant_key, product_key, gtin, mpn or title",
    "stock": "no column states stock: map one to quantity, availability, lead_time_days, discontinued or a price",
}


def confirm(
    mapping: SourceMapping, edits: Sequence[ColumnEdit], settings: FeedSettings, now: datetime
) -> SourceMapping:
    """Return the mapping confirmed, with the edits made; the very same one where it was confirmed and nothing changes.

    Raises:
        InvalidRequest: for columns, fields and settings that there are not.
        Unprocessable: for a field that two columns cannot both have, and where a run could not do with what is mapped.

    """
    closeness = Closeness()
    edited = _by_position(mapping, edits, closeness)
    entries = {
        position: Unmapped(position, header, UnmappedReason.IGNORED) for position, header in enumerate(mapping.headers)
    } | by_position(mapping.columns, mapping.unmapped)
    faults: list[FieldError] = []
    for position, (place, edit) in edited.items():
        if edit.field is None:
            entries[position] = Unmapped(position, mapping.headers[position], UnmappedReason.IGNORED)
            continue
        entries[position], wrong = _edited(edit, mapping.headers[position], entries[position], closeness)
        faults += [replace(fault, field=f"columns.{place}.{fault.field}") for fault in wrong]
    _refuse(faults)
    kept, unmapped = parted(entries)
    _refuse_repeats(kept)
    if lacking := missing(kept, settings.stream):
        detail = "Nothing could be read by this mapping: " + "; ".join(_NEEDED[one] for one in lacking) + "."
        raise Unprocessable.of("columns", "required", detail)
    # How a file writes prices and dates is left for each file to prove: the next one may write otherwise.
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


def _by_position(
    mapping: SourceMapping, edits: Sequence[ColumnEdit], closeness: Closeness
) -> dict[int, tuple[int, ColumnEdit]]:
    """Return the edits with their place in the request, by the column they are about. Raises InvalidRequest."""
    edited: dict[int, tuple[int, ColumnEdit]] = {}
    faults = []
    for place, edit in enumerate(edits):
        position = _position(mapping.headers, edit, closeness)
        if isinstance(position, FieldError):
            faults.append(replace(position, field=f"columns.{place}.{position.field}"))
        elif position in edited:
            detail = f"Column {position} is named twice; keep one of the two."
            faults.append(FieldError(f"columns.{place}", "duplicate", detail))
        else:
            edited[position] = (place, edit)
    _refuse(faults)
    return edited


def _position(headers: Sequence[str], edit: ColumnEdit, closeness: Closeness) -> int | FieldError:
    if edit.position is not None:
        if edit.position >= len(headers):
            detail = f"Must lie between 0 and {len(headers) - 1}: columns are counted from 0."
            return FieldError("position", "too_large", detail)
        if edit.column in (None, headers[edit.position]):
            return edit.position
        detail = f"The header of column {edit.position} is {_shown(headers[edit.position])}."
        return FieldError("column", "invalid_value", detail)
    if edit.column is None:
        return FieldError("column", "required", "Name the column by its position or by its exact header.")
    found = [position for position, header in enumerate(headers) if header == edit.column]
    if len(found) == 1:
        return found[0]
    if found:
        listed = ", ".join(map(str, found[:_MOST_POSITIONS]))
        detail = f"Several columns are headed {_shown(edit.column)}; name one by its position: {listed}."
        return FieldError("position", "required", detail)
    closest = _closest(edit.column, headers, closeness)
    return FieldError("column", "invalid_value", f"No column is headed {_shown(edit.column)}{closest}.")


def _shown(text: str) -> str:
    return f"`{text[:_SHOWN]}`"


def _closest(word: str, known: Sequence[str], closeness: Closeness) -> str:
    close = closeness.nearest(word, known)
    return f"; closest: {', '.join(map(_shown, close))}" if close else ""


def _edited(
    edit: ColumnEdit, header: str, known: Column | Unmapped, closeness: Closeness
) -> tuple[Column, Sequence[FieldError]]:
    """Return the column as its edit says, and what is wrong with that."""
    name = edit.field or ""
    prefix = name in FAMILIES and any(letter.isdigit() for letter in header)
    column = Column(known.position, header, name, {}, MappingTier.PERSON, prefix)
    if not is_field(name) or name == IGNORE:
        detail = f"There is no field {_shown(name)}{_closest(name, FIELDS, closeness)}."
        return column, [FieldError("field", "invalid_value", detail)]
    before: dict[str, str] = {}
    given = edit.settings
    if isinstance(known, Column):
        before = {key: str(value) for key, value in known.settings.items()}
        given = before if given is None and known.field == name else given
    settings, bad = read_settings(name, given or {}, before)
    faults = [FieldError(f"settings.{fault.name[:_SHOWN]}", fault.code, fault.detail) for fault in bad]
    return replace(column, settings=settings), faults


def _refuse_repeats(columns: Sequence[Column]) -> None:
    said = []
    for name in sorted({column.field for column in repeated(columns)})[:_MOST_NAMED]:
        heads = [f"{_shown(one.column)} (position {one.position})" for one in columns if one.field == name]
        said.append(f"{name}: {', '.join(heads[:_MOST_NAMED])}")
    if said:
        detail = (
            "Several columns cannot be one of these fields, at least not at one location. Keep one of each, and set the field of "
            f"others to null or to another one. {'; '.join(said)}."
        )
        raise Unprocessable.of("columns", "duplicate", detail)
