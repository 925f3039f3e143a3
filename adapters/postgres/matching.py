"""Matching in PostgreSQL: match pairs, merges, settings of the judge, and the match index of features and keys."""

import asyncio
from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import msgspec

from adapters.postgres.catalogue_rows import decode_data
from adapters.postgres.nodes.connections import DatabaseRow
from adapters.postgres.session import encode_jsonb, encode_texts
from adapters.postgres.stores import (
    CoordinatorStore,
    TenantStore,
    execute_count,
    fetch_all,
    fetch_scalar,
    load_statements,
)
from adapters.postgres.table import ColumnCodec, R, Table, TableStore
from domain.kernel.paging import Page, PageRequest
from domain.matching.features import MatchFeatures, StoredVariant, find_lowest_price
from domain.matching.index import (
    COUNT_ONLY_PREFIXES,
    MAX_LISTED_ITEMS,
    IndexedItem,
    KeyChange,
    KeyListing,
    MatchingBacklog,
    MatchModel,
    QueuedVariant,
)
from domain.matching.model import JudgeSettings, MatchPair, Merge, MergeFilter, PairFilter
from domain.matching.ports import MatchIndexStore, MergeStore, PairStore
from domain.matching.scoring import Weights

PAIRS = Table(
    MatchPair,
    "match_pairs",
    special_codecs={
        "left": ColumnCodec("left_variant"),
        "right": ColumnCodec("right_variant"),
    },
    conflicts={"match_pairs_key": "A match of these two variants already exists."},
)
MERGES = Table(Merge, "merges", conflicts={"merges_applied": "The variant or product is already merged."})
JUDGE_SETTINGS = Table(
    JudgeSettings,
    "judge_settings",
    conflicts={
        "judge_settings_pkey": "Another request changed the settings at the same time. Read them and try again."
    },
)
SQL = load_statements(
    "matching", pair=PAIRS.build_column_list(), merge=MERGES.build_column_list(), max_listed_items=str(MAX_LISTED_ITEMS)
)
_PAIR_COLUMN_TYPES = (
    "text", "text", "text", "text", "text", "text", "float8", "float8", "jsonb", "text[]", "timestamptz",
    "timestamptz", "jsonb", "text", "bool",
)  # fmt: skip
_ITEM_COLUMN_TYPES = ("text", "int4", "text", "text", "int8", "bytea")
_KEY_COLUMN_TYPES = ("text", "text", "int4", "bytea", "int4", "int4")
_VALUES_PER_QUERY = 1_000
"""Maximum number of match keys or item numbers per query.

The database driver decodes rows in the event loop, which more rows per query would block.
"""
_PRICES = ("currency", "price", "msrp", "map")
_ENCODE = msgspec.msgpack.Encoder().encode
_DECODE = msgspec.msgpack.Decoder(MatchFeatures).decode


def _build_ids_param(variants: Iterable[str]) -> dict[str, Any]:
    return {"ids": encode_texts(variants)}


class _FilteredStore(TableStore[R]):
    """Table store whose lists are filtered by a PairFilter or a MergeFilter."""

    async def _fetch_filtered_page(
        self, statement: str, filter: PairFilter | MergeFilter, page_request: PageRequest
    ) -> Page[R]:
        values = {name: value for name, value in asdict(filter).items() if value is not None}
        return await self._fetch_page(
            self._table.build_from_row, statement, page_request, names=values.keys(), **values
        )


