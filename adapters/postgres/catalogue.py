"""Catalogue store in PostgreSQL: lists of documents, loading for comparison, fingerprints, search and merges."""

import asyncio
import select
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from psycopg import pq
from psycopg.errors import error_from_result

from adapters.postgres import catalogue_rows as rows
from adapters.postgres.catalogue_batch import SQL as BATCH
from adapters.postgres.catalogue_batch import BatchWriter, fill_fingerprints, load
from adapters.postgres.catalogue_overlay import SQL as OVERLAY
from adapters.postgres.catalogue_overlay import OverlayWriter
from adapters.postgres.catalogue_query import NO_BODY, SQL, ListQuery, offers_query, products_query, walked_along
from adapters.postgres.nodes.connecting import Fetched
from adapters.postgres.session import Session, texts
from adapters.postgres.stores import TenantStore, every, page_of, rendered, values_of
from adapters.postgres.table import Table
from domain.catalogue import search
from domain.catalogue.absence import MISSED_RUNS, Absence
from domain.catalogue.batch import Batch, FingerprintDiff, KeyRange, RowFingerprint
from domain.catalogue.category_rules import CategoryPaths, CategoryRules, Filed
from domain.catalogue.completions import BEYOND, ITEMS, WORDS, Completions
from domain.catalogue.filter_counts import LOOKED, FilterCounts, by_term, most
from domain.catalogue.laying import Laid
from domain.catalogue.model import (
    STREAM_BITS,
    Document,
    OfferFilter,
    OfferLine,
    Product,
    ProductFilter,
    ProductStatus,
    SourceItem,
    Stream,
    Variant,
)
from domain.catalogue.overlay import Precedence, TiedProducts
from domain.catalogue.ports import CatalogueStore, Rendering
from domain.kernel.bounds import LIST_BYTES
from domain.kernel.lines import Lines
from domain.kernel.paging import Page, PageRequest

_STATEMENTS = {**SQL, **BATCH, **OVERLAY}
CATEGORY_RULES = Table(CategoryRules, "category_rules")


PORTION = 1 << 21
"""Minimum bytes of a portion; it ends with the document that reaches them."""
_SIGNATURE = 19
"""Bytes before the first row: signature (11), flags (4) and the length of the extension (4), which is empty."""
_ROW = 6
"""Bytes before each document: number of fields (2) and length of the field (4). Source: PostgreSQL documentation, COPY,
"Binary Format"."""
_POLL_MILLISECONDS = 200
"""Milliseconds between checks for cancellation while waiting for the server."""


def _filed(id: str, key: str, path: Sequence[str] | None, *rest: str | None) -> Filed:
    return Filed(id, key, tuple(path or ()), *rest)


