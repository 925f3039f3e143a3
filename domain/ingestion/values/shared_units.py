"""Which unit the figures of a size have that name none, and whether two statements are of one size."""

from collections.abc import Sequence
from dataclasses import replace

from domain.ingestion.values.clauses import Clauses, Item, Scope
from domain.ingestion.values.lengths import Measure, same_length


def units_of(items: Sequence[Item], shared: str | None) -> list[str | None]:
    """The unit of each measure: its own, else the next one's, else that of the last before, else the one they share."""
    last = next((item.measure.unit for item in reversed(items) if item.measure.unit), shared)
    units: list[str | None] = []
    for item in reversed(items):
        last = item.measure.unit or last
        units.append(last)
    return units[::-1]


def confirms(first: Sequence[Item], second: Sequence[Item], shared: str | None) -> bool:
    """Whether a sequence states the one before it once more, in another unit or in the same words."""
    if len(first) != len(second):
        return False
    one, two = units_of(first, shared), units_of(second, shared)
    for a, b, unit_a, unit_b in zip(first, second, one, two, strict=True):
        if b.label.side not in (None, a.label.side) or unit_a is None or unit_b is None:
            return False
        if unit_a == unit_b:
            if a.measure.value != b.measure.value:
                return False
        elif not same_length(_in_unit(a, unit_a), _in_unit(b, unit_b), None):
            return False
    return True


def _in_unit(item: Item, unit: str) -> Measure:
    return Measure(item.measure.value, unit, item.measure.end, other=item.measure.other)


def all_items(scope: Scope) -> list[Item]:
    """Every figure of a scope, whatever it is of."""
    return [item for items in scope.sequences for item in items] + scope.extras + scope.largest + scope.nouns


def shared_unit(clauses: Clauses, column: str | None) -> str | None:
    """The unit of figures without one: the only one that is named, unless it is of a second statement of the same size."""
    sequences = [items for scope in clauses.scopes for items in scope.sequences]
    if len(sequences) == 2 and not any(item.measure.unit for item in sequences[0]):
        first, second = sequences
        for unit in (column, "cm", "mm", "in"):
            if unit and confirms([_with_unit(item, unit) for item in first], second, column):
                return unit
    named = {item.measure.unit for scope in clauses.scopes for item in all_items(scope) if item.measure.unit}
    return named.pop() if len(named) == 1 else None


def _with_unit(item: Item, unit: str) -> Item:
    return replace(item, measure=replace(item.measure, unit=unit))