class PostgresPairStore(_FilteredStore[MatchPair], PairStore):
    """Match pairs of the tenant."""

    _sql, _table = SQL, PAIRS
    lock_open_pairs = fetch_all(PAIRS.build_from_row, values=_build_ids_param)
    list_unjudged = fetch_all(PAIRS.build_from_row)
    list_certain = fetch_all(
        PAIRS.build_from_row,
        values=lambda min_probability, until, omitted, limit: {
            "min_probability": min_probability,
            "until": until,
            "omitted": encode_texts(omitted),
            "limit": limit,
        },
    )
    sample_certain = fetch_all(PAIRS.build_from_row)
    count_certain = fetch_scalar()

    async def list_pairs(self, filter: PairFilter, page_request: PageRequest) -> Page[MatchPair]:
        return await self._fetch_filtered_page("list_pairs", filter, page_request)

    async def add_all(self, rows: Sequence[MatchPair]) -> None:
        """Insert pairs by COPY, because a batch has hundreds of pairs, each with several kilobytes of evidence."""
        if not rows:
            return
        await self._session.create_temporary_tables(SQL["create_pair_staging_table"])
        await self.fill_temporary_table(
            "match_pairs", ([*self._table.build_params(row).values()] for row in rows), _PAIR_COLUMN_TYPES
        )
        await self._run("add_pairs")

    async def find_pairs_of_variants(self, variants: Sequence[str], *, lock: bool = False) -> Sequence[MatchPair]:
        return await self._fetch_all(
            PAIRS.build_from_row,
            "lock_pairs_of_variants" if lock else "find_pairs_of_variants",
            ids=encode_texts(variants),
        )


class PostgresMergeStore(_FilteredStore[Merge], MergeStore):
    """Merges of the tenant."""

    _sql, _table = SQL, MERGES
    find_applied_merges = fetch_all(MERGES.build_from_row, values=_build_ids_param)

    async def list_merges(self, filter: MergeFilter, page_request: PageRequest) -> Page[Merge]:
        return await self._fetch_filtered_page("list_merges", filter, page_request)


class PostgresMatchIndex(TenantStore, MatchIndexStore):
    """Match index and match queue of the tenant."""

    _sql = SQL
    list_unindexed = fetch_all(QueuedVariant)
    list_matchable = fetch_all(QueuedVariant)
    requeue = execute_count(values=_build_ids_param)
    requeue_products = execute_count(values=_build_ids_param)

    async def is_queue_empty(self) -> bool:
        return not await self._fetch_rows("has_queued_variants")

    async def load_variants(self, variants: Sequence[str]) -> Sequence[StoredVariant]:
        ids = encode_texts(variants)
        rows = await self._fetch_rows("load_variants", ids=ids)
        offers = await self._fetch_rows("list_offers_of_variants", ids=ids)
        return await asyncio.to_thread(_build_variants, rows, offers)

    async def list_single_variants(self, source: str, after: str, limit: int) -> Sequence[StoredVariant]:
        rows = await self._fetch_rows("list_single_variants", source=source, after=after, limit=limit)
        return await asyncio.to_thread(_build_variants, rows, ())

    async def find_shown_products(self, products: Sequence[str]) -> Mapping[str, str]:
        return dict(await self._fetch_rows("find_shown_products", ids=encode_texts(products)))

    async def find_items_of_variants(self, variants: Sequence[str]) -> Sequence[IndexedItem]:
        rows = await self._fetch_rows("find_items_of_variants", ids=encode_texts(variants))
        return await asyncio.to_thread(lambda: [_build_item(row) for row in rows])

    async def find_items_by_number(self, numbers: Sequence[int]) -> Sequence[IndexedItem]:
        rows = await self._fetch_in_chunks("find_items_by_number", "numbers", list(map(str, numbers)))
        return await asyncio.to_thread(lambda: [_build_item(row) for row in rows])

    async def find_free_numbers(self, count: int) -> range:
        first = 1 + (await self._fetch_scalar("find_last_number") or 0)
        return range(first, first + count)

    async def find_listings(self, keys: Sequence[str]) -> Mapping[str, Mapping[str, KeyListing]]:
        return await asyncio.to_thread(_group_by_key, await self._fetch_in_chunks("find_listings", "keys", keys))

    async def _fetch_in_chunks(self, statement: str, parameter: str, values: Sequence[str]) -> list[DatabaseRow]:
        chunks = (values[at : at + _VALUES_PER_QUERY] for at in range(0, len(values), _VALUES_PER_QUERY))
        return [
            row for chunk in chunks for row in await self._fetch_rows(statement, **{parameter: encode_texts(chunk)})
        ]

    async def store_items(self, items: Sequence[IndexedItem], changes: Mapping[tuple[str, str], KeyChange]) -> None:
        await self._session.create_temporary_tables(SQL["create_index_staging_tables"])
        item_rows, keys = await asyncio.to_thread(
            lambda: ([_build_row(item) for item in items], _build_key_rows(changes))
        )
        await self.fill_temporary_table("match_items", item_rows, _ITEM_COLUMN_TYPES)
        await self._run("save_items")
        await self._remove_from_listings(
            {key_and_source: change for key_and_source, change in changes.items() if change.removed_numbers}
        )
        await self.fill_temporary_table("match_keys", keys, _KEY_COLUMN_TYPES)
        await self._run("save_keys")

    async def _remove_from_listings(self, changes: Mapping[tuple[str, str], KeyChange]) -> None:
        """Remove items from the stored listings of the match keys that the items no longer have.

        Args:
            changes: Changes by key and source; `removed_numbers` are the numbers of the items that no longer have the key.
        """
        if not changes:
            return
        stored = await self.find_listings(sorted({key for key, _ in changes}))
        rows = []
        for (key, source), change in changes.items():
            listing = stored.get(key, {}).get(source)
            if listing is not None and listing.numbers is not None:
                removed = set(change.removed_numbers)
                remaining = array("i", (number for number in listing.numbers if number not in removed))
                rows.append({"key": key, "source": source, "numbers": remaining.tobytes().hex()})
        await self._run("replace_listed_numbers", rows=encode_jsonb(rows))

    async def dequeue(self, variants: Sequence[QueuedVariant]) -> None:
        rows = [{"variant": queued.variant, "stamp": queued.stamp} for queued in variants]
        await self._run("dequeue", rows=encode_jsonb(rows))

    async def delete_model_and_requeue(self) -> int:
        await self._run("delete_model")
        return await self._run("requeue_all")

    async def find_model(self) -> MatchModel | None:
        model = await self._fetch_first(
            lambda items, weights, at: MatchModel(items, msgspec.convert(weights, Weights), at), "find_model"
        )
        return model if model is not None and model.weights.has_all_levels else None

    async def store_model(self, model: MatchModel) -> None:
        weights = encode_jsonb(msgspec.to_builtins(model.weights))
        await self._run("store_model", items=model.item_count, weights=weights, learnt_at=model.learnt_at)


