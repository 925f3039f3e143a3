"""Editor of column mappings: the form of a table's columns, the edits that it contains, and fixes of groups of problems."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from typing import Any, Final, NamedTuple

from adapters.api_json.mappings import CONFIRMATION_BODY
from domain.catalogue.model import Stream
from domain.ingestion.columns.settings import LENGTH_UNITS, WEIGHT_UNITS, find_settings_for_field
from domain.ingestion.mapping.columns import SECOND_FIELD, allows_several_columns
from domain.ingestion.mapping.learned import ConfirmedMapping
from domain.ingestion.model import Column, FeedSettings, MappingTier
from domain.ingestion.vocabulary.fields import is_field, split_field
from domain.kernel.errors import DomainError
from domain.kernel.json_values import to_json_value
from domain.kernel.money import EXPONENTS
from domain.kernel.problems import ProblemKind
from domain.mappings.column_preview import SampleResult, preview_column
from domain.mappings.confirmation import apply_confirmation
from domain.mappings.model import MAX_REPLACEMENTS, SourceMapping
from domain.mappings.problem_groups import Fix, ProblemGroup, group_problems
from domain.runs.usecases.snapshot_views import FeedPreview
from entrypoints.console.rendering import LABELS, format_field_part, list_field_labels
from entrypoints.console.request import FormData
from entrypoints.console.translation import get_current_locale, gettext

MAX_EDITOR_COLUMNS = 50
"""Maximum number of columns that a form shows; a mapping with more columns has several pages."""
MIN_CERTAIN_CONFIDENCE = 0.8
"""Confidence from which a column is shown closed, after the columns to review."""
MAX_SHOWN_GROUPS = 40
"""Maximum number of groups of problems that a page shows."""
DEFAULT_SETTINGS: Final = ("currency", "decimal", "default_length_unit", "default_weight_unit")
"""Settings of the source that apply to all columns, as their names in forms."""
_KINDS = frozenset(ProblemKind)
_VALUES_BY_DEFAULT: Final[Mapping[str, Sequence[str]]] = {
    "decimal": ("dot", "comma"),
    "default_length_unit": LENGTH_UNITS,
    "default_weight_unit": WEIGHT_UNITS,
}
_ORDERS = tuple(order for order in find_settings_for_field("dimensions")["order"].choices if len(order) == 3)
"""Orders of three dimensions that a fix can set."""
_INTERNAL_SETTINGS = ("unit_by", "alternative", "flag", SECOND_FIELD)
"""Settings that explain a proposal. They are dropped if a person changes the settings of a column."""


class ColumnChoice(NamedTuple):
    """Column of a mapping as a form states it.

    Attributes:
        text: The field as entered: its label or its name.
        part: The number or name of a field with a variable part, such as the name of an option.
        settings: The settings by name, without internal ones.
        values: The replacements of cells.
        ignored_problems: The kinds of problems that are not reported.
    """

    text: str
    part: str
    settings: Mapping[str, str]
    values: Mapping[str, str]
    ignored_problems: Sequence[str]


class SettingField(NamedTuple):
    """Input for a setting of a column; without choices, it is a text field. `has_list` refers to a shared list of choices."""

    name: str
    title: str
    value: str
    choices: Sequence[tuple[str, str]]
    has_list: bool = False


@dataclass(frozen=True, slots=True)
class EditorColumn:
    """Column in the editor.

    Attributes:
        key: The table's number and the column's position, as in the names of form fields (`0.3`).
        column: The column as stored or proposed; None if it is not imported.
        reason: Why the column is not imported, or None.
        choice: What the form states about the column.
        settings: The inputs for the settings of the field.
        part_title: The label of the input for the variable part of the field; empty if the field has none.
        samples: The first cells, without repetitions.
        readings: How the cells are read with the choice.
        error: Why the choice is invalid; empty if it is valid.
    """

    key: str
    header: str
    column: Column | None
    reason: str | None
    choice: ColumnChoice
    settings: Sequence[SettingField]
    part_title: str
    samples: Sequence[str]
    readings: Sequence[SampleResult]
    error: str = ""

    @property
    def needs_review(self) -> bool:
        """True if a person should check the column before the others."""
        is_proposed = self.column is not None and self.column.tier not in (MappingTier.PERSON, MappingTier.LEARNED)
        return bool(self.error) or (
            is_proposed and self.column is not None and self.column.confidence < MIN_CERTAIN_CONFIDENCE
        )

    @property
    def section(self) -> str:
        """The part of the editor in which the column is shown: `review`, `unmapped` or `mapped`."""
        return "review" if self.needs_review else "mapped" if self.column is not None else "unmapped"


@dataclass(frozen=True, slots=True)
class EditorTable:
    """Table in the editor, with the edits of a form.

    Attributes:
        number: The number of the table in names of form fields.
        sheet: The name of the sheet, or None.
        mapping: The mapping as stored or proposed.
        edited: The mapping with the edits, or None if the edits are invalid.
        edits: The edits as in the body of the API's confirmation.
        columns: The columns that the form shows.
        start: The position of the first of these columns.
        error: Why the edits together are invalid; empty if they are valid.
    """

    number: int
    sheet: str | None
    mapping: SourceMapping
    edited: SourceMapping | None
    edits: Sequence[Mapping[str, Any]]
    columns: Sequence[EditorColumn]
    start: int
    error: str = ""

    @property
    def confirmed(self) -> tuple[ConfirmedMapping, ...]:
        """The mapping with the edits, as a mapping that a run uses; empty if the edits are invalid."""
        one = self.edited
        return (ConfirmedMapping(one.digest, True, one.headers, one.columns, one.unmapped),) if one else ()

    @property
    def lacks_title(self) -> bool:
        """True if no column of a catalogue is mapped to the name of the product."""
        columns = (self.edited or self.mapping).columns
        return self.mapping.stream == Stream.CATALOGUE and "title" not in {column.field for column in columns}

    @property
    def next_start(self) -> int | None:
        """The position of the first column of the next page, or None."""
        end = self.start + len(self.columns)
        return end if end < len(self.mapping.headers) else None

    def list_section(self, name: str) -> list[EditorColumn]:
        """Return the columns of a section (`EditorColumn.section`); those of which the meaning is unknown first."""
        found = [column for column in self.columns if column.section == name]
        return sorted(found, key=lambda column: column.reason not in (None, "unknown"))


@cache
def _map_labels(language: str) -> dict[str, str]:
    """Return the templates of fields by their labels in lower case, in a language."""
    return {label.casefold(): template for template, label in list_field_labels().items()}


def parse_field_name(text: str, part: str, header: str) -> str:
    """Return the field that a person entered as a label or name; an unknown text is returned unchanged.

    Args:
        text: The label or name.
        part: The number or name of a field with a variable part; empty for the first number, or the header as name.
        header: The header of the column.
    """
    template = _map_labels(get_current_locale().language).get(" ".join(text.split()).casefold(), text)
    if "*" not in template:
        return template
    if template == "axes.*":
        return template.replace("*", part or header.strip()[:60] or gettext("Option"))
    number = int(part) - 1 if part.isascii() and part.isdecimal() and 0 < int(part) <= 100 else 0
    return template.replace("*", str(number))


def _get_current_choice(column: Column | None) -> ColumnChoice:
    """Return the choice that leaves a column unchanged."""
    if column is None or column.is_alternative:
        return ColumnChoice("", "", {}, {}, ())
    template, part = split_field(column.field)
    settings = {name: str(value) for name, value in column.settings.items() if name not in _INTERNAL_SETTINGS}
    label = list_field_labels().get(template, column.field)
    return ColumnChoice(label, format_field_part(part), settings, column.values, column.ignored_problems)


def _read_choice(form: FormData, key: str, column: Column | None, header: str) -> ColumnChoice:
    """Return what a form states about a column; what the form omits is as in `column`."""
    current = _get_current_choice(column)
    if f"field.{key}" not in form:
        return current
    text, part = form.get(f"field.{key}"), form.get(f"part.{key}")
    field = parse_field_name(text, part, header)
    before = column.field if column is not None and not column.is_alternative else ""
    settings = dict(current.settings) if field == before else {}
    for name in find_settings_for_field(field):
        if f"set.{key}.{name}" in form:
            settings[name] = form.get(f"set.{key}.{name}")
    pairs = zip(form.get_all(f"from.{key}"), form.get_all(f"to.{key}"), strict=False)
    values = {cell.strip(): replacement.strip() for cell, replacement in pairs if cell.strip()}
    kinds = [kind for kind in form.get_all(f"ignored.{key}") if kind in _KINDS]
    return ColumnChoice(text, part, {name: text for name, text in settings.items() if text}, values, kinds)


def _build_edit(choice: ColumnChoice, position: int, column: Column | None, header: str) -> dict[str, Any]:
    """Return the edit of a column for the API; empty if the choice does not change the column."""
    current = _get_current_choice(column)
    if choice == current:
        return {}
    field = parse_field_name(choice.text, choice.part, header) if choice.text else None
    before = column.field if column is not None and not column.is_alternative else None
    edit: dict[str, Any] = {}
    if field is not None and dict(choice.settings) != dict(current.settings):
        edit["settings"] = dict(choice.settings)
    if field is not None and dict(choice.values) != dict(current.values):
        edit["values"] = dict(list(choice.values.items())[:MAX_REPLACEMENTS])
    if field is not None and set(choice.ignored_problems) != set(current.ignored_problems):
        edit["ignored_problems"] = list(choice.ignored_problems)
    if not edit and field == before:
        return {}
    if column is not None and column.is_alternative:
        edit.setdefault("settings", dict(choice.settings))  # without the setting that prevents reading
    return {"position": position, "field": field, **edit}


def build_table(
    form: FormData,
    mapping: SourceMapping,
    settings: FeedSettings,
    now: datetime,
    *,
    number: int = 0,
    sheet: str | None = None,
    fix: str = "",
    start: int = 0,
    max_columns: int = MAX_EDITOR_COLUMNS,
) -> EditorTable:
    """Return the editor of a mapping with the edits of a form.

    Args:
        form: The form; columns that it omits are unchanged.
        mapping: The mapping as stored or proposed.
        settings: The settings with which values are read.
        now: The current time.
        number: The number of the table in names of form fields.
        sheet: The name of the sheet, or None.
        fix: The fix that the form requests (see `_fix_choice`), or an empty text.
        start: The position of the first column to show.
        max_columns: The maximum number of columns to show.
    """
    column_by_position = {column.position: column for column in mapping.columns}
    choices = []
    for position, header in enumerate(mapping.headers):
        key = f"{number}.{position}"
        choice = _read_choice(form, key, column_by_position.get(position), header)
        choices.append(_fix_choice(choice, fix, key, form))
    edits = [
        edit
        for position, choice in enumerate(choices)
        if (edit := _build_edit(choice, position, column_by_position.get(position), mapping.headers[position]))
    ]
    edited, error, error_by_position = _apply_edits(mapping, edits, settings, now)
    shown = edited or mapping
    final_by_position = {one.position: one for one in shown.columns if not one.is_alternative}
    reason_by_position = {one.position: one.reason for one in shown.unmapped}
    columns = []
    for position in range(start, min(len(mapping.headers), start + max_columns)):
        column, header = final_by_position.get(position), mapping.headers[position]
        choice = choices[position]
        if edited is not None and (current := _get_current_choice(column)).text:
            choice = current  # with the settings that were determined from the samples
        samples = dict.fromkeys(row[position] for row in mapping.samples if position < len(row) and row[position])
        columns.append(
            EditorColumn(
                f"{number}.{position}", header, column, reason_by_position.get(position, "ambiguous"), choice,
                _build_setting_fields(choice, header), _find_part_title(choice.text), list(samples)[:3],
                _read_samples(shown, position, choice, settings), error_by_position.get(position, ""),
            )
        )  # fmt: skip
    return EditorTable(number, sheet, mapping, edited, edits, columns, start, error)


def _apply_edits(
    mapping: SourceMapping, edits: Sequence[Mapping[str, Any]], settings: FeedSettings, now: datetime
) -> tuple[SourceMapping | None, str, dict[int, str]]:
    """Apply edits to a mapping.

    Returns:
        The mapping, or None if edits are invalid; the error of the edits together; and the errors by position.
    """
    if not edits:
        return mapping, "", {}
    try:
        return apply_confirmation(mapping, _decode_edits(edits), settings, now), "", {}
    except DomainError as error:
        error_by_position = {}
        for fault in error.fields:
            _, _, rest = fault.field.partition("columns.")
            index = rest.partition(".")[0]
            if index.isdecimal() and int(index) < len(edits):
                error_by_position[edits[int(index)]["position"]] = fault.detail
        return None, "" if error_by_position else error.detail, error_by_position


def _decode_edits(edits: Sequence[Mapping[str, Any]]) -> Any:
    """Return edits as the API's operation decodes them."""
    return CONFIRMATION_BODY.decode({"columns": [dict(edit) for edit in edits]}).columns


