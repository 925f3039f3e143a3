"""Match pairs and the data of their items, for tests of the judge."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from domain.kernel.errors import Conflict
from domain.kernel.ids import new_id
from domain.kernel.resource import with_changes
from domain.matching.model import DecidedBy, MatchPair, PairEvidence, PairStatus
from domain.matching.ports import PairStore
from tests.support import builders

EVIDENCE = (PairEvidence("title", 3, 4.25, "most rare words shared", "Halden", "HALDEN"),)


def build_item(variant: str, title: str = "Halden oak dining table 180 cm", **data: Any) -> dict[str, Any]:
    """Return the data of a variant."""
    return {"id": variant, "title": title, "brand": "Halden", **data}


def build_pair(left: str, right: str, **changes: Any) -> MatchPair:
    """Return an open pair of two variants."""
    match_pair = MatchPair(
        id=new_id("mpr"), status=PairStatus.OPEN, left=left, left_product=f"prod_{left}", right=right, right_product=f"prod_{right}",
        probability=0.8, prior=-3.0, evidence=EVIDENCE, conflicts=(), created_at=builders.MOMENT, updated_at=builders.MOMENT,
    )  # fmt: skip
    return replace(match_pair, **changes)


def make_answer(
    choice: str = "same", confidence: float = 0.99, *reasons: tuple[str, str, str], note: str = "They agree."
) -> dict[str, Any]:
    """Return an answer of a model."""
    names = ("field", "subject_quote", "candidate_quote")
    quotes = [dict(zip(names, reason, strict=True)) for reason in reasons or [("brand", "Halden", "Halden")]]
    return {"choice": choice, "confidence": confidence, "reasons": quotes, "note": note}


@dataclass
class FakeItems:
    """Changeable data of variants."""

    known: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    async def __call__(self, tx: Any, variants: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
        return {id: self.known[id] for id in variants if id in self.known}


@dataclass
class FakeDecisions:
    """Decisions stored in the rows of the transaction; with `refuses`, Conflict is raised after the write."""

    refuses: bool = False
    failing: list[Exception] = field(default_factory=list)
    """Errors that are raised in order, after the row was written."""

    async def merge_pair(self, tx: Any, pair_id: str, decided_by: DecidedBy, reason: str | None) -> MatchPair:
        return await self._set(tx, pair_id, PairStatus.MERGED, merge=new_id("mrg"))

    async def dismiss_pair(self, tx: Any, pair_id: str, decided_by: DecidedBy, reason: str | None) -> MatchPair:
        return await self._set(tx, pair_id, PairStatus.DISMISSED)

    async def _set(self, tx: Any, pair_id: str, status: PairStatus, **changes: Any) -> MatchPair:
        store = tx[PairStore]
        found = await store.get(pair_id, lock=True)
        if found is None or found.status != PairStatus.OPEN:
            raise Conflict("The pair is not open.")
        after = with_changes(found, tx.now, status=status, **changes)
        await store.save(after)
        if self.refuses:
            raise Conflict("Merging these would join what was dismissed.")
        if self.failing:
            raise self.failing.pop(0)
        return after
