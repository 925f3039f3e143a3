"""What of one product is left out because it is too much (domain/kernel/bounds.py): told once for each field."""

from collections.abc import Iterable
from typing import Final

from domain.catalogue.category_rules import MOST_LEVELS
from domain.catalogue.trimming import Excess
from domain.kernel.bounds import AXES, ITEM_CHARS, ITEMS, OFFERS, VARIANTS
from domain.kernel.problems import Problem, ProblemKind

_MOST: Final = {
    "variants": f"a product has at most {VARIANTS:,}",
    "axes": f"a variant has at most {AXES}",
    "offers": f"a variant has at most {OFFERS}",
    "category path": f"it has at most {MOST_LEVELS} levels, of {ITEM_CHARS:,} characters each",
}
_LIST: Final = f"at most {ITEMS} are kept, of {ITEM_CHARS:,} characters each and some KiB in all"


class LeftOut:
    """How many entries of each field, and where the first of them stands. Variants' fields are counted together."""

    __slots__ = ("_fields", "_keys")

    def __init__(self) -> None:
        self._fields: dict[str, tuple[int, int | None, str | None]] = {}
        self._keys: set[tuple[str, str]] = set()

    def add(
        self, field: str, count: int, line: int | None = None, column: str | None = None, key: str | None = None
    ) -> None:
        """So many more; the place counts for the first. What has a key is counted once, however many rows it has."""
        if key is not None:
            if (field, key) in self._keys:
                return
            self._keys.add((field, key))
        before, *place = self._fields.get(field, (0, line, column))
        self._fields[field] = (before + count, *place)  # type: ignore[assignment]

    def add_all(self, excess: Iterable[Excess], prefix: str, line: int | None) -> None:
        """What was trimmed off one record, under its fields' paths."""
        for one in excess:
            self.add(f"{prefix}{one.field}", one.count, line)

    def problems(self, sheet: str | None = None) -> list[Problem]:
        """One for each field."""
        return [
            Problem(field, ProblemKind.TOO_LONG, _detail(field, count), line, column, sheet)
            for field, (count, line, column) in self._fields.items()
        ]


def _detail(field: str, count: int) -> str:
    noun = field.rpartition(".")[2].replace("_", " ")
    were = "was" if count == 1 else "were"
    return f"Too much for one product: {count:,} of its {noun} {were} left out; {_MOST.get(noun, _LIST)}."