class PostgresMatchBacklog(CoordinatorStore):
    """Reader of the number of items in the match queues of all tenants, and of the age of the oldest item."""

    _sql = SQL

    async def measure_backlog(self) -> MatchingBacklog:
        found = await self._gather_all("measure_backlog")
        return MatchingBacklog(sum(count for count, _ in found), max((seconds for _, seconds in found), default=0.0))


def _build_variants(rows: Iterable[DatabaseRow], offers: Iterable[DatabaseRow]) -> list[StoredVariant]:
    offers_by_variant: dict[str, list[tuple[str, dict[str, Any]]]] = defaultdict(list)
    for variant, id, *data in offers:
        offers_by_variant[variant].append((id, dict(zip(_PRICES, data, strict=True))))
    return [
        StoredVariant(
            id,
            product,
            source,
            decode_data(product_data),
            decode_data(variant_data),
            *find_lowest_price(offers_by_variant.get(id, ())),
        )
        for id, product, source, product_data, variant_data in rows
    ]


def _build_item(row: DatabaseRow) -> IndexedItem:
    variant, product, source, stamp, features, number = row
    return IndexedItem(variant, product, source, stamp, _DECODE(features), number)


def _build_row(item: IndexedItem) -> DatabaseRow:
    return item.variant, item.number, item.product, item.source, item.stamp, _ENCODE(item.features)


def _build_key_rows(changes: Mapping[tuple[str, str], KeyChange]) -> list[DatabaseRow]:
    """Return the rows of the temporary table new_match_keys, in the order in which all processes lock keys."""
    return [
        (
            key,
            source,
            change.item_difference,
            None if key[0] in COUNT_ONLY_PREFIXES else array("i", change.added_numbers).tobytes(),
            change.code_difference,
            change.stem_difference,
        )
        for (key, source), change in sorted(changes.items())
    ]


def _group_by_key(rows: Iterable[DatabaseRow]) -> Mapping[str, Mapping[str, KeyListing]]:
    by_key: dict[str, dict[str, KeyListing]] = {}
    for key, source, items, numbers, codes, stems in rows:
        listed = KeyListing(items, None if numbers is None else array("i", numbers), codes, stems)
        by_key.setdefault(key, {})[source] = listed
    return by_key
