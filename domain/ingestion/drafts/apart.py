"""What tells the variants of one product apart, and rows that repeat each other."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from domain.catalogue.data import VariantData
from domain.catalogue.statements import VariantStatement
from domain.ingestion.drafts.draft import ProductDraft, RowDraft
from domain.kernel.problems import Problem, ProblemKind

_TELLING: Final = (("Color", "colour"), ("Finish", "finish"), ("Material", "materials"))
"""Axes that a product gets when its variants differ in a field and in no axis."""
_SAME_AXIS: Final = {
    "colour": frozenset(("color", "colour", "farbe")),
    "finish": frozenset(("finish", "wood finish")),
    "materials": frozenset(("material", "materials", "fabric")),
}
_ADDED_TO: Final = frozenset(("media",))
"""Fields of a variant to which further rows add."""
_NONE: Final[frozenset[tuple[str, str]]] = frozenset()


def name_options(product: ProductDraft) -> None:
    """Give axes the names of their options where these came in rows below their values."""
    if not product.option_names:
        return
    names = {f"Option {place + 1}": name for place, name in product.option_names.items()}
    for variant in product.variants.values():
        axes = variant.data.get("axes")
        if axes and names.keys() & axes.keys():
            variant.data["axes"] = {names.get(axis, axis): value for axis, value in axes.items()}


def tell_apart(product: ProductDraft) -> Sequence[VariantStatement]:
    """Add the axes in which variants differ, in place; answers those that nothing tells from another."""
    variants = list(product.variants.values())
    if len(variants) < 2 or _distinct(variants):
        return ()
    for axis, name in _TELLING:
        values = [_text(variant.data.get(name)) for variant in variants]
        if None in values or len(set(values)) < 2:
            continue
        if {key.lower() for variant in variants for key in variant.data.get("axes", ())} & _SAME_AXIS[name]:
            continue
        for variant, value in zip(variants, values, strict=True):
            variant.data["axes"] = {**variant.data.get("axes", {}), axis: str(value)}
        if _distinct(variants):
            return ()
        if name == "materials":
            # Materials are an axis only where they tell variants apart.
            _drop(variants, axis)
    seen: dict[Any, VariantStatement] = {}
    alike = []
    for variant in variants:
        if seen.setdefault(_told_by(variant.data), variant) is not variant:
            alike.append(variant)
    return alike


def _drop(variants: Iterable[VariantStatement], axis: str) -> None:
    for variant in variants:
        left = {name: value for name, value in variant.data["axes"].items() if name != axis}
        if left:
            variant.data["axes"] = left
        else:
            del variant.data["axes"]


def _text(value: object) -> str | None:
    return ", ".join(value) if isinstance(value, list) else None if value is None else str(value)


def _told_by(data: VariantData) -> tuple[Any, ...]:
    """What a buyer tells a variant by: its axes, its own title, its size, its parts."""
    parts = tuple((part.get("sku"), part.get("name"), part.get("quantity")) for part in data.get("components", ()))
    return _axes(data), data.get("title"), sides_of(data), parts


def _axes(data: VariantData) -> frozenset[tuple[str, str]]:
    axes = data.get("axes")
    return frozenset(axes.items()) if axes else _NONE


def _distinct(variants: Iterable[VariantStatement]) -> bool:
    axes = [_axes(variant.data) for variant in variants]
    return len(set(axes)) == len(axes)


def sides_of(data: VariantData) -> tuple[tuple[str, int], ...]:
    """The sides of a variant in hundredths of an inch, in one order."""
    sides: Mapping[str, Any] = dict(data.get("dimensions", {}))
    return tuple(sorted((side, length["hundredths_in"]) for side, length in sides.items()))


def other_size(known: VariantData, data: VariantData) -> bool:
    """Whether two rows state different figures for one side."""
    sides = dict(sides_of(known))
    return any(sides.get(side, figure) != figure for side, figure in sides_of(data))


def size_text(data: VariantData) -> str:
    """A variant's sides as given, for a key: `30 x 40 in`."""
    given = [length["given"] for _, length in sorted(dict[str, Any](data.get("dimensions", {})).items())]
    units = dict.fromkeys(each["unit"] for each in given)
    return f"{' x '.join(str(each['value']) for each in given)} {'/'.join(units)}"


def fill_in(known: VariantData, data: VariantData, row: RowDraft) -> None:
    """Add what a further row of a variant says that is not known yet; each field in which it differs is told."""
    kept: dict[str, Any] = known  # type: ignore[assignment]
    for name, value in data.items():
        if kept.setdefault(name, value) != value and name not in _ADDED_TO:
            detail = f"Rows of one item differ in {name.replace('_', ' ')}; what the first says is kept."
            row.product.problems.append(Problem(name, ProblemKind.CONFLICT, detail, row.line, None, row.product.sheet))
