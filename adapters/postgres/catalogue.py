"""Catalogue store in PostgreSQL: lists of documents, loading for comparison, fingerprints, search and merges."""

import asyncio
import select
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import LiteralString

from psycopg import pq
from psycopg.errors import error_from_result

from adapters.postgres import catalogue_rows as rows
from adapters.postgres.catalogue_batch import SQL as BATCH_SQL
from adapters.postgres.catalogue_batch import BatchWriter, fill_fingerprint_table, load_products
from adapters.postgres.catalogue_facets import SQL as FACET_SQL
from adapters.postgres.catalogue_facets import (
    FacetPage,
    FacetQuery,
    build_facet_query,
    choose_counting_indexes,
    choose_index,
    decode_bits,
    requires_facets,
    split_brand_value,
)
from adapters.postgres.catalogue_merged_view import SQL as MERGED_VIEW_SQL
from adapters.postgres.catalogue_merged_view import MergedViewWriter
from adapters.postgres.catalogue_query import (
    SQL,
    ListQuery,
    build_offers_query,
    build_products_query,
    choose_scanned_filter,
)
from adapters.postgres.corrections import CORRECTIONS
from adapters.postgres.corrections import SQL as CORRECTION_SQL
from adapters.postgres.nodes.connections import DatabaseRow
from adapters.postgres.session import TenantSession, encode_texts
from adapters.postgres.stores import TenantStore, build_field_params, build_page, fetch_all, render_statement
from adapters.postgres.table import Table
from domain.catalogue import search_terms
from domain.catalogue.batch import Batch, FingerprintDiff, RowFingerprint, SlotRange
from domain.catalogue.categories import path_ids
from domain.catalogue.category_rules import CategoryPaths, CategoryRules, ProductCategory
from domain.catalogue.completions import MAX_CODE_COMPLETIONS, MAX_WORD_COMPLETIONS, PREFIX_END, Completions
from domain.catalogue.corrections import Corrections
from domain.catalogue.filter_counts import (
    MAX_COUNTED_PRODUCTS,
    FilterCounts,
    PriceCount,
    TotalCount,
    list_most_frequent,
)
from domain.catalogue.licences import HIDDEN_FIELDS_BY_VIEW
from domain.catalogue.merged_statements import ProductCluster, SourcePrecedence
from domain.catalogue.merged_view import MergedView
from domain.catalogue.missed_runs import MIN_MISSED_RUNS, AbsentProduct
from domain.catalogue.model import (
    STREAM_BITS,
    Document,
    OfferFilter,
    OfferLine,
    Product,
    ProductFilter,
    ProductSort,
    ProductStatus,
    SourceItem,
    Stream,
    Variant,
)
from domain.catalogue.ports import CatalogueRenderer, CatalogueStore
from domain.kernel.bounds import LIST_BYTES
from domain.kernel.lines import Lines
from domain.kernel.paging import Page, PageRequest
from domain.search import facets

_STATEMENTS = {**SQL, **BATCH_SQL, **MERGED_VIEW_SQL, **CORRECTION_SQL}
CATEGORY_RULES = Table(CategoryRules, "category_rules")

MIN_PORTION_BYTES = 1 << 21
"""Minimum size of a portion of documents in bytes, except for the last portion.

A portion ends with the first document that brings the portion to this size.
"""
_HEADER_BYTES = 19
"""Bytes before the first row of binary COPY: signature (11), flags (4) and the length of the empty extension (4)."""
_ROW_HEADER_BYTES = 6
"""Bytes before each document: number of fields (2) and length of the field (4).

Source: PostgreSQL documentation, COPY.
"""
_CANCEL_CHECK_MILLISECONDS = 200
"""Milliseconds between checks for cancellation while waiting for the server."""


def _build_product_category(id: str, key: str, path: Sequence[str] | None, *rest: str | None) -> ProductCategory:
    return ProductCategory(id, key, tuple(path or ()), *rest)


