"""Relations of rows with different keys: variants without a shared key, and sets with their parts."""

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from domain.catalogue.statements import ProductStatement, VariantStatement
from domain.ingestion.columns.families import Member
from domain.ingestion.columns.plan import ReadPlan
from domain.ingestion.columns.readers import components_of
from domain.ingestion.kits import PartFacts, complete
from domain.ingestion.normalise import normalise
from domain.ingestion.pieces import with_subtitle
from domain.kernel.bounds import VARIANTS
from domain.kernel.problems import Problem, ProblemKind
from domain.runs.sheets import Sheet

_MOST_ROWS = 2_000_000
_MOST_MEMBERS = 100_000
"""Rows that are compared, in four bytes each, and items that are brought together; those beyond stay apart."""


@dataclass(slots=True)
class Kinship:
    """Grouping of a feed's items into products. `keys` maps keys of items that became variants to their product's key."""

    keys: dict[str, str] = field(default_factory=dict)
    families: set[str] = field(default_factory=set)
    crowded: bool = False
    _numbers: "array[int]" = field(default_factory=lambda: array("I"))
    _families: dict[str, dict[str, set[int]]] = field(default_factory=dict)
    _members: int = 0

    def noting(self, plan: ReadPlan) -> Callable[[Sequence[Any]], int] | None:
        """Return a function that records and returns the stem number of a row (0 for none), or None for a sheet without families."""
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
        """Return the stem numbers that two or more rows have, and discard all numbers."""
        found: set[int] = set()
        last = 0
        for number in sorted(self._numbers):
            if number == last:
                found.add(number)
            last = number
        self._numbers = array("I")
        return frozenset(found)

    def look(self, key: str, member: Member) -> None:
        """Add a row whose stem number is shared."""
        kin = self._families.setdefault(member.family, {})
        if key not in kin:
            if self._members >= _MOST_MEMBERS:
                self.crowded = True
                return
            self._members += 1
        kin.setdefault(key, set()).add(member.apart)

    def told(self) -> Iterator[Problem]:
        """Yield a problem if there are too many items to group."""
        if self.crowded:
            detail = (
                f"More than {_MOST_MEMBERS:,} items may be variants of others; those beyond stay products of their own."
            )
            yield Problem("variants", ProblemKind.TOO_LONG, detail)

    def settle(self, *, apart: bool = False) -> None:
        """Decide the groups, unless all stay apart: each item has one size and colour, and no two have the same."""
        for family, kin in () if apart else self._families.items():
            marks = [mark for marks in kin.values() for mark in marks]
            if 1 < len(kin) == len(marks) == len(set(marks)) and len(kin) <= VARIANTS:
                self.keys |= dict.fromkeys(kin, family)
        self.families.update(self.keys.values())
        self._families = {}


_MOST_SETS = 50_000
_MOST_PARTS = 50_000
"""Sets and parts of one feed that are looked up; their facts come to some 50 MiB at most. Sets beyond are read by themselves."""
_OWN_PRICES = ("cost", "msrp", "map", "price")

Line = tuple[int, int, Any]
"""Table number, line number and cells."""


