"""Presentation of corrections: rows of fields with their corrections, and the form that corrects a field."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from domain.catalogue.categories import category_by_id
from domain.catalogue.corrections import FIELDS_BY_LEVEL, Correction, find_level, get_field, is_correctable
from domain.catalogue.differences import NESTED_FIELDS, PRICES
from domain.corrections.ports import CorrectionStore
from domain.corrections.usecases.service import CorrectionService
from domain.corrections.values import CHOICES, FieldKind, find_kind
from domain.kernel.money import EXPONENTS
from entrypoints.console.context import PageContext
from entrypoints.console.rendering import (
    find_label,
    format_category,
    format_day,
    format_field,
    format_money,
    format_number,
    format_words,
)
from entrypoints.console.translation import gettext

WRITE_SCOPE = "products:write"
CORRECTIONS = CorrectionService()
_HIDDEN_FIELDS = ("media", "category_path")


class FieldRow(NamedTuple):
    """Field of a product, variant or offer as its page shows it.

    Attributes:
        object: The ID of the object.
        path: The field.
        label: The name of the field.
        text: The formatted value; empty without a value.
        mark: Sentence about the correction of the field; empty without one.
        is_correctable: Whether people can correct the field.
    """

    object: str
    path: str
    label: str
    text: str
    mark: str = ""
    is_correctable: bool = False

    @property
    def key(self) -> str:
        """The object and the field, which identify the form that corrects the field."""
        return f"{self.object}:{self.path}"


class FieldForm(NamedTuple):
    """Inputs for the value of a field: its kind, the entered text, the currency, and the choices as values and titles."""

    kind: FieldKind
    text: str = ""
    currency: str = ""
    choices: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True, slots=True)
class FieldEditor:
    """Fields of the objects on a product's page, their corrections, and the field that is being corrected.

    Attributes:
        corrections: The corrections by object and field.
        people: The names of people by ID.
        may_edit: Whether the person may correct values.
        selected: Key (FieldRow) of the field whose form is open; empty for none.
        form: The submitted form, if it was refused; otherwise empty.
    """

    corrections: Mapping[tuple[str, str], Correction] = field(default_factory=dict)
    people: Mapping[str, str] = field(default_factory=dict)
    may_edit: bool = False
    selected: str = ""
    form: Mapping[str, str] = field(default_factory=dict)

    def list_rows(self, object: str, data: Mapping[str, Any]) -> list[FieldRow]:
        """Return the fields of an object that have a value or a correction, or are being corrected; parts of nested fields separately."""
        level = find_level(object)
        known = FIELDS_BY_LEVEL[level]
        stated = [path for name in data for path in _list_paths(name, data[name]) if name not in _HIDDEN_FIELDS]
        corrected = [path for id, path in self.corrections if id == object]
        selected = self.selected.partition(":")[2] if self.selected.startswith(f"{object}:") else ""
        paths = dict.fromkeys(
            (*(path for path in known if path in stated), *stated, *corrected, *filter(None, [selected]))
        )
        return [self.get_row(object, path, data) for path in paths]

    def get_row(self, object: str, path: str, data: Mapping[str, Any]) -> FieldRow:
        """Return one field of an object."""
        return FieldRow(
            object, path, find_field_label(path), format_value(path, get_field(data, path)), self.find_mark(object, path),
            self.may_edit and is_correctable(find_level(object), path),
        )  # fmt: skip

    def find_mark(self, object: str, path: str) -> str:
        """Return the sentence about the correction of a field; empty without one."""
        correction = self.corrections.get((object, path))
        return describe_correction(correction, self.people) if correction else ""

    def list_missing(self, object: str, rows: Iterable[FieldRow]) -> list[tuple[str, str]]:
        """Return keys and names of the fields that could be corrected, but have no value."""
        shown = {row.path for row in rows}
        missing = [path for path in FIELDS_BY_LEVEL[find_level(object)] if path not in shown] if self.may_edit else []
        return [(f"{object}:{path}", find_field_label(path)) for path in missing]

    def has_correction(self, row: FieldRow) -> bool:
        """Return whether the field has a correction."""
        return (row.object, row.path) in self.corrections

    def build_form(self, row: FieldRow, data: Mapping[str, Any]) -> FieldForm:
        """Return the inputs for a field, with its value or the refused one."""
        value = get_field(data, row.path)
        currency = data.get("currency", "") if row.path in PRICES else ""
        form = build_field_form(row.path, value, currency)
        return (
            form._replace(text=self.form["value"], currency=self.form.get("currency", ""))
            if "value" in self.form
            else form
        )


async def read_editor(page: PageContext, objects: Sequence[str], *, is_own: bool) -> FieldEditor:
    """Return the editor of a product's page.

    Args:
        page: The context.
        objects: The IDs of the shown product, variant and offers, and of the products and variants merged into them.
        is_own: Whether the product belongs to the person's organisation.
    """
    if not is_own:
        return FieldEditor()
    async with page.open_read_transaction() as tx:
        found = await tx[CorrectionStore].list_of_objects(objects)
    form = {name: page.form[name] for name in ("value", "currency")} if page.refused else {}
    return FieldEditor(
        {(one.object, one.field): one for one in found},
        await page.find_person_names(one.made_by for one in found),
        page.may(WRITE_SCOPE),
        page.form["key"] or page.query["edit"],
        form,
    )


def _list_paths(name: str, value: Any) -> list[str]:
    return [f"{name}.{part}" for part in value] if name in NESTED_FIELDS else [name]


def find_field_label(path: str) -> str:
    """Return the name of a field; options of variants have the vendor's names."""
    name, _, part = path.partition(".")
    return part if name == "axes" else find_label(path, "correctable_fields")


