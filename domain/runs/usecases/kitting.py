"""Sets and their parts, which are rows of their own: what a set's statement takes from elsewhere in the feed, in bounded memory."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Final

from domain.catalogue.statements import ProductStatement, VariantStatement
from domain.ingestion.columns.plan import ReadPlan
from domain.ingestion.columns.readers import components_of
from domain.ingestion.kits import PartFacts, complete
from domain.ingestion.model import Group
from domain.ingestion.normalise import normalise
from domain.ingestion.pieces import with_subtitle
from domain.kernel.problems import Problem, ProblemKind
from domain.runs.sheets import Sheet

_MOST_SETS: Final = 50_000
_MOST_PARTS: Final = 50_000
"""Sets and parts of one feed that are looked up; their facts come to some 50 MiB at most. Sets beyond are read by themselves."""
_OWN_PRICES: Final = ("cost", "msrp", "map", "price")

Line = tuple[int, int, Any]
"""Table number, line and cells."""


@dataclass(slots=True)
class Kits:
    """The sets of a feed by their product key, the codes of their parts, and what the parts' rows say.

    `hidden` are the keys of rows that are nothing but parts: no products of their own.
    """

    codes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    facts: dict[str, PartFacts] = field(default_factory=dict)
    hidden: set[str] = field(default_factory=set)
    crowded: bool = False
    _wanted: set[str] = field(default_factory=set)
    _called_parts: set[str] = field(default_factory=set)

    def noting(self, plan: ReadPlan) -> Callable[[str, Sequence[Any]], None] | None:
        """What is to be told of each row of a sheet; None for one that neither lists parts nor says which rows are."""
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
        """Whether the rows of a key have to be looked at once more."""
        return plan.grouped or key in self._wanted or key in self._called_parts

    @property
    def waiting(self) -> bool:
        """Whether there is anything to look up."""
        return bool(self._wanted or self._called_parts)

    def look(self, sheets: Sequence[Sheet], key: str, lines: Sequence[Line]) -> Problem | None:
        """Keep what the rows of one key say of parts; the problem is that the key is only a part, on its first line."""
        titled = False
        for table in dict.fromkeys(line[0] for line in lines):
            plan = sheets[table].plan
            assert plan is not None
            rows = [(line, cells) for number, line, cells in lines if number == table]
            for own, mine in _by_own_key(plan, key, rows).items():
                if own in self._wanted or own in self._called_parts:
                    statement, _ = normalise(Group(key, mine, sheets[table].name), plan)
                    titled |= self._keep(own, statement, plan, mine)
        table, line, _ = lines[0]
        plan = sheets[table].plan
        only_part = key in self._called_parts and key in self._wanted
        if (titled and not only_part) or plan is None or plan.grouped or plan.title is None or key not in self.hidden:
            self.hidden.discard(key)
            return None
        return Problem("title", ProblemKind.MISSING, "", line, None, sheets[table].name)

    def _keep(self, own: str, statement: ProductStatement, plan: ReadPlan, rows: Sequence[Any]) -> bool:
        """Whether the item has a title."""
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
        """Whether an item is no product: it is called a part and a set names it, or it has no title and one of these, or no price."""
        if own in self._called_parts:
            return title is None or own in self._wanted
        return title is None and not (variant and _priced(variant))

    def rename(self, keys: Mapping[str, str]) -> None:
        """Sets that have become variants of a product are known by its key."""
        for key in self.codes.keys() & keys.keys():
            codes = self.codes.pop(key)
            self.codes[keys[key]] = (*self.codes.get(keys[key], ()), *codes)

    def salt(self, key: str) -> bytes:
        """Tells one state of a set's parts from another; blank for what names no parts."""
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
        """One problem for each sheet whose rows are only parts, and one for sets that are too many."""
        for sheet in dict.fromkeys(problem.sheet for problem in found):
            mine = [problem for problem in found if problem.sheet == sheet]
            detail = f"{len(mine):,} items are only parts of sets; they are no products of their own."
            yield Problem("title", ProblemKind.MISSING, detail, min(problem.line or 0 for problem in mine), None, sheet)
        if self.crowded:
            detail = f"The feed has more than {_MOST_SETS:,} sets or {_MOST_PARTS:,} parts; the others' rows are not looked up."
            yield Problem("components", ProblemKind.TOO_LONG, detail)


def _priced(variant: VariantStatement) -> bool:
    return any(name in offer.data for offer in variant.offers for name in _OWN_PRICES)


def _by_own_key(plan: ReadPlan, key: str, rows: Sequence[tuple[int, Any]]) -> dict[str, list[tuple[int, Any]]]:
    if not plan.grouped:
        return {key: list(rows)}
    found: dict[str, list[tuple[int, Any]]] = {}
    for row in rows:
        found.setdefault(plan.variant_key(row[1]) or key, []).append(row)
    return found
