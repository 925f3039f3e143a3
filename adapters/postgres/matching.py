"""Matching in PostgreSQL: match pairs, merges, the judge's settings, and the match index of features and keys."""

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
    conflicts={"match_pairs_key": "A match pair of these two variants already exists."},
)
MERGES = Table(Merge, "merges", conflicts={"merges_applied": "This is already merged."})
JUDGE_SETTINGS = Table(
    JudgeSettings,
    "judge_settings",
    conflicts={
        "judge_settings_pkey": "Another request changed the settings at the same time. Read them and try again."
    },
)
SQL = statements("matching", pair=PAIRS.columns(), merge=MERGES.columns(), most=str(LISTED))
_TYPES = (
    "text", "text", "text", "text", "text", "text", "float8", "float8", "jsonb", "text[]", "timestamptz",
    "timestamptz", "jsonb", "text", "bool",
)  # fmt: skip
_ITEMS = ("text", "int4", "text", "text", "int8", "bytea")
_KEYS = ("text", "text", "int4", "bytea", "int4", "int4")
_CHUNK = 1_000
"""Rows per statement; decoding more at once would block the event loop."""
_PRICES = ("currency", "price", "msrp", "map")
_ENCODE = msgspec.msgpack.Encoder().encode
_DECODE = msgspec.msgpack.Decoder(MatchFeatures).decode


def _ids(variants: Iterable[str]) -> dict[str, Any]:
    return {"ids": texts(variants)}


class _FilteredStore(TableStore[R]):
    async def _matching(self, statement: str, filter: PairFilter | MergeFilter, page_request: PageRequest) -> Page[R]:
        values = {name: value for name, value in asdict(filter).items() if value is not None}
        return await self._page(self._table.row_of, statement, page_request, names=values.keys(), **values)


class PostgresPairStore(_FilteredStore[MatchPair], PairStore):
    """Match pairs of the tenant."""

    _sql, _table = SQL, PAIRS
    open_of = every(PAIRS.row_of, values=_ids)
    unjudged = every(PAIRS.row_of)

    async def matching(self, filter: PairFilter, page_request: PageRequest) -> Page[MatchPair]:
        return await self._matching("pairs", filter, page_request)

    async def add_all(self, rows: Sequence[MatchPair]) -> None:
        """Insert pairs by COPY; a batch has hundreds, each with several kilobytes of evidence."""
        if not rows:
            return
        await self._session.stage(SQL["staging_pairs"])
        await self.fill("match_pairs", ([*self._table.values(row).values()] for row in rows), _TYPES)
        await self._run("add_pairs")

    async def of_variants(self, variants: Sequence[str], *, lock: bool = False) -> Sequence[MatchPair]:
        return await self._every(PAIRS.row_of, "pairs_of_locked" if lock else "pairs_of", ids=texts(variants))


class PostgresMergeStore(_FilteredStore[Merge], MergeStore):
    """Merges of the tenant."""

    _sql, _table = SQL, MERGES
    applied = every(MERGES.row_of, values=_ids)

    async def matching(self, filter: MergeFilter, page_request: PageRequest) -> Page[Merge]:
        return await self._matching("merges", filter, page_request)


class PostgresMatchIndex(TenantStore, MatchIndexStore):
    """Match index and match queue of the tenant."""

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
        parts = (values[at : at + _CHUNK] for at in range(0, len(values), _CHUNK))
        return [row for part in parts for row in await self._rows(statement, **{name: texts(part)})]

    async def index(self, items: Sequence[Item], changes: Mapping[tuple[str, str], KeyChange]) -> None:
        await self._session.stage(SQL["staging"])
        item_rows, keys = await asyncio.to_thread(lambda: ([_row(item) for item in items], _key_rows(changes)))
        await self.fill("match_items", item_rows, _ITEMS)
        await self._run("save_items")
        await self._drop({place: change for place, change in changes.items() if change.removed})
        await self.fill("match_keys", keys, _KEYS)
        await self._run("save_keys")

    async def _drop(self, changes: Mapping[tuple[str, str], KeyChange]) -> None:
        """Remove item numbers from the keys that list their items."""
        if not changes:
            return
        stored = await self.listed(sorted({key for key, _ in changes}))
        rows = []
        for (key, source), change in changes.items():
            entry = stored.get(key, {}).get(source)
            if entry is not None and entry.numbers is not None:
                removed = set(change.removed)
                remaining = array("i", (number for number in entry.numbers if number not in removed))
                rows.append({"key": key, "source": source, "numbers": remaining.tobytes().hex()})
        await self._run("drop_numbers", rows=jsonb(rows))

    async def matched(self, variants: Sequence[Queued]) -> None:
        rows = [{"variant": queued.variant, "stamp": queued.stamp} for queued in variants]
        await self._run("matched", rows=jsonb(rows))

    async def requeue_all(self) -> int:
        await self._run("forget_model")
        return await self._run("requeue_all")

    async def model(self) -> MatchModel | None:
        model = await self._first(
            lambda items, weights, at: MatchModel(items, msgspec.convert(weights, Weights), at), "model"
        )
        return model if model is not None and model.weights.fits else None

    async def keep_model(self, model: MatchModel) -> None:
        weights = jsonb(msgspec.to_builtins(model.weights))
        await self._run("keep_model", items=model.items, weights=weights, learnt_at=model.learnt_at)


class PostgresMatchBacklog(CoordinatorStore):
    """Backlog of the match queue, over all tenants."""

    _sql = SQL

    async def backlog(self) -> Backlog:
        found = await self._gather_all("backlog")
        return Backlog(sum(count for count, _ in found), max((seconds for _, seconds in found), default=0.0))


def _stored(rows: Iterable[Fetched], offers: Iterable[Fetched]) -> list[StoredVariant]:
    offers_by_variant: dict[str, list[tuple[str, dict[str, Any]]]] = defaultdict(list)
    for variant, id, *data in offers:
        offers_by_variant[variant].append((id, dict(zip(_PRICES, data, strict=True))))
    return [
        StoredVariant(
            id, product, source, plain(product_data), plain(variant_data), *going_price(offers_by_variant.get(id, ()))
        )
        for id, product, source, product_data, variant_data in rows
    ]


def _item(row: Fetched) -> Item:
    variant, product, source, stamp, facts, number = row
    return Item(variant, product, source, stamp, _DECODE(facts), number)


def _row(item: Item) -> Fetched:
    return item.variant, item.number, item.product, item.source, item.stamp, _ENCODE(item.facts)


def _key_rows(changes: Mapping[tuple[str, str], KeyChange]) -> list[Fetched]:
    """Return the rows of new_match_keys in the order in which keys are locked."""
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
    by_key: dict[str, dict[str, Listed]] = {}
    for key, source, items, numbers, codes, stems in rows:
        listed = Listed(items, None if numbers is None else array("i", numbers), codes, stems)
        by_key.setdefault(key, {})[source] = listed
    return by_key
