"""Products, variants and offers in PostgreSQL: read as documents, loaded whole and compared by fingerprint."""

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
"""Bytes after which a portion ends: with the document that reaches them."""
_SIGNATURE = 19
"""Before the first row: eleven bytes of signature, flags, and the length of an extension that there never is."""
_ROW = 6
"""Before each document: how many fields the row has (two bytes), and the field's length (four). Source: PostgreSQL
documentation, COPY, "Binary Format"."""
_GLANCE = 200
"""Milliseconds after which who waits for the server looks whether it is still wanted."""


def _filed(id: str, key: str, path: Sequence[str] | None, *rest: str | None) -> Filed:
    return Filed(id, key, tuple(path or ()), *rest)


class PostgresCatalogueStore(TenantStore, CatalogueStore):
    """The tenant's catalogue."""

    _sql = _STATEMENTS
    tied_of = every(str)
    filings = every(_filed)

    def __init__(self, session: Session, rendering: Rendering) -> None:
        super().__init__(session)
        self._rendering = rendering

    async def products(self, filter: ProductFilter, page_request: PageRequest) -> Page[Document]:
        if filter.catalogue is not None and not await self._sees(filter.catalogue):
            return Page((), False, None)
        found, end = await self._found(products_query(filter, page_request))
        if any(row[1] is None for row in found):
            found, page_request = await self._weighed(found, page_request)
        return page_of([Document(*row[:3]) for row in found], page_request, end=end)

    async def _found(self, query: ListQuery) -> tuple[list[Fetched], str | None]:
        """A page's rows, with one more when there are more; and where it ends when it looked at as much as it may before."""
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
        within = [one for one in found if (one[0] <= row[0] if backwards else one[0] >= row[0])]
        return within, row[0]

    async def _weighed(self, found: list[Fetched], page_request: PageRequest) -> tuple[list[Fetched], PageRequest]:
        """A page with large documents, as far as its bytes go, and one row more when there is more."""
        asked = texts([id for id, *_ in found[: page_request.limit]])
        rows = await self._rows("documents", ids=asked, most_bytes=LIST_BYTES)
        documents = {row[0]: row for row in rows}
        page = [documents[id] for id, *_ in found if id in documents]
        following = found[len(page) : len(page) + 1]
        return page + following, replace(page_request, limit=max(1, len(page)))

    async def lines(self, updated_since: datetime | None = None) -> AsyncGenerator[Lines, None]:
        """Copy documents as they are stored: COPY in binary, of which only the lengths are decoded; a portion at a time."""
        names = frozenset({"updated_since"} if updated_since is not None else ())
        statement = f"COPY ({rendered(SQL['products_copied'], names)}) TO STDOUT (FORMAT binary)"
        link = self._session.link
        async with link.cursor.copy(statement, self._session.params(updated_since=updated_since)):
            reading = _Reading(link.connection.pgconn)
            while not reading.over:
                portion = await reading.portion()
                if portion.rows:
                    yield portion

    async def product(self, id: str) -> Document | None:
        return await self._first(Document, "product", id=id) or await self._first(Document, "survivor", id=id)

    async def filter_counts(self, filter: ProductFilter) -> FilterCounts:
        if filter.catalogue is not None and not await self._sees(filter.catalogue):
            return FilterCounts(0, whole=True)
        query = products_query(filter, PageRequest(limit=LOOKED))
        found, end = await self._found(query._replace(values=query.values | {"share": NO_BODY}))
        ids = texts([id for id, *_ in found[:LOOKED]])
        counts: dict[str, dict[str, int]] = {"brand": {}, "status": {}, "term": {}}
        for kind, value, count in await self._rows("filter_counts", ids=ids):
            counts[kind][value] = count
        brands = most(counts["brand"])
        keys = texts([key for key, _ in brands])
        written: dict[str, str] = dict(await self._rows("brands_written", ids=ids, keys=keys)) if brands else {}
        terms = counts["term"].items()
        return FilterCounts(
            looked=min(len(found), LOOKED),
            whole=len(found) <= LOOKED and end is None,
            brands=tuple((written.get(key, key), count) for key, count in brands),
            statuses=most(counts["status"]),
            availabilities=by_term(terms, search.availability_term),
            categories=by_term(terms, search.category_term),
            sources=by_term(terms, search.source_term),
        )

    async def completions(self, word: str, code: str) -> Completions:
        words: list[str] = []
        low = search.word_term(word)
        while word and len(words) < WORDS:
            found: str | None = await self._value("next_word", low=low, high=search.word_term(word) + BEYOND)
            if found is None:
                break
            low = found
            words.append(low.removeprefix(search.word_term("")))
        coded: list[Fetched] = []
        if code:
            coded = await self._rows("codes_beginning", low=code, high=code + BEYOND, most=ITEMS)
        return Completions(words, list(dict.fromkeys(id for id, _ in coded))[:ITEMS])

    async def offers(self, filter: OfferFilter, page_request: PageRequest) -> Page[OfferLine]:
        found, end = await self._found(offers_query(filter, page_request))
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
        """Take a turn by advisory locks that end with the transaction.

        A merge holds the first one alone, others share it; where anything is merged they take turns at the second one, for which only
        holders of the first wait.
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
        things = [*whole, *(variant.id for product in whole.values() for variant in product.variants)]
        applied: dict[str, str] = dict(await self._rows("applied", ids=texts(things)))
        standing = await self._rows("standing", ids=texts({product.source for product in whole.values()}))
        words = {id: Precedence.by(first_party=first, licence_basis=basis) for id, first, basis in standing}
        return TiedProducts(whole, applied, words)

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
        named = {id_: key for key, id_ in by_key}
        known = set(named.values())
        codes = {code: key for key in keys if key not in known and (code := search.code(key))}
        if codes:
            by_code = await self._rows("variants_by_code", source=source, codes=texts(codes))
            named |= {id_: codes[code] for code, id_ in by_code if id_ not in named}
        found = await self._rows("stated_by_variant", source=source, ids=texts(named), bit=bit)
        return frozenset((named[variant], location) for variant, location in found)

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
    """Find each key's variant among loaded products: by its own key first, else (`codes`) by a SKU that it alone has."""
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
    """An offer's line; `titles` are those of the products whose data was too large to be read with it."""
    title = titles.get(row[2]) if row[21] is None else rows.plain(row[21]).get("title")
    return OfferLine(rows.offer_of(*row[:20]), row[20], title, rows.plain(row[22]).get("sku"), row[23], row[24])