def _read_samples(
    mapping: SourceMapping, position: int, choice: ColumnChoice, settings: FeedSettings
) -> Sequence[SampleResult]:
    """Return how the samples of a column are read; empty if the column is not imported or the choice is invalid."""
    header = mapping.headers[position]
    field = parse_field_name(choice.text, choice.part, header)
    if not choice.text or not is_field(field):
        return ()
    kinds = tuple(map(ProblemKind, choice.ignored_problems))
    column = Column(position, header, field, choice.settings, values=choice.values, ignored_problems=kinds)
    try:
        return preview_column(mapping, column, settings)
    except DomainError:
        return ()


def _find_part_title(text: str) -> str:
    """Return the label of the input for the variable part of the field with this label; empty if the field has none."""
    template = _map_labels(get_current_locale().language).get(text.casefold(), "")
    return "" if "*" not in template else gettext("Option name") if template == "axes.*" else gettext("Number")


def _build_setting_fields(choice: ColumnChoice, header: str) -> list[SettingField]:
    """Return the inputs for the settings of the chosen field.

    The settings and their choices are those of the mapping model. The rank of fallbacks is shown where it has an effect.
    """
    field = parse_field_name(choice.text, choice.part, header) if choice.text else ""
    if not field or not is_field(field):
        return []
    labels, found = LABELS["column_settings"], []
    for name, setting in find_settings_for_field(field).items():
        value = choice.settings.get(name, "")
        if name == "fallback" and not value and not allows_several_columns(field):
            continue
        title = gettext(labels[name]) if name in labels else name.replace("_", " ").capitalize()
        values = list(dict.fromkeys((*setting.choices, *([value] if value else ()))))
        has_list = len(setting.choices) > MAX_EDITOR_COLUMNS
        choices = [(one, format_choice(name, one)) for one in values] if setting.choices and not has_list else []
        found.append(SettingField(name, title, value, choices, has_list))
    return found