class PostgresCatalogueStore(TenantStore, CatalogueStore):
    """Catalogue store of the tenant."""

    _sql = _STATEMENTS
    list_merged_products = fetch_all(str)
    list_product_categories = fetch_all(_build_product_category)

    def __init__(self, session: TenantSession, rendering: CatalogueRenderer) -> None:
        super().__init__(session)
        self._rendering = rendering

    async def list_products(
        self, filter: ProductFilter, page_request: PageRequest, sort: ProductSort = ProductSort.NEWEST
    ) -> Page[Document]:
        filter, is_own = await self._resolve_own_catalogue(filter)
        if requires_facets(filter, sort):
            return await self._list_by_facets(build_facet_query(filter, is_own=is_own), FacetPage(page_request, sort))
        found, end = await self._run_query(build_products_query(filter, page_request, is_own=is_own))
        if any(row[1] is None for row in found):
            found, page_request = await self._add_large_documents(found, page_request)
        return build_page([Document(*row[:3]) for row in found], page_request, scan_end=end)

    async def _list_by_facets(self, query: FacetQuery, page: FacetPage) -> Page[Document]:
        rows, end, request = list[DatabaseRow](), None, page.request
        for whole_part in page.list_parts():
            part = replace(whole_part, request=replace(whole_part.request, limit=request.limit - len(rows)))
            found, end = await self._run_facet_query(query, part)
            rows += [(*row[:3], part.build_key(row[0], *row[3:])) for row in found]
            if end is not None or len(rows) > request.limit:
                break
        if any(row[1] is None for row in rows):
            rows, request = await self._add_large_documents(rows, request)
        found_page = build_page(rows, request, lambda row: str(row[3]), end)
        return Page(tuple(Document(*row[:3]) for row in found_page.items), found_page.has_more, found_page.next_key)

    async def _run_facet_query(self, query: FacetQuery, page: FacetPage) -> tuple[list[DatabaseRow], str | None]:
        """Return the rows of a page, one more if further rows follow, and the key at which the scan ended (`_run_query`)."""
        if not query.has_identifiers:
            statement = query.build_page_statement(page, "", is_first_attempt=True)
            found = await self._session.fetch_rows(statement, **query.get_values(), **page.values)
            if len(found) > page.request.limit or not query.line_names:
                return found, None
        async with self._session.snapshot():
            index = choose_index(await self._measure_filters(query, query.filter_sizes_statement))
            values = query.get_values(index) | page.values
            found = await self._session.fetch_rows(query.build_page_statement(page, index), **values)
            if query.is_complete(index) or len(found) > page.request.limit:
                return found, None
            end_statement = query.build_page_statement(page, index, finds_end=True)
            end = await self._session.fetch_row(end_statement, **values)
        return found, page.build_key(*end) if end else None

    async def _measure_filters(self, query: FacetQuery, sizes_statement: LiteralString) -> Mapping[str, int]:
        """Return the number of products of each filter that has an index, up to a limit."""
        return dict(await self._session.fetch_rows(sizes_statement, **query.values)) if query.needs_counts else {}

    async def list_product_ids(self, filter: ProductFilter, limit: int) -> Sequence[str]:
        filter, is_own = await self._resolve_own_catalogue(filter)
        query, ids, page = build_facet_query(filter, is_own=is_own), list[str](), Page(tuple[str, ...](), True, None)
        while page.has_more and len(ids) < limit:
            request = PageRequest(min(limit - len(ids), 1_000), page.next_key)
            facet_page = FacetPage(request, ProductSort.NEWEST, has_documents=False)
            found, end = await self._run_facet_query(query, facet_page)
            page = build_page([str(id) for id, *_ in found], request, str, end)
            ids += page.items
        return ids

    async def count_products(self, filter: ProductFilter) -> TotalCount:
        filter, is_own = await self._resolve_own_catalogue(filter)
        return await self._count_products(build_facet_query(filter, is_own=is_own))

    async def _count_products(self, query: FacetQuery) -> TotalCount:
        sizes = await self._measure_filters(query, query.build_counting_sizes_statement(counts_facets=False))
        count, index = 0, ""
        for index in choose_counting_indexes(sizes):
            [(count,)] = await self._session.fetch_rows(query.build_total_statement(index), **query.get_values(index))
            if count > MAX_COUNTED_PRODUCTS:
                return TotalCount(MAX_COUNTED_PRODUCTS, is_exact=False)
        return TotalCount(count, is_exact=query.is_complete(index) or not await self._exceeds_counted_rows(query))

    async def _exceeds_counted_rows(self, query: FacetQuery) -> bool:
        """Return whether there are more products than a statement without an index counts."""
        [(exceeds,)] = await self._session.fetch_rows(query.get_statement("exceeds_counted_rows"))
        return bool(exceeds)

    async def _run_query(self, query: ListQuery) -> tuple[list[DatabaseRow], str | None]:
        """Return the rows of a page, one more if further rows follow, and the key at which the scan ended.

        If the scan reached its row limit before the page was full, the key is that of the last scanned row. Otherwise
        the key is None.
        """
        if (count_statement := query.count_statement) is None:
            return await self._session.fetch_rows(query.build_statement(query.likely_filter), **query.values), None
        if (limited_statement := query.limited_statement) is not None:
            found = await self._session.fetch_rows(limited_statement, **query.values)
            if query.is_full(found):
                return found, None
        async with self._session.snapshot():
            row_counts: dict[str, int] = dict(await self._session.fetch_rows(count_statement, **query.values))
            scanned_filter = choose_scanned_filter(query.name, query.line_names, row_counts)
            found = await self._session.fetch_rows(query.build_statement(scanned_filter), **query.values)
            end_statement = query.build_end_statement(scanned_filter, row_counts)
            row = (
                await self._session.fetch_row(end_statement, **query.values)
                if end_statement and not query.is_full(found)
                else None
            )
        if row is None:
            return found, None
        backwards = query.page_request.backwards
        end = row[0]
        return [other for other in found if (other[0] <= end if backwards else other[0] >= end)], end

    async def _add_large_documents(
        self, page_rows: list[DatabaseRow], page_request: PageRequest
    ) -> tuple[list[DatabaseRow], PageRequest]:
        """Load the large documents of a page, which the list statement omits, and shorten the page to the byte limit.

        Returns:
            The rows, one more if further rows follow, and the page request with the reduced number of rows as limit.
        """
        ids = encode_texts([id for id, *_ in page_rows[: page_request.limit]])
        rows = await self._fetch_rows("read_documents_within_bytes", ids=ids, max_bytes=LIST_BYTES)
        documents = {row[0]: row for row in rows}
        page = [(*documents[id], *rest) for id, _, _, *rest in page_rows if id in documents]
        next_row = page_rows[len(page) : len(page) + 1]
        return page + next_row, replace(page_request, limit=max(1, len(page)))

    async def stream_documents(self, updated_since: datetime | None = None) -> AsyncGenerator[Lines, None]:
        """Yield the stored documents in portions of at least MIN_PORTION_BYTES, in no order.

        The documents are read by COPY in binary format, which requires no decoding.

        Args:
            updated_since: Earliest time of a product's last change; None for all documents.
        """
        names = frozenset({"updated_since"} if updated_since is not None else ())
        statement = f"COPY ({render_statement(SQL['stream_documents'], names)}) TO STDOUT (FORMAT binary)"
        connection = self._session.connection
        async with connection.cursor.copy(statement, self._session.add_tenant_params(updated_since=updated_since)):
            reader = _CopyReader(connection.driver_connection.pgconn)
            while not reader.is_finished:
                portion = await reader.read_portion()
                if portion.rows:
                    yield portion

    async def get_product(self, id: str) -> Document | None:
        return await self._fetch_first(Document, "get_product", id=id) or await self._fetch_first(
            Document, "get_survivor", id=id
        )

    async def count_filter_values(self, filter: ProductFilter) -> FilterCounts:
        filter, is_own = await self._resolve_own_catalogue(filter)
        query = build_facet_query(filter, is_own=is_own)
        sizes = await self._measure_filters(query, query.build_counting_sizes_statement(counts_facets=True))
        by_facet, index = defaultdict[str, list[DatabaseRow]](list), ""
        for index in choose_counting_indexes(sizes):
            by_facet.clear()
            statement = query.build_facets_statement(index)
            for facet, *row in await self._session.fetch_rows(statement, **query.get_values(index)):
                by_facet[facet].append(tuple(row))
            if by_facet["all"][0][1] > MAX_COUNTED_PRODUCTS:
                break
        [(_, counted, *_)], [(_, found, *_)] = by_facet["counted"], by_facet["all"]
        is_complete = found <= MAX_COUNTED_PRODUCTS and (
            query.is_complete(index) or not await self._exceeds_counted_rows(query)
        )
        brands = [(*split_brand_value(value), count) for value, count, *_ in by_facet["brand"]]
        ids = [product for _, product, _ in brands]
        spellings = await self._session.fetch_rows(query.get_statement("list_brand_spellings"), ids=ids) if ids else ()
        spelling_by_product: dict[str, str] = dict(spellings)
        categories: Counter[str] = Counter()
        for category, count, *_ in by_facet["category"]:
            categories.update(dict.fromkeys(path_ids(category), count))
        bands: Counter[str] = Counter()
        for score, count, *_ in by_facet["completeness"]:
            bands[facets.find_band(int(score))] += count
        counts = defaultdict[str, dict[str, int]](dict)
        counts |= {name: {value: count for value, count, *_ in rows} for name, rows in by_facet.items()}
        return FilterCounts(
            counted_products=counted,
            is_complete=is_complete,
            brands=tuple((spelling_by_product.get(product) or key, count) for key, product, count in brands),
            statuses=list_most_frequent(counts["status"]),
            availabilities=list_most_frequent(decode_bits(counts["availability"], facets.AVAILABILITIES)),
            categories=list_most_frequent(categories),
            sources=list_most_frequent(counts["source"]),
            colours=list_most_frequent(decode_bits(counts["colour"], tuple(facets.ColourFamily))),
            finishes=list_most_frequent(decode_bits(counts["finish"], tuple(facets.FinishFamily))),
            completeness=tuple((band, bands[band]) for band in facets.CompletenessBand if bands[band]),
            prices=tuple(
                PriceCount(currency, lowest, highest, count)
                for currency, count, lowest, highest in sorted(by_facet["price"], key=lambda row: (-row[1], row[0]))
            ),
            total=TotalCount(counted) if is_complete else await self._count_products(query),
        )

    async def find_existing_words(self, words: Collection[str]) -> Sequence[str]:
        terms = encode_texts(search_terms.word_term(word) for word in words)
        found = await self._session.fetch_rows(FACET_SQL["find_existing_terms"], terms=terms)
        return [term.removeprefix(search_terms.word_term("")) for (term,) in found]

    async def find_completions(self, word: str, code: str) -> Completions:
        words: list[str] = []
        low = search_terms.word_term(word)
        while word and len(words) < MAX_WORD_COMPLETIONS:
            term: str | None = await self._fetch_scalar(
                "find_next_word", low=low, high=search_terms.word_term(word) + PREFIX_END
            )
            if term is None:
                break
            low = term
            words.append(low.removeprefix(search_terms.word_term("")))
        by_code: list[DatabaseRow] = []
        if code:
            by_code = await self._fetch_rows(
                "find_codes_by_prefix", low=code, high=code + PREFIX_END, limit=MAX_CODE_COMPLETIONS
            )
        return Completions(words, list(dict.fromkeys(id for id, _ in by_code))[:MAX_CODE_COMPLETIONS])

    async def list_offers(self, filter: OfferFilter, page_request: PageRequest) -> Page[OfferLine]:
        found, end = await self._run_query(build_offers_query(filter, page_request))
        page = build_page(found, page_request, lambda row: str(row[0]), end)
        large = sorted({row[2] for row in page.items if row[21] is None})
        titles: dict[str, str] = dict(await self._fetch_rows("list_titles", ids=large)) if large else {}
        return Page(tuple(_build_offer_line(row, titles) for row in page.items), page.has_more, page.next_key)

    async def _resolve_own_catalogue(self, filter: ProductFilter) -> tuple[ProductFilter, bool]:
        """Return the filter, and whether only the own catalogue is read, which needs neither the filter nor licensed copies."""
        is_own = filter.catalogue is not None and await self._fetch_scalar("get_own_catalogue") == filter.catalogue
        return (replace(filter, catalogue=None) if is_own else filter), is_own

    async def compare_fingerprints(self, slots: SlotRange, fingerprints: Sequence[RowFingerprint]) -> FingerprintDiff:
        await self._session.create_temporary_tables(BATCH_SQL["create_staging_tables"])
        await fill_fingerprint_table(self, fingerprints)
        found = await self._fetch_rows("compare_fingerprints", **build_field_params(slots), missed_runs=MIN_MISSED_RUNS)
        changed_rows = [
            (key, same, present) for key, _, same, present, _ in found if key is not None and not (same and present)
        ]
        absent_rows = [(key, newly) for read, key, _, newly, _ in found if read is None]
        return FingerprintDiff(
            changed=frozenset(key for key, same, _ in changed_rows if not same),
            returned=frozenset(key for key, same, _ in changed_rows if same),
            absent=frozenset(key for key, newly in absent_rows if newly),
            still_absent=frozenset(key for key, newly in absent_rows if not newly),
            unchanged_count=len(fingerprints) - len(changed_rows),
            problem_count_by_key={
                key: number for key, _, same, present, number in found if key is not None and same and present
            },
            reappeared=frozenset(key for key, same, present in changed_rows if not same and present is False),
        )

    async def load_products(
        self, source: str, keys: Sequence[str], variant_keys: Sequence[str] = ()
    ) -> Mapping[str, Product]:
        products = await load_products(
            self._session, "lock_products_by_key", rows.decode_data, source=source, keys=encode_texts(keys)
        )
        if variant_keys:
            owners = await self._fetch_rows(
                "find_products_by_variant_key", source=source, keys=encode_texts(variant_keys)
            )
            if others := {owner for _, owner in owners if owner not in products}:
                products |= await load_products(
                    self._session, "lock_products_by_id", rows.decode_data, ids=encode_texts(others)
                )
        return {product.key: product for product in products.values()}

    async def load_variants(self, source: str, keys: Sequence[str]) -> Mapping[str, tuple[Product, Variant]]:
        by_key: dict[str, str] = dict(
            await self._fetch_rows("find_products_by_variant_key", source=source, keys=encode_texts(keys))
        )
        owners = set(by_key.values())
        codes = {key: code for key in keys if key not in by_key and (code := search_terms.normalise_code(key))}
        if codes:
            found = await self._fetch_rows("find_products_by_code", source=source, codes=encode_texts(codes.values()))
            owners.update(owner for (owner,) in found)
        products = await load_products(self._session, "lock_products_by_id", rows.RawData, ids=encode_texts(owners))
        return _match_variants(products.values(), source, keys, codes)

    async def get_source_item(self, variant: str) -> SourceItem | None:
        found = await self._fetch_rows("get_source_item", id=variant)
        if not found:
            return None
        source, product_key, variant_key, data = found[0]
        offers = await self._fetch_all(rows.build_stated_offer, "list_offers_of_variant", id=variant)
        return SourceItem(variant, source, product_key, variant_key, rows.decode_data(data).get("sku"), offers)

    async def list_source_items(self, variant: str) -> Sequence[SourceItem]:
        merged = await self._fetch_rows("list_merged_variants", id=variant)
        found = [await self.get_source_item(id) for id in (variant, *(id for (id,) in merged))]
        return [item for item in found if item is not None]

    async def save_batch(self, slots: SlotRange, batch: Batch, now: datetime) -> None:
        await self._session.create_temporary_tables(BATCH_SQL["create_staging_tables"])
        await BatchWriter(self._session, self._rendering).write(slots, batch, now)
        if batch.merged_view is not None:
            await MergedViewWriter(self._session, self._rendering).write(batch.merged_view, now)

    async def get_merge_revision(self) -> int:
        return int(await self._fetch_scalar("get_merge_revision", 0))

    async def lock_for_writing(self, *, merging: bool = False) -> int:
        """Acquire the locks that serialise merges until the transaction ends; return the merge revision.

        A merge (`merging`) holds the first lock exclusively. Other writers share the first lock. If the catalogue has
        merges, they also hold the second lock exclusively.
        """
        await self._session.acquire_lock("merges", shared=not merging)
        revision = await self.get_merge_revision()
        if revision and not merging:
            await self._session.acquire_lock("merged")
        return revision

    async def load_cluster(self, products: Sequence[str], unmerged_products: Sequence[str] = ()) -> ProductCluster:
        found = await self._fetch_rows("find_merge_groups", ids=encode_texts([*products, *unmerged_products]))
        members = (
            await self._fetch_rows("list_merge_group_members", families=encode_texts(family for (family,) in found))
            if found
            else []
        )
        ids = {id for (id,) in members} | set(unmerged_products)
        if not ids:
            return ProductCluster()
        products_by_id = await load_products(
            self._session, "lock_products_by_id", rows.decode_data, ids=encode_texts(ids)
        )
        member_ids = [
            *products_by_id,
            *(variant.id for product in products_by_id.values() for variant in product.variants),
        ]
        applied: dict[str, str] = dict(await self._fetch_rows("list_applied_merges", ids=encode_texts(member_ids)))
        source_rows = await self._fetch_rows(
            "list_source_precedence", ids=encode_texts({product.source for product in products_by_id.values()})
        )
        precedences = {
            id: SourcePrecedence.from_settings(is_first_party=first, licence_basis=basis)
            for id, first, basis in source_rows
        }
        corrections = await self._fetch_all(
            CORRECTIONS.build_from_row, "list_corrections_of_products", ids=encode_texts(products_by_id)
        )
        return ProductCluster(products_by_id, applied, precedences, Corrections.from_list(corrections))

    async def save_merged_view(self, merged_view: MergedView, now: datetime) -> None:
        await MergedViewWriter(self._session, self._rendering).write(merged_view, now)
        await self._run("increment_merge_revision")

    async def find_source_products(self, variants: Sequence[str]) -> Mapping[str, tuple[str, str]]:
        found = await self._fetch_rows("find_source_products", ids=encode_texts(variants))
        return {id: (product, source) for id, product, source in found}

    async def count_stated_offers(self, source: str, stream: Stream) -> int:
        return int(await self._fetch_scalar("count_stated_offers", source=source, bit=STREAM_BITS[stream]))

    async def find_stated_offers(self, source: str, stream: Stream, keys: Sequence[str]) -> frozenset[tuple[str, str]]:
        bit = STREAM_BITS[stream]
        if stream == Stream.CATALOGUE:
            found = await self._fetch_rows(
                "find_stated_offers_by_product", source=source, keys=encode_texts(keys), bit=bit
            )
            return frozenset((key, location) for key, location in found)
        by_key = await self._fetch_rows("find_variants_by_key", source=source, keys=encode_texts(keys))
        keys_by_id = {id_: key for key, id_ in by_key}
        resolved = set(keys_by_id.values())
        codes = {code: key for key in keys if key not in resolved and (code := search_terms.normalise_code(key))}
        if codes:
            by_code = await self._fetch_rows("find_variants_by_code", source=source, codes=encode_texts(codes))
            keys_by_id |= {id_: codes[code] for code, id_ in by_code if id_ not in keys_by_id}
        found = await self._fetch_rows(
            "find_stated_offers_by_variant", source=source, ids=encode_texts(keys_by_id), bit=bit
        )
        return frozenset((keys_by_id[variant], location) for variant, location in found)

    async def list_category_paths(self, source: str, limit: int, max_chars: int) -> CategoryPaths:
        low, high = search_terms.path_term_range(source)
        found = await self._fetch_rows("list_category_paths", low=low, high=high, limit=limit, max_chars=max_chars)
        return CategoryPaths({tuple(path): n for path, n, _ in found}, found[0][2] - len(found) if found else 0)

    async def find_absent_products(self, source: str, since: datetime) -> Sequence[AbsentProduct]:
        values = {
            "stream": Stream.CATALOGUE,
            "discontinued": ProductStatus.DISCONTINUED,
            "missed_runs": MIN_MISSED_RUNS,
        }
        found = await self._fetch_rows("find_absent_products", source=source, since=since, **values)
        return [AbsentProduct(key, ProductStatus(status), absent_since) for key, status, absent_since in found]


