"""Proof and risk of a proposed column mapping, from two replays of a stored file: without and with the mapping."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from msgspec import to_builtins

from domain.events.model import Event
from domain.ingestion.model import Column, MappingTier
from domain.kernel.json_values import to_json_value
from domain.proposals.model import MAX_SAMPLES, Proof, ProofCounts, ProofSample, Risk
from domain.runs.replay import ReplayResult

PROTECTED_PATHS: Final = frozenset(
    "price cost msrp map compare_at currency data.title data.brand data.sku data.gtin data.mpn".split()
)
"""Paths of prices and of what identifies an item; a change of one of them in an existing item has no low risk."""
UNCERTAIN_TIERS: Final = frozenset({MappingTier.MODEL, MappingTier.FUZZY})
"""Tiers of columns with which a mapping has no low risk."""


def build_proof(run: str, before: ReplayResult, after: ReplayResult) -> Proof:
    """Return the proof of a mapping: the counts of both replays, and values that only the second one sets, one per path."""
    known = {_build_key(*field) for event in before.events for field in event.fields}
    samples: dict[str, ProofSample] = {}
    for event in after.events:
        for path, old, new in event.fields:
            if path not in samples and _build_key(path, old, new) not in known:
                samples[path] = ProofSample(path, *to_builtins(to_json_value([old, new])))
    return Proof(run, _count(before), _count(after), tuple(samples.values())[:MAX_SAMPLES])


def _build_key(path: str, old: Any, new: Any) -> tuple[str, str, str]:
    return path, repr(old), repr(new)


def _count(result: ReplayResult) -> ProofCounts:
    return ProofCounts(result.rows, result.items, result.problems)


def is_improvement(proof: Proof) -> bool:
    """Return whether a mapping adds products; or keeps their number, and reduces problems or sets further values without new problems."""
    before, after = proof.before, proof.after
    if after.products != before.products:
        return after.products > before.products
    return after.problems < before.problems or (bool(proof.samples) and after.problems == before.problems)


def assess_risk(proof: Proof, columns: Iterable[Column], before: ReplayResult, after: ReplayResult) -> Risk:
    """Return the risk of a mapping.

    The risk is low if the mapping adds products or has fewer problems, withdraws nothing, changes no price and no identity of an existing item,
    and no column was assigned by a model or by similarity.
    """
    is_better = proof.after.products > proof.before.products or proof.after.problems < proof.before.problems
    is_certain = UNCERTAIN_TIERS.isdisjoint(column.tier for column in columns)
    is_harmless = after.withdrawn <= before.withdrawn and not _changes_protected_values(after.events)
    return Risk.LOW if is_better and is_certain and is_harmless else Risk.NORMAL


def _changes_protected_values(events: Sequence[Event]) -> bool:
    return any(
        path in PROTECTED_PATHS
        for event in events
        if not event.type.endswith(".created")
        for path, _, _ in event.fields
    )