class PostgresCatalogueStore(TenantStore, CatalogueStore):
    """Catalogue store of the tenant."""

    _sql = _STATEMENTS
    tied_of = every(str)
    filings = every(_filed)

    def __init__(self, session: Session, rendering: Rendering) -> None:
        super().__init__(session)
        self._rendering = rendering

    async def products(self, filter: ProductFilter, page_request: PageRequest) -> Page[Document]:
        if filter.catalogue is not None and not await self._sees(filter.catalogue):
            return Page((), False, None)
        found, end = await self._run_query(products_query(filter, page_request))
        if any(row[1] is None for row in found):
            found, page_request = await self._add_large_documents(found, page_request)
        return page_of([Document(*row[:3]) for row in found], page_request, end=end)

    async def _run_query(self, query: ListQuery) -> tuple[list[Fetched], str | None]:
        """Return a page's rows, plus one if there are more, and the key at which the scan stopped at its limit, if it did."""
        if (counting := query.sizes) is None:
            return await self._session.all(query.statement(query.likely), **query.values), None
        if (brief := query.brief) is not None:
            found = await self._session.all(brief, **query.values)
            if query.full(found):
                return found, None
        async with self._session.snapshot():
            sizes: dict[str, int] = dict(await self._session.all(counting, **query.values))
            walked = walked_along(query.name, query.names, sizes)
            found = await self._session.all(query.statement(walked), **query.values)
            looking = query.end(walked, sizes)
            row = await self._session.one(looking, **query.values) if looking and not query.full(found) else None
        if row is None:
            return found, None
        backwards = query.page_request.backwards
        end = row[0]
        return [other for other in found if (other[0] <= end if backwards else other[0] >= end)], end

    async def _add_large_documents(
        self, found: list[Fetched], page_request: PageRequest
    ) -> tuple[list[Fetched], PageRequest]:
        """Load the documents of a page with large ones, and shorten the page to the byte limit, plus one row if there are more."""
        ids = texts([id for id, *_ in found[: page_request.limit]])
        rows = await self._rows("documents", ids=ids, most_bytes=LIST_BYTES)
        documents = {row[0]: row for row in rows}
        page = [documents[id] for id, *_ in found if id in documents]
        next_row = found[len(page) : len(page) + 1]
        return page + next_row, replace(page_request, limit=max(1, len(page)))

    async def lines(self, updated_since: datetime | None = None) -> AsyncGenerator[Lines, None]:
        """Yield stored documents in portions, by COPY in binary format, of which only the lengths are decoded."""
        names = frozenset({"updated_since"} if updated_since is not None else ())
        statement = f"COPY ({rendered(SQL['products_copied'], names)}) TO STDOUT (FORMAT binary)"
        link = self._session.link
        async with link.cursor.copy(statement, self._session.params(updated_since=updated_since)):
            reader = _CopyReader(link.connection.pgconn)
            while not reader.is_finished:
                portion = await reader.portion()
                if portion.rows:
                    yield portion

    async def product(self, id: str) -> Document | None:
        return await self._first(Document, "product", id=id) or await self._first(Document, "survivor", id=id)

    async def filter_counts(self, filter: ProductFilter) -> FilterCounts:
        if filter.catalogue is not None and not await self._sees(filter.catalogue):
            return FilterCounts(0, whole=True)
        query = products_query(filter, PageRequest(limit=LOOKED))
        found, end = await self._run_query(query._replace(values=query.values | {"share": NO_BODY}))
        ids = texts([id for id, *_ in found[:LOOKED]])
        counts: dict[str, dict[str, int]] = {"brand": {}, "status": {}, "term": {}}
        for kind, value, count in await self._rows("filter_counts", ids=ids):
            counts[kind][value] = count
        brands = most(counts["brand"])
        keys = texts([key for key, _ in brands])
        spellings: dict[str, str] = dict(await self._rows("brands_written", ids=ids, keys=keys)) if brands else {}
        terms = counts["term"].items()
        return FilterCounts(
            looked=min(len(found), LOOKED),
            whole=len(found) <= LOOKED and end is None,
            brands=tuple((spellings.get(key, key), count) for key, count in brands),
            statuses=most(counts["status"]),
            availabilities=by_term(terms, search.availability_term),
            categories=by_term(terms, search.category_term),
            sources=by_term(terms, search.source_term),
        )

    async def completions(self, word: str, code: str) -> Completions:
        words: list[str] = []
        low = search.word_term(word)
        while word and len(words) < WORDS:
            term: str | None = await self._value("next_word", low=low, high=search.word_term(word) + BEYOND)
            if term is None:
                break
            low = term
            words.append(low.removeprefix(search.word_term("")))
        by_code: list[Fetched] = []
        if code:
            by_code = await self._rows("codes_beginning", low=code, high=code + BEYOND, most=ITEMS)
        return Completions(words, list(dict.fromkeys(id for id, _ in by_code))[:ITEMS])

    async def offers(self, filter: OfferFilter, page_request: PageRequest) -> Page[OfferLine]:
        found, end = await self._run_query(offers_query(filter, page_request))
        page = page_of(found, page_request, lambda row: str(row[0]), end)
        large = sorted({row[2] for row in page.items if row[21] is None})
        titles: dict[str, str] = dict(await self._rows("titles", ids=large)) if large else {}
        return Page(tuple(_line(row, titles) for row in page.items), page.has_more, page.next_key)

    async def _sees(self, catalogue: str) -> bool:
        return bool(await self._value("own_catalogue") == catalogue)

    async def compare(self, key_range: KeyRange, fingerprints: Sequence[RowFingerprint]) -> FingerprintDiff:
        await self._session.stage(BATCH["staging"])
        await fill_fingerprints(self, fingerprints)
        found = await self._rows("compared", **values_of(key_range), missed_runs=MISSED_RUNS)
        moved = [
            (key, same, present) for key, _, same, present, _ in found if key is not None and not (same and present)
        ]
        gone = [(key, newly) for read, key, _, newly, _ in found if read is None]
        return FingerprintDiff(
            changed=frozenset(key for key, same, _ in moved if not same),
            returned=frozenset(key for key, same, _ in moved if same),
            absent=frozenset(key for key, newly in gone if newly),
            lingering=frozenset(key for key, newly in gone if not newly),
            unchanged=len(fingerprints) - len(moved),
            troubled={key: number for key, _, same, present, number in found if key is not None and same and present},
            resumed=frozenset(key for key, same, present in moved if not same and present is False),
        )

    async def load(self, source: str, keys: Sequence[str], variant_keys: Sequence[str] = ()) -> Mapping[str, Product]:
        products = await load(self._session, "products_by_key", rows.plain, source=source, keys=texts(keys))
        if variant_keys:
            owners = await self._rows("owners_by_variant_key", source=source, keys=texts(variant_keys))
            if others := {owner for _, owner in owners if owner not in products}:
                products |= await load(self._session, "products_by_id", rows.plain, ids=texts(others))
        return {product.key: product for product in products.values()}

    async def load_by_variant(self, source: str, keys: Sequence[str]) -> Mapping[str, tuple[Product, Variant]]:
        by_key: dict[str, str] = dict(await self._rows("owners_by_variant_key", source=source, keys=texts(keys)))
        owners = set(by_key.values())
        codes = {key: code for key in keys if key not in by_key and (code := search.code(key))}
        if codes:
            found = await self._rows("owners_by_code", source=source, codes=texts(codes.values()))
            owners.update(owner for (owner,) in found)
        products = await load(self._session, "products_by_id", rows.packed, ids=texts(owners))
        return _by_variant(products.values(), source, keys, codes)

    async def item(self, variant: str) -> SourceItem | None:
        found = await self._rows("item", id=variant)
        if not found:
            return None
        source, product_key, variant_key, data = found[0]
        offers = await self._every(rows.offer_of, "offers_of_variant", id=variant)
        return SourceItem(variant, source, product_key, variant_key, rows.plain(data).get("sku"), offers)

    async def items(self, variant: str) -> Sequence[SourceItem]:
        merged = await self._rows("variants_merged_into", id=variant)
        found = [await self.item(id) for id in (variant, *(id for (id,) in merged))]
        return [item for item in found if item is not None]

    async def save(self, key_range: KeyRange, batch: Batch, now: datetime) -> None:
        await self._session.stage(BATCH["staging"])
        await BatchWriter(self._session, self._rendering).write(key_range, batch, now)
        if batch.laid is not None:
            await OverlayWriter(self._session, self._rendering).lay(batch.laid, now)

    async def merge_count(self) -> int:
        return int(await self._value("merge_count", 0))

    async def take_turn(self, *, merging: bool = False) -> int:
        """Serialise merges by advisory locks that end with the transaction; return the number of merges.

        A merge takes the first lock exclusively, other writers share it. If the catalogue has merges, the other writers also take the
        second lock exclusively, for which only holders of the first wait.
        """
        await self._session.take_turn("merges", shared=not merging)
        count = await self.merge_count()
        if count and not merging:
            await self._session.take_turn("merged")
        return count

    async def tied(self, products: Sequence[str], also: Sequence[str] = ()) -> TiedProducts:
        found = await self._rows("families", ids=texts([*products, *also]))
        members = await self._rows("members", families=texts(family for (family,) in found)) if found else []
        ids = {id for (id,) in members} | set(also)
        if not ids:
            return TiedProducts()
        whole = await load(self._session, "products_by_id", rows.plain, ids=texts(ids))
        member_ids = [*whole, *(variant.id for product in whole.values() for variant in product.variants)]
        applied: dict[str, str] = dict(await self._rows("applied", ids=texts(member_ids)))
        standing = await self._rows("standing", ids=texts({product.source for product in whole.values()}))
        precedences = {id: Precedence.by(first_party=first, licence_basis=basis) for id, first, basis in standing}
        return TiedProducts(whole, applied, precedences)

    async def lay(self, laid: Laid, now: datetime) -> None:
        await OverlayWriter(self._session, self._rendering).lay(laid, now)
        await self._run("count_merge")

    async def homes(self, variants: Sequence[str]) -> Mapping[str, tuple[str, str]]:
        found = await self._rows("homes", ids=texts(variants))
        return {id: (product, source) for id, product, source in found}

    async def stated_offers(self, source: str, stream: Stream) -> int:
        return int(await self._value("stated_offers", source=source, bit=STREAM_BITS[stream]))

    async def stated_of(self, source: str, stream: Stream, keys: Sequence[str]) -> frozenset[tuple[str, str]]:
        bit = STREAM_BITS[stream]
        if stream == Stream.CATALOGUE:
            found = await self._rows("stated_by_product", source=source, keys=texts(keys), bit=bit)
            return frozenset((key, location) for key, location in found)
        by_key = await self._rows("variants_by_key", source=source, keys=texts(keys))
        keys_by_id = {id_: key for key, id_ in by_key}
        resolved = set(keys_by_id.values())
        codes = {code: key for key in keys if key not in resolved and (code := search.code(key))}
        if codes:
            by_code = await self._rows("variants_by_code", source=source, codes=texts(codes))
            keys_by_id |= {id_: codes[code] for code, id_ in by_code if id_ not in keys_by_id}
        found = await self._rows("stated_by_variant", source=source, ids=texts(keys_by_id), bit=bit)
        return frozenset((keys_by_id[variant], location) for variant, location in found)

    async def category_paths(self, source: str, limit: int, chars: int) -> CategoryPaths:
        low, high = search.path_terms(source)
        found = await self._rows("category_paths", low=low, high=high, most=limit, chars=chars)
        return CategoryPaths({tuple(path): n for path, n, _ in found}, found[0][2] - len(found) if found else 0)

    async def absences(self, source: str, since: datetime) -> Sequence[Absence]:
        values = {"stream": Stream.CATALOGUE, "discontinued": ProductStatus.DISCONTINUED, "missed_runs": MISSED_RUNS}
        found = await self._rows("absences", source=source, since=since, **values)
        return [Absence(key, ProductStatus(status), absent_since) for key, status, absent_since in found]