@dataclass(slots=True)
class Kits:
    """Sets of a feed by their product key, the codes of their parts, and the data of the parts' rows.

    `hidden` are the keys of rows that are only parts and not products of their own.
    """

    codes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    facts: dict[str, PartFacts] = field(default_factory=dict)
    hidden: set[str] = field(default_factory=set)
    crowded: bool = False
    _wanted: set[str] = field(default_factory=set)
    _called_parts: set[str] = field(default_factory=set)

    def noting(self, plan: ReadPlan) -> Callable[[str, Sequence[Any]], None] | None:
        """Return what is to be told of each row of a sheet; None for one that neither lists parts nor says which rows are."""
        if not plan.components and plan.is_part is None:
            return None

        def note(key: str, cells: Sequence[Any]) -> None:
            for place in plan.components:
                if place < len(cells) and cells[place]:
                    self._list(key, [part["sku"] for part in components_of(cells[place]).value or () if "sku" in part])
            if plan.is_part is not None and plan.is_part(cells) and len(self._called_parts) < _MOST_PARTS:
                self._called_parts.add(key)

        return note

    def _list(self, key: str, codes: Sequence[str]) -> None:
        if len(self.codes) >= _MOST_SETS or len(self._wanted) + len(codes) > _MOST_PARTS:
            self.crowded = True
            return
        self.codes[key] = (*self.codes.get(key, ()), *codes)
        self._wanted.update(codes)

    def seeks(self, plan: ReadPlan, key: str) -> bool:
        """Return whether the rows of a key must be looked up again."""
        return plan.grouped or key in self._wanted or key in self._called_parts

    @property
    def waiting(self) -> bool:
        """Return whether any lookups are pending."""
        return bool(self._wanted or self._called_parts)

    def look(self, sheets: Sequence[Sheet], key: str, lines: Sequence[Line]) -> Problem | None:
        """Store the data of a key's rows as parts. Return a problem on the first line if the key is only a part."""
        titled = False
        for table in dict.fromkeys(line[0] for line in lines):
            plan = sheets[table].plan
            assert plan is not None
            rows = [(line, cells) for number, line, cells in lines if number == table]
            by_own_key: dict[str, list[tuple[int, Any]]] = {}
            for row in rows:
                by_own_key.setdefault((plan.grouped and plan.variant_key(row[1])) or key, []).append(row)
            for own, mine in by_own_key.items():
                if own in self._wanted or own in self._called_parts:
                    statement, _ = normalise(key, mine, plan, sheets[table].name)
                    titled |= self._keep(own, statement, plan, mine)
        table, line, _ = lines[0]
        plan = sheets[table].plan
        only_part = key in self._called_parts and key in self._wanted
        if (titled and not only_part) or plan is None or plan.grouped or plan.title is None or key not in self.hidden:
            self.hidden.discard(key)
            return None
        return Problem("title", ProblemKind.MISSING, "", line, None, sheets[table].name)

    def _keep(self, own: str, statement: ProductStatement, plan: ReadPlan, rows: Sequence[Any]) -> bool:
        """Store the item's data as a part and return whether the item has a title."""
        variant = next(iter(statement.variants), None)
        own_title = (variant.data.get("title") if variant else None) or statement.data.get("title")
        title = with_subtitle(own_title, statement.data.get("description")) or None
        if variant is not None and own in self._wanted and own not in self.facts:
            data = variant.data
            volume = plan.volume(rows[0][1]) if plan.volume else None
            cartons = tuple(data.get("cartons", ()))
            self.facts[own] = PartFacts(title, data.get("weight"), volume, data.get("dimensions"), cartons)
        if not plan.grouped and self._is_only_part(own, variant, title):
            self.hidden.add(own)
        return title is not None

    def _is_only_part(self, own: str, variant: VariantStatement | None, title: str | None) -> bool:
        """Return whether an item is not a product: marked as a part and named by a set, or untitled and either of these or without a price."""
        if own in self._called_parts:
            return title is None or own in self._wanted
        offers = variant.offers if variant else ()
        return title is None and not any(name in offer.data for offer in offers for name in _OWN_PRICES)

    def rename(self, keys: Mapping[str, str]) -> None:
        """Replace the keys of sets that have become variants of a product with its key."""
        for key in self.codes.keys() & keys.keys():
            codes = self.codes.pop(key)
            self.codes[keys[key]] = (*self.codes.get(keys[key], ()), *codes)

    def salt(self, key: str) -> bytes:
        """Return a salt of the state of a set's parts; empty if the key names none."""
        codes = self.codes.get(key)
        if codes is None:
            return b""
        facts = repr([self.facts.get(code) for code in codes])
        return blake2b(facts.encode(), digest_size=16).digest()

    def completed(
        self, statement: ProductStatement, plan: ReadPlan, rows: Sequence[tuple[int, Any]], sheet: str | None
    ) -> Iterable[Problem]:
        """Complete the sets among a statement's variants, in place."""
        for variant in statement.variants:
            if not variant.data.get("components"):
                continue
            line, cells = next((row for row in rows if plan.variant_key(row[1]) == variant.key), rows[0])
            title = variant.data.get("title") or statement.data.get("title")
            title = with_subtitle(title, statement.data.get("description")) or variant.key
            volume = plan.volume(cells) if plan.volume else None
            for fault in complete(variant.data, title, volume, self.facts):
                yield Problem("components", fault.problem, fault.detail, line, None, sheet)

    def told(self, found: Sequence[Problem]) -> Iterable[Problem]:
        """Yield a problem for each sheet whose rows are only parts, and one for too many sets."""
        for sheet in dict.fromkeys(problem.sheet for problem in found):
            mine = [problem for problem in found if problem.sheet == sheet]
            detail = f"{len(mine):,} items are only parts of sets; they are no products of their own."
            yield Problem("title", ProblemKind.MISSING, detail, min(problem.line or 0 for problem in mine), None, sheet)
        if self.crowded:
            detail = f"The feed has more than {_MOST_SETS:,} sets or {_MOST_PARTS:,} parts; the others' rows are not looked up."
            yield Problem("components", ProblemKind.TOO_LONG, detail)
