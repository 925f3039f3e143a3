"""Families among items that share no key: found while rows are put aside, and brought under one key once all are there."""

from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from domain.ingestion.columns.families import Member
from domain.ingestion.columns.plan import ReadPlan
from domain.kernel.bounds import VARIANTS
from domain.kernel.problems import Problem, ProblemKind

_MOST_ROWS: Final = 2_000_000
_MOST_MEMBERS: Final = 100_000
"""Rows that are compared, in four bytes each, and items that are brought together; those beyond stay apart."""


@dataclass(slots=True)
class Kinship:
    """The families of a feed. `keys` are those of items that have become variants, with their family's key."""

    keys: dict[str, str] = field(default_factory=dict)
    families: set[str] = field(default_factory=set)
    crowded: bool = False
    _numbers: "array[int]" = field(default_factory=lambda: array("I"))
    _families: dict[str, dict[str, set[int]]] = field(default_factory=dict)
    _members: int = 0

    def noting(self, plan: ReadPlan) -> Callable[[Sequence[Any]], int] | None:
        """Gives the number of each row's stem, 0 for none, and keeps it; None for a sheet that has no families."""
        read, numbers = plan.stem, self._numbers
        if read is None:
            return None

        def note(cells: Sequence[Any]) -> int:
            number = read(cells)
            if number and len(numbers) < _MOST_ROWS:
                numbers.append(number)
                return number
            return 0

        return note

    def shared(self) -> frozenset[int]:
        """The numbers that two rows or more have; the numbers themselves are forgotten."""
        found: set[int] = set()
        last = 0
        for number in sorted(self._numbers):
            if number == last:
                found.add(number)
            last = number
        self._numbers = array("I")
        return frozenset(found)

    def look(self, key: str, member: Member) -> None:
        """Take in a row whose number is shared."""
        kin = self._families.setdefault(member.family, {})
        if key not in kin:
            if self._members >= _MOST_MEMBERS:
                self.crowded = True
                return
            self._members += 1
        kin.setdefault(key, set()).add(member.apart)

    def told(self) -> Iterator[Problem]:
        """That there are too many items of families, if there are."""
        if self.crowded:
            detail = (
                f"More than {_MOST_MEMBERS:,} items may be variants of others; those beyond stay products of their own."
            )
            yield Problem("variants", ProblemKind.TOO_LONG, detail)

    def settle(self, *, apart: bool = False) -> None:
        """Decide who belongs together, if not all stay apart: items of which each has one size and colour, and no two the same."""
        for family, kin in () if apart else self._families.items():
            marks = [mark for marks in kin.values() for mark in marks]
            if 1 < len(kin) == len(marks) == len(set(marks)) and len(kin) <= VARIANTS:
                self.keys |= dict.fromkeys(kin, family)
        self.families.update(self.keys.values())
        self._families = {}
