"""Matching in PostgreSQL: pairs, merges, the judge's settings, and the index of packed facts and of keys with the numbers that share them."""

import asyncio
from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import msgspec

from adapters.postgres.catalogue_rows import plain
from adapters.postgres.nodes.connecting import Fetched
from adapters.postgres.session import jsonb, texts
from adapters.postgres.stores import CoordinatorStore, TenantStore, every, run, statements
from adapters.postgres.table import Column, R, Table, TableStore
from domain.kernel.paging import Page, PageRequest
from domain.matching.features import MatchFeatures, StoredVariant, going_price
from domain.matching.index import COUNTED, LISTED, Backlog, Item, KeyChange, Listed, MatchModel, Queued
from domain.matching.model import JudgeSettings, MatchPair, Merge, MergeFilter, PairFilter
from domain.matching.ports import MatchIndexStore, MergeStore, PairStore
from domain.matching.scoring import Weights

PAIRS = Table(
    MatchPair,
    "match_pairs",
    exceptions={"left": Column("left_variant"), "right": Column("right_variant")},
    conflicts={"match_pairs_key": "There is a pair of these two already."},
)
MERGES = Table(Merge, "merges", conflicts={"merges_applied": "It is merged already."})
JUDGE_SETTINGS = Table(
    JudgeSettings,
    "judge_settings",
    conflicts={
        "judge_settings_pkey": "Somebody else set the judge at the same moment; read its settings and try again."
    },
)
SQL = statements("matching", pair=PAIRS.columns(), merge=MERGES.columns(), most=str(LISTED))
_TYPES = (
    "text", "text", "text", "text", "text", "text", "float8", "float8", "jsonb", "text[]", "timestamptz",
    "timestamptz", "jsonb", "text", "bool",
)  # fmt: skip
_ITEMS = ("text", "int4", "text", "text", "int8", "bytea")
_KEYS = ("text", "text", "int4", "bytea", "int4", "int4")
_AT_ONCE = 1_000
"""Rows that are read in one statement: decoding more of them would hold up the event loop."""
_PRICES = ("currency", "price", "msrp", "map")
_ENCODE = msgspec.msgpack.Encoder().encode
_DECODE = msgspec.msgpack.Decoder(MatchFeatures).decode


def _ids(variants: Iterable[str]) -> dict[str, Any]:
    return {"ids": texts(variants)}


class _FilteredStore(TableStore[R]):
    async def _matching(self, statement: str, filter: PairFilter | MergeFilter, page_request: PageRequest) -> Page[R]:
        given = {name: value for name, value in asdict(filter).items() if value is not None}
        return await self._page(self._table.row_of, statement, page_request, names=given.keys(), **given)


class PostgresPairStore(_FilteredStore[MatchPair], PairStore):
    """The tenant's pairs."""

    _sql, _table = SQL, PAIRS
    open_of = every(PAIRS.row_of, values=_ids)
    unjudged = every(PAIRS.row_of)

    async def matching(self, filter: PairFilter, page_request: PageRequest) -> Page[MatchPair]:
        return await self._matching("pairs", filter, page_request)

    async def add_all(self, rows: Sequence[MatchPair]) -> None:
        """By COPY: a batch of matching has hundreds, each with a page of evidence."""
        if not rows:
            return
        await self._session.stage(SQL["staging_pairs"])
        await self.fill("match_pairs", ([*self._table.values(row).values()] for row in rows), _TYPES)
        await self._run("add_pairs")

    async def of_variants(self, variants: Sequence[str], *, lock: bool = False) -> Sequence[MatchPair]:
        return await self._every(PAIRS.row_of, "pairs_of_locked" if lock else "pairs_of", ids=texts(variants))


class PostgresMergeStore(_FilteredStore[Merge], MergeStore):
    """The tenant's merges."""

    _sql, _table = SQL, MERGES
    applied = every(MERGES.row_of, values=_ids)

    async def matching(self, filter: MergeFilter, page_request: PageRequest) -> Page[Merge]:
        return await self._matching("merges", filter, page_request)