def format_choice(setting: str, value: str) -> str:
    """Return the label of a setting's value, such as `Centimetres (cm)` or `W × D × H`."""
    if setting == "currency":
        return value.upper()
    if label := LABELS["column_choices"].get(value):
        return gettext(label)
    return " × ".join(value.upper()) if setting == "order" else value


def read_defaults(form: FormData, config: Mapping[str, Any], fix: str = "") -> dict[str, Any]:
    """Return the settings of a source with the defaults of a form, and with the default that a fix requests.

    Args:
        form: The form.
        config: The current settings.
        fix: The fix, or an empty text.
    """
    changed = dict(config)
    for name in DEFAULT_SETTINGS:
        text = form.get(f"fix.{name}") if fix == name else form.get(name) if name in form else config.get(name)
        text = str(text or "").lower()
        changed.pop(name, None)
        if text and text in _VALUES_BY_DEFAULT.get(name, (text,)):
            changed[name] = text
    return changed


def _fix_choice(choice: ColumnChoice, fix: str, key: str, form: FormData) -> ColumnChoice:
    """Return the choice of a column with a fix: `value`, `order`, `column` (not imported) or a kind of problem to ignore.

    Args:
        choice: The choice.
        fix: The fix with the column, such as `value:0.3` or `unreadable:0.3`.
        key: The table's number and the column's position.
        form: The form. For `value`, its fields `fix.cell.<key>` and `fix.text.<key>` are the cell and its replacement; for
            `order`, its field `fix.order.<key>` is the order of the dimensions.
    """
    action, _, target = fix.partition(":")
    if target != key:
        return choice
    if action == "column":
        return choice._replace(text="")
    if action == Fix.VALUE and (cell := form.get(f"fix.cell.{key}")):
        return choice._replace(values={**choice.values, cell: form.get(f"fix.text.{key}")})
    if action == Fix.ORDER and (order := form.get(f"fix.order.{key}")):
        return choice._replace(settings={**choice.settings, "order": order})
    if action in _KINDS:
        return choice._replace(ignored_problems=[*choice.ignored_problems, action])
    return choice