def _match_variants(
    products: Iterable[Product], source: str, keys: Sequence[str], codes: Mapping[str, str]
) -> dict[str, tuple[Product, Variant]]:
    """Return the product and variant of each key: the variant with the key, else the only one with the key as its SKU.

    Args:
        products: Products to search.
        source: Source whose variants are considered.
        keys: Keys of variants.
        codes: Normalised codes by key, for keys that may be SKUs.
    """
    candidates = [(product, entry) for product in products for entry in product.variants if entry.source == source]
    candidate_by_key = {variant.key: (product, variant) for product, variant in candidates}
    found = {key: candidate_by_key[key] for key in keys if key in candidate_by_key}
    if codes:
        by_code: dict[str, list[tuple[Product, Variant]]] = {}
        for product, variant in candidates:
            if sku := rows.read_sku(variant.data):
                by_code.setdefault(search_terms.normalise_code(sku), []).append((product, variant))
        for key, code in codes.items():
            if key not in found and len(by_code.get(code, ())) == 1:
                found[key] = by_code[code][0]
    return found


def _build_offer_line(row: DatabaseRow, titles: Mapping[str, str]) -> OfferLine:
    """Build an entry of the offer list from a row.

    `titles` contains the titles of products whose data was too large to be read with the row, by product ID.
    """
    title = titles.get(row[2]) if row[21] is None else rows.decode_data(row[21]).get("title")
    offer, hidden = rows.build_offer(*row[:20]), HIDDEN_FIELDS_BY_VIEW[row[25]]
    offer.data = {name: value for name, value in offer.data.items() if name not in hidden}
    return OfferLine(offer, row[20], title, rows.decode_data(row[22]).get("sku"), row[23], row[24])