class _Reading:
    """Reads the rows of a COPY on a thread: the server sends them in pieces of 8 KB, and a turn of the event loop for each would cost as much as packing them."""

    def __init__(self, pgconn: pq.abc.PGconn) -> None:
        self._pgconn = pgconn
        self._begins = _SIGNATURE + _ROW
        self._wanted = True
        self.over = False

    async def portion(self) -> Lines:
        """The next documents. Whoever is cancelled waits until the thread lets go of the connection."""
        reading = asyncio.ensure_future(asyncio.to_thread(self._read))
        try:
            return await asyncio.shield(reading)
        except asyncio.CancelledError:
            self._wanted = False
            await asyncio.wait((reading,))
            raise

    def _read(self) -> Lines:
        held: list[bytes | memoryview] = []
        weight, begins, get, hold = 0, self._begins, self._pgconn.get_copy_data, held.append
        while weight < PORTION:
            size, row = get(1)
            if size > begins:  # a row is a message; what ends them is shorter
                hold(row[begins:])
                weight += size
                begins = self._begins = _ROW
            elif size < 0:
                self._end()
                break
            elif size == 0 and not self._waited():
                break
        rows = len(held)
        hold(b"")
        return Lines(rows, b"\n".join(held) if rows else b"")

    def _waited(self) -> bool:
        """Wait for what the server sends next; False when nobody wants it any more."""
        poll = select.poll()
        poll.register(self._pgconn.socket, select.POLLIN)
        while self._wanted:
            if poll.poll(_GLANCE):
                self._pgconn.consume_input()
                return True
        return False

    def _end(self) -> None:
        """Raises what the server ended the rows with, if it was an error."""
        self.over = True
        failed: pq.abc.PGresult | None = None
        while (result := self._pgconn.get_result()) is not None:
            if result.status != pq.ExecStatus.COMMAND_OK:
                failed = failed or result
        if failed is not None:
            raise error_from_result(failed)
