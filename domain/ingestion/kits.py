"""Completion of sets from the rows of their parts: quantities, weights, sizes and cartons."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import combinations, product
from typing import Any

from domain.catalogue.data import Carton, Component, Dimensions, VariantData, Weight
from domain.ingestion.pieces import pieces_named
from domain.ingestion.values.cartons import pieces_per_carton
from domain.ingestion.values.text import Fault, quoted
from domain.kernel.problems import ProblemKind

_MOST_OF_ONE = 8
_ROUNDING = 60
"""Difference between a set's weight and that of its parts that rounding explains, in hundredths of a pound."""
_MOST_SOUGHT = 16
"""Maximum number of parts for which quantities are searched; with more, the result would be ambiguous."""


@dataclass(frozen=True, slots=True)
class PartFacts:
    """Facts about a part from its own row; `volume` is in the unit that the file uses for all rows."""

    title: str | None = None
    weight: Weight | None = None
    volume: Decimal | None = None
    dimensions: Dimensions | None = None
    cartons: tuple[Carton, ...] = ()


def complete(
    data: VariantData, title: str, volume: Decimal | None, parts: Mapping[str, PartFacts]
) -> tuple[Fault, ...]:
    """Complete a set's components with the facts of its parts' rows, in place; return the contradictions.

    A quantity that no list states is 1 unless the weights contradict it. Then the quantities are searched that fit the set's
    weight and its volume or the number of pieces in its title. If exactly one combination fits, it is used; otherwise the
    quantities are left out.
    """
    listed = data["components"]
    coded = [component for component in listed if component.get("sku") in parts]
    if not coded or len(coded) != sum("sku" in component for component in listed):
        faults = _too_few(listed, parts, title)
        kept = [_with(component, dict.fromkeys(parts_of(listed))) for component in listed] if faults else listed
        data["components"] = [_described(component, parts) for component in kept]
        return faults
    facts = [parts[component["sku"]] for component in coded]
    counted, faults = _counted(coded, facts, data.get("weight"), volume, title)
    quantity = dict(zip((component["sku"] for component in coded), counted, strict=True))
    data["components"] = [_described(_with(component, quantity), parts) for component in listed]
    if "cartons" not in data and all(counted) and all(fact.cartons for fact in facts):
        data["cartons"] = _boxes(facts, [count or 1 for count in counted])
    return faults


def parts_of(components: Sequence[Component]) -> list[str]:
    """Return the codes of a set's parts."""
    return [component["sku"] for component in components if "sku" in component]


def _too_few(listed: Sequence[Component], parts: Mapping[str, PartFacts], title: str) -> tuple[Fault, ...]:
    """Return the fault of a title that states more pieces than the parts hold when each is taken once."""
    pieces, codes = pieces_named(title), parts_of(listed)
    if pieces is None or not codes or any(component.get("quantity", 1) > 1 for component in listed):
        return ()
    if sum(_pack(code, parts.get(code)) for code in codes) >= pieces:
        return ()
    detail = f"{quoted(title)} counts {pieces} pieces, more than its parts hold once each; the quantities are left out."
    return (Fault(ProblemKind.CONFLICT, detail),)


def _pack(code: str, facts: PartFacts | None) -> int:
    """Return how many pieces a part contains, by its row's title, else by its code, else 1."""
    return (facts and pieces_per_carton(facts.title or "")) or pieces_per_carton(code) or 1


def _with(component: Component, quantity: Mapping[str, int | None]) -> Component:
    if "sku" not in component:
        return component
    count = quantity[component["sku"]]
    kept: Any = {name: value for name, value in component.items() if name != "quantity"}
    return kept if count is None else kept | {"quantity": count}  # type: ignore[no-any-return]


def _described(component: Component, parts: Mapping[str, PartFacts]) -> Component:
    """Return a component with title, weight and size of its own row, which take precedence over the set's row."""
    facts = parts.get(component.get("sku", ""))
    if facts is None:
        return component
    own: Any = {"name": facts.title, "weight": facts.weight, "dimensions": facts.dimensions}
    described: Any = {**component, **{name: value for name, value in own.items() if value}}
    return described  # type: ignore[no-any-return]


def _boxes(facts: Sequence[PartFacts], counts: Sequence[int]) -> list[Carton]:
    """Return the cartons of all parts, each multiplied by the quantity of its part."""
    return [
        {**carton, "count": carton.get("count", 1) * count}
        for fact, count in zip(facts, counts, strict=True)
        for carton in fact.cartons
    ]