def find_fix_key(group: ProblemGroup, tables: Iterable[tuple[str | None, Sequence[str]]]) -> str:
    """Return the table's number and the position of a group's column; empty if no table has the column.

    Args:
        group: The group.
        tables: The name of the sheet and the headers of each table.
    """
    for number, (sheet, headers) in enumerate(tables):
        if group.column in headers and sheet in (None, group.sheet):
            return f"{number}.{headers.index(group.column)}"
    return ""


def group_previewed_problems(preview: FeedPreview, tables: Sequence[EditorTable]) -> list[tuple[ProblemGroup, str]]:
    """Return the groups of a preview's problems with the keys of their columns in the editor."""
    places = [(table.sheet, table.mapping.headers) for table in tables]
    return [(group, find_fix_key(group, places)) for group in group_problems(preview.problems)[:MAX_SHOWN_GROUPS]]


NO_PREVIEW: Final[Mapping[str, Any]] = {"preview": None, "tables": (), "earlier_count": None}
"""Template variables of an editor without a preview."""


def build_preview_values(
    preview: FeedPreview, tables: Sequence[EditorTable], form: FormData | None = None
) -> dict[str, Any]:
    """Return the template variables of a preview and the editors of its tables.

    Args:
        preview: The preview.
        tables: The editors.
        form: The form, whose field `problem_count` contains the number of problems before the change.
    """
    groups = group_previewed_problems(preview, tables)
    shown = {**to_json_value(replace(preview, tables=(), problems=())), "ok": preview.is_ok, "groups": groups}
    earlier = form.get_number("problem_count") if form is not None else None
    return {"preview": shown, "tables": tables, "earlier_count": earlier}


def build_editor_values(form: FormData) -> dict[str, Any]:
    """Return the template variables of an editor with a form that do not depend on the preview."""
    return {
        "field_labels": list_field_labels(),
        "currencies": sorted(EXPONENTS),
        "default_choices": {
            name: [(value, format_choice(name, value)) for value in values]
            for name, values in (*_VALUES_BY_DEFAULT.items(), ("order", _ORDERS))
        },
        "entered": form,
    }