def _by_variant(
    products: Iterable[Product], source: str, keys: Sequence[str], codes: Mapping[str, str]
) -> dict[str, tuple[Product, Variant]]:
    """Find each key's variant among loaded products: by its key, else by a SKU (`codes`) that no other variant has."""
    own = [(product, entry) for product in products for entry in product.variants if entry.source == source]
    keyed = {variant.key: (product, variant) for product, variant in own}
    found = {key: keyed[key] for key in keys if key in keyed}
    if codes:
        by_code: dict[str, list[tuple[Product, Variant]]] = {}
        for product, variant in own:
            if sku := rows.sku_of(variant.data):
                by_code.setdefault(search.code(sku), []).append((product, variant))
        for key, code in codes.items():
            if key not in found and len(by_code.get(code, ())) == 1:
                found[key] = by_code[code][0]
    return found


def _line(row: Fetched, titles: Mapping[str, str]) -> OfferLine:
    """Convert a row of the offer list; `titles` are those of products whose data was too large to be read with it."""
    title = titles.get(row[2]) if row[21] is None else rows.plain(row[21]).get("title")
    return OfferLine(rows.offer_of(*row[:20]), row[20], title, rows.plain(row[22]).get("sku"), row[23], row[24])


class _CopyReader:
    """Reader of a COPY's rows in a thread.

    The server sends pieces of 8 KB; an iteration of the event loop for each would cost as much as compressing them.
    """

    def __init__(self, pgconn: pq.abc.PGconn) -> None:
        self._pgconn = pgconn
        self._prefix = _SIGNATURE + _ROW
        self._is_cancelled = False
        self.is_finished = False

    async def portion(self) -> Lines:
        """Return the next documents. On cancellation, wait until the thread has released the connection."""
        reading = asyncio.ensure_future(asyncio.to_thread(self._read))
        try:
            return await asyncio.shield(reading)
        except asyncio.CancelledError:
            self._is_cancelled = True
            await asyncio.wait((reading,))
            raise

    def _read(self) -> Lines:
        documents: list[bytes | memoryview] = []
        total, prefix, get, append = 0, self._prefix, self._pgconn.get_copy_data, documents.append
        while total < PORTION:
            size, row = get(1)
            if size > prefix:  # each row is one message; the trailer is shorter
                append(row[prefix:])
                total += size
                prefix = self._prefix = _ROW
            elif size < 0:
                self._finish()
                break
            elif size == 0 and not self._wait():
                break
        rows = len(documents)
        append(b"")
        return Lines(rows, b"\n".join(documents) if rows else b"")

    def _wait(self) -> bool:
        """Wait for data of the server; return False after cancellation."""
        poll = select.poll()
        poll.register(self._pgconn.socket, select.POLLIN)
        while not self._is_cancelled:
            if poll.poll(_POLL_MILLISECONDS):
                self._pgconn.consume_input()
                return True
        return False

    def _finish(self) -> None:
        """Read the final result and raise its error, if any."""
        self.is_finished = True
        failed: pq.abc.PGresult | None = None
        while (result := self._pgconn.get_result()) is not None:
            if result.status != pq.ExecStatus.COMMAND_OK:
                failed = failed or result
        if failed is not None:
            raise error_from_result(failed)