def _counted(
    coded: Sequence[Component], facts: Sequence[PartFacts], whole: Weight | None, volume: Decimal | None, title: str
) -> tuple[list[int | None], tuple[Fault, ...]]:
    """Return the quantity of each part, None where it is unknown, and the contradictions."""
    stated: list[int | None] = [component.get("quantity") for component in coded]
    sums = _Sums.of(facts, whole, volume)
    given = [count or 1 for count in stated]
    if sums is None:
        faults = _too_few(coded, dict(zip(parts_of(coded), facts, strict=True)), title)
        return ([None] * len(stated) if faults else stated), faults
    if sums.weighs(given):
        return stated, ()
    pieces = pieces_named(title)
    detail = f"The weights of the parts of {quoted(title)} do not add up to its weight"
    if max(given) > 1:
        return stated, (Fault(ProblemKind.CONFLICT, f"{detail}; the stated quantities are kept."),)
    packs = [_pack(component["sku"], fact) for component, fact in zip(coded, facts, strict=True)]
    fitting = _fitting(sums, pieces, packs) if len(coded) <= _MOST_SOUGHT else []
    if len(fitting) == 1:
        return list(fitting[0]), ()
    if sums.fills(given):
        return stated, (Fault(ProblemKind.CONFLICT, f"{detail}, but their volumes do; one of each is kept."),)
    return [None] * len(coded), (
        Fault(ProblemKind.CONFLICT, f"{detail} with one of each; the quantities are left out."),
    )


@dataclass(frozen=True, slots=True)
class _Sums:
    """Weights (in hundredths of a pound) and volumes of the parts and of the set."""

    weights: tuple[int, ...]
    weight: int
    volumes: tuple[Decimal, ...] | None
    volume: Decimal | None

    @staticmethod
    def of(facts: Sequence[PartFacts], whole: Weight | None, volume: Decimal | None) -> "_Sums | None":
        """None where the file does not weigh the set and all its parts."""
        weights = tuple(fact.weight["hundredths_lb"] for fact in facts if fact.weight)
        if whole is None or len(weights) < len(facts):
            return None
        volumes = tuple(fact.volume for fact in facts if fact.volume)
        known = volume and len(volumes) == len(facts)
        return _Sums(weights, whole["hundredths_lb"], volumes if known else None, volume if known else None)

    def weighs(self, counts: Sequence[int], *, exactly: bool = False) -> bool:
        """Return whether the parts in these quantities have the set's weight, within 1/50 or `exactly` within 1/300."""
        off = abs(sum(w * count for w, count in zip(self.weights, counts, strict=True)) - self.weight)
        return off <= _ROUNDING or off * (300 if exactly else 50) <= self.weight

    def fills(self, counts: Sequence[int]) -> bool:
        """Return whether the parts in these quantities have the set's volume; figures are rounded to one decimal for each part."""
        if self.volumes is None or self.volume is None:
            return False
        off = abs(sum((v * count for v, count in zip(self.volumes, counts, strict=True)), Decimal(0)) - self.volume)
        return off <= Decimal("0.06") * (1 + sum(counts)) or off * 100 <= self.volume * 2


def _fitting(sums: _Sums, pieces: int | None, packs: Sequence[int]) -> list[tuple[int, ...]]:
    """Return the quantities that fit the weight and, where known, the volume and the number of pieces, at least one of them."""
    for several in (1, 2):
        found = [
            counts
            for counts in _several(sums.weights, sums.weight - sum(sums.weights), several)
            if sums.weighs(counts, exactly=True) and _borne_out(sums, counts, pieces, packs)
        ]
        if found:
            return found
    return []


def _borne_out(sums: _Sums, counts: tuple[int, ...], pieces: int | None, packs: Sequence[int]) -> bool:
    by_volume = None if sums.volumes is None else sums.fills(counts)
    by_title = None if pieces is None else _counts_up(counts, pieces, packs)
    return False not in (by_volume, by_title) and True in (by_volume, by_title)


def _counts_up(counts: Sequence[int], pieces: int, packs: Sequence[int]) -> bool:
    """Return whether the quantities can make `pieces` pieces.

    Parts that occur once can be cartons of one piece; together they make at least one piece.
    """
    several = sum(count * pack for count, pack in zip(counts, packs, strict=True) if count > 1)
    once = [pack for count, pack in zip(counts, packs, strict=True) if count == 1]
    return (1 if once else 0) <= pieces - several <= sum(once)


def _several(weights: Sequence[int], missing: int, several: int) -> Iterator[tuple[int, ...]]:
    """Yield quantities in which `several` parts occur more than once and that come nearest to the missing weight."""
    for places in combinations(range(len(weights)), several):
        last = weights[places[-1]]
        for numbers in product(range(1, _MOST_OF_ONE), repeat=several - 1):
            rest = missing - sum(weights[place] * more for place, more in zip(places, numbers, strict=False))
            more = (2 * rest + last) // (2 * last) if last else 0
            if 0 < more < _MOST_OF_ONE:
                counts = [1] * len(weights)
                for place, further in zip(places, (*numbers, more), strict=True):
                    counts[place] += further
                yield tuple(counts)
