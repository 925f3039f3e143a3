"""The index of matching in PostgreSQL: facts packed, keys as rows with the numbers of those that share them."""

import asyncio
from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from adapters.postgres.catalogue_rows import plain
from adapters.postgres.nodes.pool import Pool, reading
from adapters.postgres.session import Session, jsonb, texts
from adapters.postgres.sqlfile import statements
from domain.matching.features import MatchFeatures, StoredVariant, going_price
from domain.matching.index import COUNTED, LISTED, Backlog, Item, KeyChange, Listed, MatchModel, Queued
from domain.matching.scoring import Weights

SQL: Final = statements("match_index", most=str(LISTED))
_ITEMS: Final = ("text", "int4", "text", "text", "int8", "bytea")
_KEYS: Final = ("text", "text", "int4", "bytea", "int4", "int4")
_AT_ONCE: Final = 1_000
"""Rows that are asked for in one statement: what a driver makes of its answer holds the loop up."""

_PRICES: Final = ("currency", "price", "msrp", "map")
_ENCODE = msgspec.msgpack.Encoder().encode
_DECODE = msgspec.msgpack.Decoder(MatchFeatures).decode


class PostgresMatchIndex:
    """MatchIndexStore."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def stale(self, after: str, limit: int) -> Sequence[Queued]:
        return [Queued(*row) for row in await self._session.all(SQL["stale"], after=after, limit=limit)]

    async def waiting(self, after: str, limit: int) -> Sequence[Queued]:
        return [Queued(*row) for row in await self._session.all(SQL["waiting"], after=after, limit=limit)]

    async def idle(self) -> bool:
        return await self._session.one(SQL["any"]) is None

    async def stored(self, variants: Sequence[str]) -> Sequence[StoredVariant]:
        ids = texts(variants)
        rows = await self._session.all(SQL["stored"], ids=ids)
        offers = await self._session.all(SQL["offered"], ids=ids)
        return await asyncio.to_thread(_stored, rows, offers)

    async def of_variants(self, variants: Sequence[str]) -> Sequence[Item]:
        rows = await self._session.all(SQL["of_variants"], ids=texts(variants))
        return await asyncio.to_thread(lambda: [_item(row) for row in rows])

    async def numbered(self, numbers: Sequence[int]) -> Sequence[Item]:
        rows: list[Any] = []
        for some in _parts(numbers):
            rows += await self._session.all(SQL["numbered"], numbers=texts(map(str, some)))
        return await asyncio.to_thread(lambda: [_item(row) for row in rows])

    async def numbers(self, count: int) -> range:
        row = await self._session.one(SQL["last_number"])
        first = 1 + ((row and row[0]) or 0)
        return range(first, first + count)

    async def listed(self, keys: Sequence[str]) -> Mapping[str, Mapping[str, Listed]]:
        rows: list[Any] = []
        for some in _parts(keys):
            rows += await self._session.all(SQL["listed"], keys=texts(some))
        return await asyncio.to_thread(_by_key, rows)

    async def index(self, items: Sequence[Item], changes: Mapping[tuple[str, str], KeyChange]) -> None:
        session = self._session
        await session.stage(SQL["staging"])
        made, keys = await asyncio.to_thread(lambda: ([_row(item) for item in items], _key_rows(changes)))
        await session.run("DELETE FROM new_match_items")
        await session.copy(SQL["copy_items"], made, _ITEMS)
        await session.run(SQL["save_items"])
        await self._drop({place: change for place, change in changes.items() if change.removed})
        await session.run("DELETE FROM new_match_keys")
        await session.copy(SQL["copy_keys"], keys, _KEYS)
        await session.run(SQL["save_keys"])

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
        await self._session.run(SQL["drop_numbers"], rows=jsonb(rows))

    async def matched(self, variants: Sequence[Queued]) -> None:
        rows = [{"variant": one.variant, "stamp": one.stamp} for one in variants]
        await self._session.run(SQL["matched"], rows=jsonb(rows))

    async def requeue(self, variants: Sequence[str]) -> None:
        await self._session.run(SQL["requeue"], ids=texts(variants))

    async def requeue_all(self) -> int:
        await self._session.run(SQL["forget_model"])
        return await self._session.run(SQL["requeue_all"])

    async def model(self) -> MatchModel | None:
        row = await self._session.one(SQL["model"])
        made = MatchModel(row[0], msgspec.convert(row[1], Weights), row[2]) if row else None
        return made if made is not None and made.weights.fits else None

    async def keep_model(self, model: MatchModel) -> None:
        weights = jsonb(msgspec.to_builtins(model.weights))
        await self._session.run(SQL["keep_model"], items=model.items, weights=weights, learnt_at=model.learnt_at)


class PostgresMatchBacklog:
    """MatchBacklog."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def backlog(self) -> Backlog:
        found = [rows[0] for rows in await self._pool.scatter_all(reading(SQL["backlog"]))]
        return Backlog(sum(count for count, _ in found), max((seconds for _, seconds in found), default=0.0))


def _parts(values: Sequence[Any]) -> Iterable[Sequence[Any]]:
    return (values[at : at + _AT_ONCE] for at in range(0, len(values), _AT_ONCE))


def _stored(rows: Iterable[Sequence[Any]], offers: Iterable[Sequence[Any]]) -> list[StoredVariant]:
    offered: dict[str, list[tuple[str, dict[str, Any]]]] = defaultdict(list)
    for variant, id, *data in offers:
        offered[variant].append((id, dict(zip(_PRICES, data, strict=True))))
    return [
        StoredVariant(id, product, source, plain(of_product), plain(of_variant), *going_price(offered.get(id, ())))
        for id, product, source, of_product, of_variant in rows
    ]


def _item(row: Sequence[Any]) -> Item:
    variant, product, source, stamp, facts, number = row
    return Item(variant, product, source, stamp, _DECODE(facts), number)


def _row(item: Item) -> tuple[Any, ...]:
    return item.variant, item.number, item.product, item.source, item.stamp, _ENCODE(item.facts)


def _key_rows(changes: Mapping[tuple[str, str], KeyChange]) -> list[tuple[Any, ...]]:
    """Rows of new_match_keys, in the order in which they are locked."""
    return [
        (key, source, change.items, _listed(key, change), change.codes, change.stems)
        for (key, source), change in sorted(changes.items())
    ]


def _listed(key: str, change: KeyChange) -> bytes | None:
    return None if key[0] in COUNTED else array("i", change.added).tobytes()


def _by_key(rows: Iterable[Sequence[Any]]) -> Mapping[str, Mapping[str, Listed]]:
    found: dict[str, dict[str, Listed]] = {}
    for key, source, items, numbers, codes, stems in rows:
        listed = Listed(items, None if numbers is None else array("i", numbers), codes, stems)
        found.setdefault(key, {})[source] = listed
    return found