def format_value(path: str, value: Any) -> str:
    """Format the value of a field; empty without a value."""
    if value is None:
        return ""
    match find_kind(path):
        case FieldKind.MONEY:
            return format_money(value if value["currency"] else None)
        case FieldKind.COUNT:
            return format_number(value)
        case FieldKind.CHOICE:
            return format_words(value)
        case FieldKind.CATEGORY:
            return format_category(str(value))
        case _:
            return format_field(value, path)


def describe_correction(correction: Correction, people: Mapping[str, str]) -> str:
    """Return a sentence that states who corrected a field, when, and what the sources state."""
    stated = format_value(correction.field, correction.feed_value)
    values = {"person": people[correction.made_by][:100], "date": format_day(correction.made_at), "value": stated[:200]}
    if correction.action == "lock":
        text = gettext("Locked by %(person)s on %(date)s", **values)
    elif correction.action == "clear":
        text = gettext("Cleared by %(person)s on %(date)s", **values)
    else:
        text = gettext("Corrected by %(person)s on %(date)s", **values)
    if stated:
        return gettext("%(correction)s; the feed states “%(value)s”.", correction=text, value=values["value"])
    return gettext("%(correction)s; the feed states no value.", correction=text)


def build_field_form(path: str, value: Any = None, currency: str = "") -> FieldForm:
    """Return the inputs for the value of a field."""
    kind = find_kind(path)
    text = ""
    if value is not None:
        match kind:
            case FieldKind.MONEY:
                currency = value["currency"] or ""
                places = EXPONENTS.get(currency, 2)
                text = f"{value['amount'] / 10**places:.{places}f}" if value["amount"] < 2**50 else ""
            case FieldKind.LIST:
                text = "\n".join(value)
            case FieldKind.FLAG:
                text = "true" if value else "false"
            case FieldKind.LENGTH | FieldKind.WEIGHT:
                text = f"{value['given']['value']} {value['given']['unit']}"
            case _:
                text = str(value)
    choices: list[tuple[str, str]] = []
    if kind == FieldKind.CHOICE:
        choices = [(one, format_words(one)) for one in CHOICES[path]]
    elif kind == FieldKind.FLAG:
        choices = [("true", gettext("Yes")), ("false", gettext("No"))]
    elif kind == FieldKind.CATEGORY:
        choices = [(id, format_category(id)) for id in category_by_id()]
    return FieldForm(kind, text, currency.upper(), choices)
