"""What rows of different keys have to do with each other, looked up once all are put aside: sets with parts, and families."""

from collections.abc import Sequence
from typing import Any

from domain.catalogue.batch import SLOTS
from domain.kernel.problems import Problem
from domain.runs.chunks import slot_of
from domain.runs.crowding import weight_of
from domain.runs.ports import Spool
from domain.runs.usecases.spooling import PUSHED, Spooling
from ports.codec import Codec


def relate(feed: Spooling, spool: Spool, codec: Codec) -> None:
    """Look up the parts of sets, and put the rows of families aside under one key; feeds without either cost nothing."""
    if feed.kits.waiting:
        _look_up_parts(feed, spool, codec)
    shared = feed.kin.shared()
    if shared:
        _look_up_kin(feed, spool, codec, shared)
        _bring_together(feed, spool, codec)
        for problem in feed.kin.told():
            feed.problems.add(problem)


def _look_up_parts(feed: Spooling, spool: Spool, codec: Codec) -> None:
    """What parts' rows say, kept for the sets that name them."""
    found: list[Problem] = []
    for bucket in range(feed.buckets):
        by_key: dict[str, list[tuple[int, int, Any]]] = {}
        for entry in spool.lines(bucket):
            head, _, cells = entry.partition(b"\t")
            table, key, line, *_ = codec.decode(head)
            plan = feed.sheets[table].plan
            if plan is not None and feed.kits.seeks(plan, key):
                by_key.setdefault(key, []).append((table, line, codec.decode(cells)))
        found += filter(None, (feed.kits.look(feed.sheets, key, lines) for key, lines in by_key.items()))
    for problem in feed.kits.told(found):
        feed.problems.add(problem)


def _look_up_kin(feed: Spooling, spool: Spool, codec: Codec, shared: frozenset[int]) -> None:
    """Who the rows are whose stem several have. Where putting them aside twice takes too much room they stay apart."""
    size = 0
    for bucket in range(feed.buckets):
        for entry in spool.lines(bucket):
            head, _, cells = entry.partition(b"\t")
            table, key, _, *number = codec.decode(head)
            if number and number[0] in shared:
                plan = feed.sheets[table].plan
                member = plan.family(codec.decode(cells)) if plan is not None and plan.family else None
                if member is not None:
                    feed.kin.look(key, member)
                    size += len(cells)
    feed.kin.settle(apart=size > feed.room)


def _bring_together(feed: Spooling, spool: Spool, codec: Codec) -> None:
    """Put the rows of a family's items aside once more, under the family's key."""
    family_of = feed.kin.keys
    for bucket in range(feed.buckets):
        mine: list[tuple[str, Sequence[Any], bytes]] = []
        for entry in spool.lines(bucket):
            head, _, cells = entry.partition(b"\t")
            table, key, line, *_ = codec.decode(head)
            if table != PUSHED and key in family_of:
                mine.append((family_of[key], (table, family_of[key], line), cells))
        for family, moved, cells in mine:
            slot = slot_of(family, feed.stream)
            place = slot * feed.buckets // SLOTS
            feed.slots[place].append(slot)
            feed.held[place] += weight_of(cells)
            feed.room -= len(cells)
            spool.put(place, codec.encode(moved) + b"\t" + cells)
    feed.kits.rename(family_of)