class _CopyReader:
    """Reader of the rows of a COPY command, in a thread.

    The server sends chunks of 8 KB. An iteration of the event loop for each would cost as much as the compression.
    """

    def __init__(self, pgconn: pq.abc.PGconn) -> None:
        self._pgconn = pgconn
        self._bytes_before_document = _HEADER_BYTES + _ROW_HEADER_BYTES
        self._is_cancelled = False
        self.is_finished = False

    async def read_portion(self) -> Lines:
        """Return the next portion of documents. If cancelled, wait until the thread no longer uses the connection."""
        reading = asyncio.ensure_future(asyncio.to_thread(self._read_portion_in_thread))
        try:
            return await asyncio.shield(reading)
        except asyncio.CancelledError:
            self._is_cancelled = True
            await asyncio.wait((reading,))
            raise

    def _read_portion_in_thread(self) -> Lines:
        documents: list[bytes | memoryview] = []
        total, prefix, get, append = 0, self._bytes_before_document, self._pgconn.get_copy_data, documents.append
        while total < MIN_PORTION_BYTES:
            size, row = get(1)
            if size > prefix:  # each row is one message; the trailer is shorter
                append(row[prefix:])
                total += size
                prefix = self._bytes_before_document = _ROW_HEADER_BYTES
            elif size < 0:
                self._read_final_result()
                break
            elif size == 0 and not self._wait_for_data():
                break
        rows = len(documents)
        append(b"")
        return Lines(rows, b"\n".join(documents) if rows else b"")

    def _wait_for_data(self) -> bool:
        """Wait until the server has sent data and return True; return False if the reader was cancelled."""
        poll = select.poll()
        poll.register(self._pgconn.socket, select.POLLIN)
        while not self._is_cancelled:
            if poll.poll(_CANCEL_CHECK_MILLISECONDS):
                self._pgconn.consume_input()
                return True
        return False

    def _read_final_result(self) -> None:
        """Read the final result of the COPY command; raise the server's error, if any."""
        self.is_finished = True
        failed: pq.abc.PGresult | None = None
        while (result := self._pgconn.get_result()) is not None:
            if result.status != pq.ExecStatus.COMMAND_OK:
                failed = failed or result
        if failed is not None:
            raise error_from_result(failed)
