"""Completion of sets (bundles) with quantities, weights, sizes and cartons from the rows of their parts."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import combinations, product
from typing import Any

from domain.catalogue.data import BundleComponent, Carton, Dimensions, VariantData, Weight
from domain.ingestion.pieces import parse_piece_count
from domain.ingestion.values.cartons import parse_pieces_per_carton
from domain.ingestion.values.text import ParseFault, quote_text
from domain.kernel.problems import ProblemKind

_MAX_QUANTITY = 8
_MAX_ROUNDING_HUNDREDTHS_LB = 60
"""Maximum difference between the weights of a set and its parts that rounding explains, in hundredths of a pound."""
_MAX_SEARCHED_PARTS = 16
"""Maximum number of parts for which quantities are searched; with more, the result would be ambiguous."""


@dataclass(frozen=True, slots=True)
class BundlePartData:
    """Data of one part of a set, read from the row of the part. The volume is in the unit of the file."""

    title: str | None = None
    weight: Weight | None = None
    volume: Decimal | None = None
    dimensions: Dimensions | None = None
    cartons: tuple[Carton, ...] = ()


def complete_components(
    data: VariantData, title: str, volume: Decimal | None, part_by_code: Mapping[str, BundlePartData]
) -> tuple[ParseFault, ...]:
    """Complete the components of a set, in place, with data from the rows of the parts.

    A missing quantity means 1. If the weights contradict this, and no stated quantity is above 1, quantities are
    searched. These must match the weight of the set, and also its volume or the number of pieces in its title. If
    exactly one combination matches, the function uses this combination. Otherwise it omits the quantities, unless the
    volumes match with each part counted once.

    If the weights cannot be compared, the quantities are omitted if the title states more pieces than the parts
    contain.

    Args:
        data: The data of the set, which is changed.
        title: The title of the set.
        volume: The volume of the set, or None.
        part_by_code: The data of parts by their codes.

    Returns:
        The contradictions between the set and the parts.
    """
    listed = data["components"]
    coded = [component for component in listed if component.get("sku") in part_by_code]
    if not coded or len(coded) != sum("sku" in component for component in listed):
        faults = _check_piece_count_in_title(listed, part_by_code, title)
        kept = (
            [_set_quantity(component, dict.fromkeys(list_part_codes(listed))) for component in listed]
            if faults
            else listed
        )
        data["components"] = [_apply_part_data(component, part_by_code) for component in kept]
        return faults
    parts = [part_by_code[component["sku"]] for component in coded]
    counted, faults = _determine_quantities(coded, parts, data.get("weight"), volume, title)
    faults = faults or _check_stated_quantities(coded, parts, counted, title)
    quantity = dict(zip((component["sku"] for component in coded), counted, strict=True))
    data["components"] = [_apply_part_data(_set_quantity(component, quantity), part_by_code) for component in listed]
    if "cartons" not in data and all(counted) and all(part.cartons for part in parts):
        data["cartons"] = _combine_cartons(parts, [count or 1 for count in counted])
    return faults


def list_part_codes(components: Sequence[BundleComponent]) -> list[str]:
    """Return the codes (SKUs) of the components; components without a code are skipped."""
    return [component["sku"] for component in components if "sku" in component]


def _check_piece_count_in_title(
    components: Sequence[BundleComponent], part_by_code: Mapping[str, BundlePartData], title: str
) -> tuple[ParseFault, ...]:
    """Return a fault if the title of a set states more pieces than its parts contain when each part is counted once.

    If a component has a quantity above 1, nothing is checked.
    """
    pieces, codes = parse_piece_count(title), list_part_codes(components)
    if pieces is None or not codes or any(component.get("quantity", 1) > 1 for component in components):
        return ()
    if sum(_count_pieces_in_part(code, part_by_code.get(code)) for code in codes) >= pieces:
        return ()
    detail = (
        f"{quote_text(title)} states {pieces} pieces, but one of each part adds up to fewer pieces. "
        "The quantities of the parts were left out."
    )
    return (ParseFault(ProblemKind.CONFLICT, detail),)


def _check_stated_quantities(
    components: Sequence[BundleComponent], parts: Sequence[BundlePartData], quantities: Sequence[int | None], title: str
) -> tuple[ParseFault, ...]:
    """Return a fault if parts in these quantities, of which one is above 1, cannot be a set with the number of pieces in the title.

    A quantity can count pieces, or cartons with several pieces.
    """
    pieces, counted = parse_piece_count(title), [count or 0 for count in quantities]
    if pieces is None or 0 in counted or max(counted) < 2:
        return ()
    pieces_per_part = [
        _count_pieces_in_part(component["sku"], part) for component, part in zip(components, parts, strict=True)
    ]
    if any(_can_result_in_pieces(counted, pieces, per_part) for per_part in (pieces_per_part, [1] * len(parts))):
        return ()
    detail = (
        f"{quote_text(title)} states {pieces} pieces, but the parts do not add up to this number. "
        "The quantities of the parts were kept."
    )
    return (ParseFault(ProblemKind.CONFLICT, detail),)


def _count_pieces_in_part(code: str, part: BundlePartData | None) -> int:
    """Return the number of pieces that a part contains, according to the title of the part, or else the code, or else 1."""
    return (part and parse_pieces_per_carton(part.title or "")) or parse_pieces_per_carton(code) or 1


def _set_quantity(component: BundleComponent, quantity_by_code: Mapping[str, int | None]) -> BundleComponent:
    """Return the component with the quantity for its code in `quantity_by_code`, or without a quantity if that is None."""
    if "sku" not in component:
        return component
    count = quantity_by_code[component["sku"]]
    others: Any = {name: value for name, value in component.items() if name != "quantity"}
    return others if count is None else others | {"quantity": count}  # type: ignore[no-any-return]


def _apply_part_data(component: BundleComponent, part_by_code: Mapping[str, BundlePartData]) -> BundleComponent:
    """Return the component with title, weight and size from the part's row instead of the set's row."""
    part = part_by_code.get(component.get("sku", ""))
    if part is None:
        return component
    own: Any = {"name": part.title, "weight": part.weight, "dimensions": part.dimensions}
    described: Any = {**component, **{name: value for name, value in own.items() if value}}
    return described  # type: ignore[no-any-return]


def _combine_cartons(parts: Sequence[BundlePartData], quantities: Sequence[int]) -> list[Carton]:
    """Return the cartons of all parts, with the count of each carton multiplied by the quantity of the part."""
    return [
        {**carton, "count": carton.get("count", 1) * quantity}
        for part, quantity in zip(parts, quantities, strict=True)
        for carton in part.cartons
    ]


def _determine_quantities(
    components: Sequence[BundleComponent],
    parts: Sequence[BundlePartData],
    set_weight: Weight | None,
    set_volume: Decimal | None,
    title: str,
) -> tuple[list[int | None], tuple[ParseFault, ...]]:
    """Return the quantity of each part (None if unknown), and the contradictions between the set and the parts.

    Args:
        components: The components with codes.
        parts: The data of these components from the rows of the parts, in the same order.
        set_weight: The weight of the set, or None.
        set_volume: The volume of the set, or None.
        title: The title of the set.
    """
    quantities: list[int | None] = [component.get("quantity") for component in components]
    totals = _SetTotals.create(parts, set_weight, set_volume)
    assumed = [count or 1 for count in quantities]
    if totals is None:
        faults = _check_piece_count_in_title(
            components, dict(zip(list_part_codes(components), parts, strict=True)), title
        )
        return ([None] * len(quantities) if faults else quantities), faults
    if totals.matches_set_weight(assumed):
        return quantities, ()
    pieces = parse_piece_count(title)
    detail = f"The weights of the parts of {quote_text(title)} do not add up to the weight of the set"
    if max(assumed) > 1:
        return quantities, (
            ParseFault(ProblemKind.CONFLICT, f"{detail}. The stated quantities of the parts were kept."),
        )
    pieces_per_part = [
        _count_pieces_in_part(component["sku"], part) for component, part in zip(components, parts, strict=True)
    ]
    combinations = _search_quantities(totals, pieces, pieces_per_part) if len(components) <= _MAX_SEARCHED_PARTS else []
    if len(combinations) == 1:
        return list(combinations[0]), ()
    if totals.matches_set_volume(assumed):
        return quantities, (
            ParseFault(ProblemKind.CONFLICT, f"{detail}, but their volumes do. Each part is counted once."),
        )
    return [None] * len(components), (
        ParseFault(
            ProblemKind.CONFLICT, f"{detail} if each part is counted once. The quantities of the parts were left out."
        ),
    )


@dataclass(frozen=True, slots=True)
class _SetTotals:
    """Weights (in hundredths of a pound) and volumes of a set and of its parts, to check quantities of the parts.

    Attributes:
        part_weights: The weight of each part.
        set_weight: The weight of the set.
        part_volumes: The volume of each part, or None if unknown.
        set_volume: The volume of the set, or None if unknown.
    """

    part_weights: tuple[int, ...]
    set_weight: int
    part_volumes: tuple[Decimal, ...] | None
    set_volume: Decimal | None

    @staticmethod
    def create(
        parts: Sequence[BundlePartData], set_weight: Weight | None, volume: Decimal | None
    ) -> "_SetTotals | None":
        """Return the totals of a set; None if the weight of the set or of a part is unknown."""
        weights = tuple(part.weight["hundredths_lb"] for part in parts if part.weight)
        if set_weight is None or len(weights) < len(parts):
            return None
        volumes = tuple(part.volume for part in parts if part.volume)
        known = volume and len(volumes) == len(parts)
        return _SetTotals(weights, set_weight["hundredths_lb"], volumes if known else None, volume if known else None)

    def matches_set_weight(self, quantities: Sequence[int], *, strict: bool = False) -> bool:
        """Return whether the parts in these quantities weigh as much as the set.

        The tolerated difference is _MAX_ROUNDING_HUNDREDTHS_LB or 1/50 of the set's weight (with `strict`, 1/300),
        whichever is larger.
        """
        off = abs(sum(w * count for w, count in zip(self.part_weights, quantities, strict=True)) - self.set_weight)
        return off <= _MAX_ROUNDING_HUNDREDTHS_LB or off * (300 if strict else 50) <= self.set_weight

    def matches_set_volume(self, quantities: Sequence[int]) -> bool:
        """Return whether the parts in these quantities have the volume of the set; rounding to one decimal is tolerated."""
        if self.part_volumes is None or self.set_volume is None:
            return False
        off = abs(
            sum((v * count for v, count in zip(self.part_volumes, quantities, strict=True)), Decimal(0))
            - self.set_volume
        )
        return off <= Decimal("0.06") * (1 + sum(quantities)) or off * 100 <= self.set_volume * 2


def _search_quantities(totals: _SetTotals, pieces: int | None, pieces_per_part: Sequence[int]) -> list[tuple[int, ...]]:
    """Return the combinations of quantities that fit the weight of the set and are confirmed by another property.

    The volume of the set or the number of pieces must confirm the quantities, and neither may contradict them.

    Args:
        totals: The totals of the set.
        pieces: The number of pieces in the title, or None.
        pieces_per_part: The number of pieces in each part.
    """
    for multiple_parts in (1, 2):
        found = [
            quantities
            for quantities in _propose_quantities(
                totals.part_weights, totals.set_weight - sum(totals.part_weights), multiple_parts
            )
            if totals.matches_set_weight(quantities, strict=True)
            and _is_confirmed(totals, quantities, pieces, pieces_per_part)
        ]
        if found:
            return found
    return []


def _is_confirmed(
    totals: _SetTotals, quantities: tuple[int, ...], pieces: int | None, pieces_per_part: Sequence[int]
) -> bool:
    """Return whether the volume or the number of pieces confirms the quantities, and neither contradicts them."""
    by_volume = None if totals.part_volumes is None else totals.matches_set_volume(quantities)
    by_title = None if pieces is None else _can_result_in_pieces(quantities, pieces, pieces_per_part)
    return False not in (by_volume, by_title) and True in (by_volume, by_title)


def _can_result_in_pieces(quantities: Sequence[int], pieces: int, pieces_per_part: Sequence[int]) -> bool:
    """Return whether parts in these quantities can be a set with this number of pieces.

    Parts with quantity 1 can be cartons of the same piece. All such parts together therefore count as at least one
    piece, and at most as the sum of the pieces in these parts.

    Args:
        quantities: The quantity of each part.
        pieces: The number of pieces in the set.
        pieces_per_part: The number of pieces in each part.
    """
    in_multiple_parts = sum(
        count * part_pieces for count, part_pieces in zip(quantities, pieces_per_part, strict=True) if count > 1
    )
    in_single_parts = [
        part_pieces for count, part_pieces in zip(quantities, pieces_per_part, strict=True) if count == 1
    ]
    return (1 if in_single_parts else 0) <= pieces - in_multiple_parts <= sum(in_single_parts)


def _propose_quantities(weights: Sequence[int], missing_weight: int, multiple_parts: int) -> Iterator[tuple[int, ...]]:
    """Yield combinations of quantities whose weight is nearest to the weight of the set.

    Args:
        weights: The weight of each part.
        missing_weight: The weight of the set minus the weight of all parts with quantity 1.
        multiple_parts: The number of parts whose quantity is above 1.
    """
    for positions in combinations(range(len(weights)), multiple_parts):
        last = weights[positions[-1]]
        for numbers in product(range(1, _MAX_QUANTITY), repeat=multiple_parts - 1):
            rest = missing_weight - sum(
                weights[position] * extra for position, extra in zip(positions, numbers, strict=False)
            )
            extra = (2 * rest + last) // (2 * last) if last else 0
            if 0 < extra < _MAX_QUANTITY:
                quantities = [1] * len(weights)
                for position, further in zip(positions, (*numbers, extra), strict=True):
                    quantities[position] += further
                yield tuple(quantities)