class PostgresMatchIndex(TenantStore, MatchIndexStore):
    """MatchIndexStore."""

    _sql = SQL
    stale = every(Queued)
    waiting = every(Queued)
    requeue = run(values=_ids)

    async def idle(self) -> bool:
        return not await self._rows("any")

    async def stored(self, variants: Sequence[str]) -> Sequence[StoredVariant]:
        ids = texts(variants)
        rows = await self._rows("stored", ids=ids)
        offers = await self._rows("offered", ids=ids)
        return await asyncio.to_thread(_stored, rows, offers)

    async def of_variants(self, variants: Sequence[str]) -> Sequence[Item]:
        rows = await self._rows("of_variants", ids=texts(variants))
        return await asyncio.to_thread(lambda: [_item(row) for row in rows])

    async def numbered(self, numbers: Sequence[int]) -> Sequence[Item]:
        rows = await self._in_parts("numbered", "numbers", list(map(str, numbers)))
        return await asyncio.to_thread(lambda: [_item(row) for row in rows])

    async def numbers(self, count: int) -> range:
        first = 1 + (await self._value("last_number") or 0)
        return range(first, first + count)

    async def listed(self, keys: Sequence[str]) -> Mapping[str, Mapping[str, Listed]]:
        return await asyncio.to_thread(_by_key, await self._in_parts("listed", "keys", keys))

    async def _in_parts(self, statement: str, name: str, values: Sequence[str]) -> list[Fetched]:
        parts = (values[at : at + _AT_ONCE] for at in range(0, len(values), _AT_ONCE))
        return [row for part in parts for row in await self._rows(statement, **{name: texts(part)})]

    async def index(self, items: Sequence[Item], changes: Mapping[tuple[str, str], KeyChange]) -> None:
        await self._session.stage(SQL["staging"])
        made, keys = await asyncio.to_thread(lambda: ([_row(item) for item in items], _key_rows(changes)))
        await self.fill("match_items", made, _ITEMS)
        await self._run("save_items")
        await self._drop({place: change for place, change in changes.items() if change.removed})
        await self.fill("match_keys", keys, _KEYS)
        await self._run("save_keys")

    async def _drop(self, changes: Mapping[tuple[str, str], KeyChange]) -> None:
        """Take numbers out of the lists of keys that have one."""
        if not changes:
            return
        found = await self.listed(sorted({key for key, _ in changes}))
        rows = []
        for (key, source), change in changes.items():
            kept = found.get(key, {}).get(source)
            if kept is not None and kept.numbers is not None:
                gone = set(change.removed)
                left = array("i", (number for number in kept.numbers if number not in gone))
                rows.append({"key": key, "source": source, "numbers": left.tobytes().hex()})
        await self._run("drop_numbers", rows=jsonb(rows))

    async def matched(self, variants: Sequence[Queued]) -> None:
        rows = [{"variant": one.variant, "stamp": one.stamp} for one in variants]
        await self._run("matched", rows=jsonb(rows))

    async def requeue_all(self) -> int:
        await self._run("forget_model")
        return await self._run("requeue_all")

    async def model(self) -> MatchModel | None:
        made = await self._first(
            lambda items, weights, at: MatchModel(items, msgspec.convert(weights, Weights), at), "model"
        )
        return made if made is not None and made.weights.fits else None

    async def keep_model(self, model: MatchModel) -> None:
        weights = jsonb(msgspec.to_builtins(model.weights))
        await self._run("keep_model", items=model.items, weights=weights, learnt_at=model.learnt_at)


class PostgresMatchBacklog(CoordinatorStore):
    """MatchBacklog."""

    _sql = SQL

    async def backlog(self) -> Backlog:
        found = await self._gather_all("backlog")
        return Backlog(sum(count for count, _ in found), max((seconds for _, seconds in found), default=0.0))


def _stored(rows: Iterable[Fetched], offers: Iterable[Fetched]) -> list[StoredVariant]:
    offered: dict[str, list[tuple[str, dict[str, Any]]]] = defaultdict(list)
    for variant, id, *data in offers:
        offered[variant].append((id, dict(zip(_PRICES, data, strict=True))))
    return [
        StoredVariant(id, product, source, plain(of_product), plain(of_variant), *going_price(offered.get(id, ())))
        for id, product, source, of_product, of_variant in rows
    ]


def _item(row: Fetched) -> Item:
    variant, product, source, stamp, facts, number = row
    return Item(variant, product, source, stamp, _DECODE(facts), number)


def _row(item: Item) -> Fetched:
    return item.variant, item.number, item.product, item.source, item.stamp, _ENCODE(item.facts)


def _key_rows(changes: Mapping[tuple[str, str], KeyChange]) -> list[Fetched]:
    """Rows of new_match_keys, in the order in which they are locked."""
    return [
        (
            key,
            source,
            change.items,
            None if key[0] in COUNTED else array("i", change.added).tobytes(),
            change.codes,
            change.stems,
        )
        for (key, source), change in sorted(changes.items())
    ]


def _by_key(rows: Iterable[Fetched]) -> Mapping[str, Mapping[str, Listed]]:
    found: dict[str, dict[str, Listed]] = {}
    for key, source, items, numbers, codes, stems in rows:
        listed = Listed(items, None if numbers is None else array("i", numbers), codes, stems)
        found.setdefault(key, {})[source] = listed
    return found
