"""Confirmation of a column mapping by a user, with edits of columns; invalid edits raise errors with reasons."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from domain.ingestion.columns.settings import validate_settings
from domain.ingestion.mapping.columns import (
    add_inferred_settings,
    combine_entries,
    find_missing_data,
    find_repeated_columns,
    split_entries,
)
from domain.ingestion.model import Column, FeedSettings, MappingTier, UnmappedColumn, UnmappedReason
from domain.ingestion.vocabulary.fields import (
    CARTON_PARTS,
    COMBINED_FIELDS,
    COMPLIANCE,
    DIMENSION_PARTS,
    IGNORE,
    OFFER,
    PRODUCT,
    RUG_PARTS,
    VARIANT,
    is_field,
)
from domain.kernel.errors import FieldError, InvalidRequest, Unprocessable
from domain.kernel.suggestions import WordSuggester
from domain.mappings.model import ColumnEdit, MappingStatus, SourceMapping

ELLIPSIS = "…"
"""The last character of a shortened sample; shortened samples are not used to determine units."""
_UNITS = ("unit", "unit_by")
_MAX_LISTED = 10
_MAX_POSITIONS = 20
_MAX_QUOTED = 100
_NUMBERED_FIELDS = ("category_path.0", "option_name.1", "option_value.1", "incoming.0.quantity", "incoming.0.eta")
FIELD_NAMES = tuple(
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
"""Names of fields, for suggestions; fields with a number or an axis name are represented by examples (`axes.Color`)."""
_MISSING_DETAILS = {
    "key": "no column identifies the item of a row; map one to sku, variant_key, product_key, gtin, mpn or title",
    "stock": "no column contains stock or a price; map one to quantity, availability, lead_time_days, discontinued or a price",
}


def apply_confirmation(
    mapping: SourceMapping, edits: Sequence[ColumnEdit], settings: FeedSettings, now: datetime
) -> SourceMapping:
    """Return the confirmed mapping with the edits; return the same object if nothing changes.

    Raises:
        InvalidRequest: An edit has an unknown column, field or setting, or two edits have the same column.
        Unprocessable: Several columns have a field that only one column can have, or required data has no column
            (`find_missing_data`).
    """
    suggester = WordSuggester()
    edited = _index_edits(mapping, edits, suggester)
    entries = {
        position: UnmappedColumn(position, header, UnmappedReason.IGNORED)
        for position, header in enumerate(mapping.headers)
    } | combine_entries(mapping.columns, mapping.unmapped)
    faults: list[FieldError] = []
    for position, (index, edit) in edited.items():
        if edit.field is None:
            entries[position] = UnmappedColumn(position, mapping.headers[position], UnmappedReason.IGNORED)
            continue
        entries[position], edit_faults = _apply_edit(edit, mapping.headers[position], entries[position], suggester)
        faults += [replace(fault, field=f"columns.{index}.{fault.field}") for fault in edit_faults]
    _raise_field_errors(faults)
    columns, unmapped = split_entries(entries)
    _check_repeated_fields(columns)
    if missing := find_missing_data(columns, settings.stream):
        detail = (
            "No items can be read with this mapping: " + "; ".join(_MISSING_DETAILS[name] for name in missing) + "."
        )
        raise Unprocessable.for_field("columns", "required", detail)
    # Only units are taken from the samples. Formats of prices and dates are detected for each file, since they may change.
    samples_by_column = [
        [row[index] for row in mapping.samples if index < len(row) and not row[index].endswith(ELLIPSIS)]
        for index in range(len(mapping.headers))
    ]
    units = {
        column.position: {name: value for name, value in column.settings.items() if name in _UNITS}
        for column in add_inferred_settings(columns, samples_by_column, settings)
    }
    completed = [
        replace(column, settings={**units[column.position], **column.settings}) if column.position in edited else column
        for column in columns
    ]
    after = replace(mapping, columns=tuple(completed), unmapped=unmapped, status=MappingStatus.CONFIRMED)
    return after if after == mapping else replace(after, confirmed_at=now, updated_at=now)


def _raise_field_errors(errors: Sequence[FieldError]) -> None:
    """Raise InvalidRequest with the errors; do nothing if there are none."""
    if errors:
        raise InvalidRequest(errors[0].detail, fields=tuple(errors))


def _index_edits(
    mapping: SourceMapping, edits: Sequence[ColumnEdit], suggester: WordSuggester
) -> dict[int, tuple[int, ColumnEdit]]:
    """Return each edit with its index in the request, by the position of the edited column.

    Raises InvalidRequest if a column is unknown or edited twice.
    """
    edited: dict[int, tuple[int, ColumnEdit]] = {}
    faults = []
    for index, edit in enumerate(edits):
        position = _find_position(mapping.headers, edit, suggester)
        if isinstance(position, FieldError):
            faults.append(replace(position, field=f"columns.{index}.{position.field}"))
        elif position in edited:
            detail = f"Column {position} is listed twice. Keep one of the two entries."
            faults.append(FieldError(f"columns.{index}", "duplicate", detail))
        else:
            edited[position] = (index, edit)
    _raise_field_errors(faults)
    return edited


def _find_position(headers: Sequence[str], edit: ColumnEdit, suggester: WordSuggester) -> int | FieldError:
    """Return the position of the column that an edit identifies, or the error if there is not exactly one."""
    if edit.position is not None:
        if edit.position >= len(headers):
            detail = f"The position must be between 0 and {len(headers) - 1}. The first column has the position 0."
            return FieldError("position", "too_large", detail)
        if edit.column in (None, headers[edit.position]):
            return edit.position
        detail = (
            f"The column at position {edit.position} has the header {_quote(headers[edit.position])}. "
            "Correct the position or the header."
        )
        return FieldError("column", "invalid_value", detail)
    if edit.column is None:
        return FieldError(
            "column",
            "required",
            "The entry does not name a column. Enter the position or the exact header of the column.",
        )
    found = [position for position, header in enumerate(headers) if header == edit.column]
    if len(found) == 1:
        return found[0]
    if found:
        listed = ", ".join(map(str, found[:_MAX_POSITIONS]))
        detail = f"Several columns have the header {_quote(edit.column)}. Identify the column by its position, one of: {listed}."
        return FieldError("position", "required", detail)
    closest = _build_suggestion(edit.column, headers, suggester)
    return FieldError("column", "invalid_value", f"No column has the header {_quote(edit.column)}{closest}.")


def _quote(text: str) -> str:
    """Return a text in backticks for a message, truncated to 100 characters."""
    return f"`{text[:_MAX_QUOTED]}`"


def _build_suggestion(word: str, known_words: Sequence[str], suggester: WordSuggester) -> str:
    """Return the end of an error sentence with the known words that are closest to a word; empty without such words."""
    close = suggester.find_similar(word, known_words)
    return f"; closest: {', '.join(map(_quote, close))}" if close else ""


def _apply_edit(
    edit: ColumnEdit, header: str, entry: Column | UnmappedColumn, suggester: WordSuggester
) -> tuple[Column, Sequence[FieldError]]:
    """Return the column with an edit applied, and the errors of the edit."""
    name = edit.field or ""
    is_prefix = name in COMBINED_FIELDS and any(letter.isdigit() for letter in header)
    column = Column(entry.position, header, name, {}, MappingTier.PERSON, is_prefix)
    if not is_field(name) or name == IGNORE:
        detail = f"The field {_quote(name)} does not exist{_build_suggestion(name, FIELD_NAMES, suggester)}."
        return column, [FieldError("field", "invalid_value", detail)]
    before: dict[str, str] = {}
    requested, values, ignored = edit.settings, edit.values, edit.ignored_problems
    if isinstance(entry, Column):
        before = {key: str(value) for key, value in entry.settings.items()}
        if entry.field == name:
            requested = before if requested is None else requested
            values = entry.values if values is None else values
            ignored = entry.ignored_problems if ignored is None else ignored
    settings, invalid = validate_settings(name, requested or {}, before)
    faults = [FieldError(f"settings.{fault.name[:_MAX_QUOTED]}", fault.code, fault.detail) for fault in invalid]
    kinds = tuple(sorted(set(ignored or ())))
    return replace(column, settings=settings, values=dict(values or {}), ignored_problems=kinds), faults


def _check_repeated_fields(columns: Sequence[Column]) -> None:
    """Raise Unprocessable if several columns have a field that only one column can have."""
    repeats = []
    for name in sorted({column.field for column in find_repeated_columns(columns)})[:_MAX_LISTED]:
        heads = [f"{_quote(column.column)} (position {column.position})" for column in columns if column.field == name]
        repeats.append(f"{name}: {', '.join(heads[:_MAX_LISTED])}")
    if repeats:
        detail = (
            "Each of these fields can have only one column, or one for each location. Set the field of the other columns to null "
            f"or to another field. {'; '.join(repeats)}."
        )
        raise Unprocessable.for_field("columns", "duplicate", detail)
