"""Hundreds of thousands of generated database rows of an organisation, for benchmarks of lists (`make bench-read`).

In each table and for each filter, one row is the only one with its value. This row is the oldest, so lists return it
last.
"""

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from psycopg import AsyncClientCursor

from adapters.postgres.nodes.connections import Connection
from adapters.postgres.partitions import create_partitions
from domain.kernel.ids import build_uuid7, encode_base62

DAYS = 20
"""Number of days over which creation times are distributed, up to yesterday."""
SOURCES = 8
CATEGORIES = ("ctg_0000000000000000000001", "ctg_0000000000000000000002")
"""Category of all products, and category of a single product."""
GTIN = "4006381333931"
"""GTIN of every fourth variant; the other variants have unique GTINs."""
RARE_NUMBER = SOURCES
"""Number of the source with one product, its offers and one run, and of the endpoint with one delivery."""
_OFFERS_PER_PRODUCT, _OFFERS_PER_VARIANT = 5, 2
"""Numbers of offers."""

_ID = "('{kind}_' || (%(days)s::text[])[1 + ({n})::bigint * cardinality(%(days)s::text[]) / ({of})::bigint] || lpad(({n})::text, 14, '0'))"
_SOURCE = "('src_' || (%(days)s::text[])[1] || lpad(({n})::text, 14, '0'))"
_ENDPOINT = "('whe_' || (%(days)s::text[])[1] || lpad(({n})::text, 14, '0'))"
_TIME = "(%(first)s::timestamptz + interval '1 day' * {n}::float8 / %(rows)s * cardinality(%(days)s::text[]))"


def _format_id(kind: str, n: str, of: str = "%(rows)s") -> str:
    return _ID.format(kind=kind, n=n, of=of)


def _format_source(n: str, rare: str) -> str:
    """Return the SQL for a row's source: RARE_NUMBER under the condition `rare`, otherwise mostly the first source."""
    return _SOURCE.format(
        n=f"CASE WHEN {rare} THEN {RARE_NUMBER} WHEN ({n}) %% 10 < 6 THEN 0 ELSE ({n}) %% {SOURCES} END"
    )


_P, _V = f"n / {_OFFERS_PER_PRODUCT}", f"n / {_OFFERS_PER_VARIANT}"
_PRODUCTS, _VARIANTS = f"(%(rows)s / {_OFFERS_PER_PRODUCT})", f"(%(rows)s / {_OFFERS_PER_VARIANT})"
_UPDATED = "CASE WHEN {n} = 0 THEN %(today)s::timestamptz WHEN {n} < {of} / 10 THEN %(today)s::timestamptz - interval '1 day' ELSE %(first)s::timestamptz END"
_JSON = "convert_to('{{\"title\": \"Halden walnut sofa ' || n || '\", \"sku\": \"SKU-' || n || '\", \"rest\": \"' || repeat('x', {length}) || '\"}}', 'UTF8')"

_CODES = f"""convert_to('{{"sku": "SKU-' || n || '", "mpn": "' || CASE WHEN n %% 3 = 0 THEN 'MANY' ELSE 'M-' || n END || '", "gtin": "'
    || CASE WHEN n %% 4 = 0 THEN '{GTIN}' ELSE lpad((n + 1)::text, 13, '0') END || '", "rest": "' || repeat('x', 150) || '"}}', 'UTF8')"""

_COLOUR = "CASE WHEN n = 0 THEN 'red' ELSE (ARRAY['white', 'black', 'grey', 'brown', 'beige', 'cream'])[n %% 6 + 1] END"
_STATEMENTS: Final[Mapping[str, str]] = {
    "sources": f"""
INSERT INTO sources (org, livemode, id, catalogue, name, kind, connector, config, schedule, status, licence_basis, first_party,
    failures, interval_factor, version, created_at, updated_at)
SELECT %(org)s, true, {_SOURCE.format(n="n")}, %(catalogue)s, 'Source ' || n, 'file', 'csv', '{{"currency": "usd"}}',
    '{{"mode": "manual"}}', 'active', 'own_data', false, 0, '{{}}', 1, %(first)s, %(first)s
FROM generate_series(0, {SOURCES}) n""",
    "products": f"""
INSERT INTO products (org, livemode, id, catalogue, source, key, status, version, visibility, brand_key, data, created_at, updated_at)
SELECT %(org)s, true, {_format_id("prod", "n", _PRODUCTS)}, %(catalogue)s, {_format_source("n", "n = 0")}, 'P' || n,
    CASE WHEN n = 0 THEN 'discontinued' WHEN n %% 20 = 0 THEN 'probably_discontinued' ELSE 'active' END, 1, 'listed',
    CASE WHEN n = 0 THEN 'alone' ELSE 'brand' || n %% 100 END, {_JSON.format(length=600)}, %(first)s,
    {_UPDATED.format(n="n", of=_PRODUCTS)}
FROM generate_series(0, {_PRODUCTS} - 1) n""",
    "product_documents": f"""
INSERT INTO product_documents (org, livemode, product, view, body, etag)
SELECT %(org)s, true, {_format_id("prod", "n", _PRODUCTS)}, 'own', {_JSON.format(length=1200)}, md5(n::text)
FROM generate_series(0, {_PRODUCTS} - 1) n""",
    "product_terms": f"""
INSERT INTO product_terms (org, livemode, term, product)
SELECT %(org)s, true, term, {_format_id("prod", "n", _PRODUCTS)} FROM generate_series(0, {_PRODUCTS} - 1) n,
    unnest(ARRAY['w:halden', 'w:sofa', 'w:' || n, 'c:' || (%(categories)s::text[])[1], CASE WHEN n = 0 THEN 'c:' || (%(categories)s::text[])[2] ELSE 'c:c' || n %% 30 END,
        CASE WHEN n = 0 THEN 'w:alone' WHEN n %% 3 = 0 THEN 'w:walnut' ELSE 'w:oak' END,
        'w:' || {_COLOUR}, CASE WHEN n = 0 THEN 'a:preorder' WHEN n %% 5 = 0 THEN 'a:low_stock' ELSE 'a:in_stock' END, 's:' || {_format_source("n", "n = 0")}]) term""",
    "product_facets": f"""
INSERT INTO product_facets (org, livemode, product, catalogue, status, brand_key, category, sources, title_key, currency, price, availabilities, completeness,
    is_priced, colours, finishes)
SELECT %(org)s, true, {_format_id("prod", "n", _PRODUCTS)}, %(catalogue)s,
    CASE WHEN n = 0 THEN 'discontinued' WHEN n %% 20 = 0 THEN 'probably_discontinued' ELSE 'active' END, CASE WHEN n = 0 THEN 'alone' ELSE 'brand' || n %% 100 END,
    (%(categories)s::text[])[CASE WHEN n = 0 THEN 2 ELSE 1 END], ARRAY[{_format_source("n", "n = 0")}], 'halden walnut sofa ' || n,
    CASE WHEN n = 0 THEN 'chf' WHEN n %% 7 > 0 THEN 'usd' END, CASE WHEN n = 0 OR n %% 7 > 0 THEN 49900 + n %% 977 END,
    CASE WHEN n = 0 THEN 8 WHEN n %% 5 = 0 THEN 32 ELSE 64 END, CASE WHEN n = 0 THEN 90 ELSE n %% 80 END, true,
    CASE WHEN n = 0 THEN 256 ELSE 1 << n %% 6 END, CASE WHEN n %% 3 = 0 THEN 2 ELSE 1 END
FROM generate_series(0, {_PRODUCTS} - 1) n""",
    "variants": f"""
INSERT INTO variants (org, livemode, id, product, source, key, sku_code, mpn_code, gtin_key, status, version, data, updated_at)
SELECT %(org)s, true, {_format_id("var", "n", _VARIANTS)},
    {_format_id("prod", f"n * {_OFFERS_PER_VARIANT} / {_OFFERS_PER_PRODUCT}", _PRODUCTS)}, {_format_source(f"n * {_OFFERS_PER_VARIANT} / {_OFFERS_PER_PRODUCT}", "n = 0")},
    'V' || n, 'sku' || n, CASE WHEN n %% 3 = 0 THEN 'many' ELSE 'm' || n END, CASE WHEN n %% 4 = 0 THEN '{GTIN}' ELSE (n + 1)::text END,
    'active', 1, {_CODES}, %(first)s
FROM generate_series(0, {_VARIANTS} - 1) n""",
    "offers": f"""
INSERT INTO offers (org, livemode, id, variant, product, source, location, currency, cost, price, quantity, availability,
    version, stated, observed_at, updated_at)
SELECT %(org)s, true, {_format_id("ofr", "n")}, {_format_id("var", _V, _VARIANTS)}, {_format_id("prod", f"{_V} * {_OFFERS_PER_VARIANT} / {_OFFERS_PER_PRODUCT}", _PRODUCTS)},
    {_format_source(f"{_V} * {_OFFERS_PER_VARIANT} / {_OFFERS_PER_PRODUCT}", "n = 0")}, 'place ' || n %% 2, 'usd', 10000 + n %% 977, 49900 + n %% 977, n %% 40,
    CASE WHEN n = 0 THEN 'preorder' WHEN n %% 50 = 0 THEN 'backorder' WHEN n %% 17 = 0 THEN 'low_stock'
        WHEN n %% 8 = 0 THEN 'out_of_stock' ELSE 'in_stock' END, 1, 1, %(first)s, {_UPDATED.format(n="n", of="%(rows)s")}
FROM generate_series(0, %(rows)s - 1) n""",
    "runs": f"""
INSERT INTO runs (org, livemode, id, source, trigger, stream, status, stage, stats, problems, snapshot, accept_shrink, created_at,
    started_at, finished_at)
SELECT %(org)s, true, {_format_id("run", "n")}, {_format_source("n", "n = 0")}, 'schedule', 'stock', 'succeeded', 'done',
    '{{"rows": 1000, "changed": 10}}', '[]', 'snapshots/' || %(org)s || '/' || n, false, {_TIME.format(n="n")}, {_TIME.format(n="n")},
    {_TIME.format(n="n")}
FROM generate_series(0, %(rows)s - 1) n""",
    "events": f"""
INSERT INTO events (position, org, livemode, id, type, subject, product, source, catalogue, version, time, body)
SELECT n + 1, %(org)s, true, {_format_id("evt", "n")},
    CASE WHEN n = 0 THEN 'source.blocked' WHEN n %% 10 = 0 THEN 'product.updated' ELSE 'offer.changed' END,
    {_format_id("ofr", "n")}, {_format_id("prod", _P, _PRODUCTS)}, {_format_source(_P, "n = 0")}, %(catalogue)s, 1, {_TIME.format(n="n")},
    convert_to('{{"id": "' || {_format_id("evt", "n")} || '", "type": "offer.changed", "data": "' || repeat('x', 300) || '"}}', 'UTF8')
FROM generate_series(0, %(rows)s - 1) n""",
    "event_logs": """
INSERT INTO event_logs (org, livemode, epoch, last, time)
SELECT %(org)s, true, 1, max(position), max(time) FROM events WHERE org = %(org)s AND livemode HAVING count(*) > 0""",
    "event_log_terms": """
INSERT INTO event_log_terms (org, livemode, term, block)
SELECT %(org)s, true, type, (position - 1) / 512 FROM events WHERE org = %(org)s AND livemode
UNION SELECT %(org)s, true, catalogue, (position - 1) / 512 FROM events WHERE org = %(org)s AND livemode""",
    "webhook_endpoints": f"""
INSERT INTO webhook_endpoints (org, livemode, id, shard, url, event_types, sources, categories, catalogues, payload,
    coalesce_seconds, api_version, status, secret, secret_last4, version, created_at, updated_at, checkpoint)
SELECT %(org)s, true, {_ENDPOINT.format(n="n")}, n, 'https://receiver.example/' || n, '{{*}}', '{{}}', '{{}}', '{{}}', 'thin', 0,
    '2026-11-20', 'disabled', '\\x00', 'abcd', 1, %(first)s, %(first)s, 0
FROM generate_series(0, {SOURCES}) n""",
    "webhook_deliveries": f"""
INSERT INTO webhook_deliveries (org, livemode, id, endpoint, event, type, subject, positions, status, attempts, tries, created_at,
    completed_at)
SELECT %(org)s, true, {_format_id("dlv", "n")},
    {_ENDPOINT.format(n=f"CASE WHEN n = 1 THEN {RARE_NUMBER} WHEN n %% 10 < 9 THEN 0 ELSE n %% {SOURCES} END")}, {_format_id("evt", "n")},
    CASE WHEN n = 0 THEN 'source.blocked' WHEN n %% 10 = 0 THEN 'product.updated' ELSE 'offer.changed' END, {_format_id("ofr", "n")},
    ARRAY[n::bigint], CASE WHEN n = 0 THEN 'failed' ELSE 'succeeded' END,
    '[{{"at": "2026-11-20T13:08:00.123+00:00", "status": "succeeded", "duration_ms": 12}}]', 1, {_TIME.format(n="n")}, {_TIME.format(n="n")}
FROM generate_series(0, %(rows)s - 1) n""",
    "match_pairs": f"""
INSERT INTO match_pairs (org, livemode, id, status, left_variant, left_product, right_variant, right_product, probability, prior,
    evidence, conflicts, created_at, updated_at, held)
SELECT %(org)s, true, {_format_id("mpr", "n")}, CASE WHEN n = 0 THEN 'dismissed' ELSE 'open' END, {_format_id("var", _V, _VARIANTS)},
    {_format_id("prod", _P, _PRODUCTS)}, {_format_id("var", f"(n %% {_VARIANTS})", _VARIANTS)}, {_format_id("prod", f"(n %% {_PRODUCTS})", _PRODUCTS)},
    0.9, -1, '[]', '{{}}', {_TIME.format(n="n")}, {_TIME.format(n="n")}, false
FROM generate_series(0, %(rows)s - 1) n""",
    "merges": f"""
INSERT INTO merges (org, livemode, id, status, kind, survivor, merged, decided_by, created_at, pair, rests_on)
SELECT %(org)s, true, {_format_id("mrg", "n")}, CASE WHEN n = 0 THEN 'undone' ELSE 'applied' END,
    CASE WHEN n %% 3 = 0 THEN 'product' ELSE 'variant' END, {_format_id("var", _V, _VARIANTS)}, {_format_id("var", "n")}, 'rules',
    {_TIME.format(n="n")}, {_format_id("mpr", "n")}, '{{}}'
FROM generate_series(0, %(rows)s - 1) n""",
    "audit_entries": f"""
INSERT INTO audit_entries (org, livemode, id, actor, action, target, target_id, change, before, after, created_at, reversible, sequence)
SELECT %(org)s, true, {_format_id("aud", "n")}, jsonb_build_object('kind', 'api_key', 'id', CASE WHEN n = 0 THEN 'key_alone' ELSE 'key_1' END),
    CASE WHEN n = 0 THEN 'matching.merge_pair' WHEN n %% 2 = 0 THEN 'sources.update' ELSE 'sources.create' END,
    CASE WHEN n = 0 THEN 'merge' ELSE 'source' END, CASE WHEN n %% 9 = 1 AND n %% 2 = 1 THEN 'src_many' ELSE 'src_' || n END,
    'update', '{{"name": "Old"}}', '{{"name": "New"}}', {_TIME.format(n="n")}, n %% 2 = 0, n + 1
FROM generate_series(0, %(rows)s - 1) n""",
    "request_logs": f"""
INSERT INTO request_logs (org, livemode, position, id, method, path, route, status, error_code, duration_ms, actor, via,
    api_version, created_at)
SELECT %(org)s, true, lpad((extract(epoch FROM {_TIME.format(n="n")}) * 1000)::bigint::text, 13, '0') || '-' || lpad(n::text, 10, '0') || '-00000000',
    {_format_id("req", "n")}, 'GET', '/v1/products', '/v1/products', CASE WHEN n %% 50 = 0 THEN 404 ELSE 200 END,
    CASE WHEN n %% 50 = 0 THEN 'not_found' END, 3,
    '{{"kind": "api_key", "id": "key_1", "on_behalf_of": null}}', 'api', '2026-11-20', {_TIME.format(n="n")}
FROM generate_series(0, %(rows)s - 1) n""",
}


async def create_past_partitions(connection: Connection, today: date) -> None:
    """Create the partitions for the days over which rows are distributed."""
    for age in range(DAYS, -1, -4):
        await create_partitions(connection, today - timedelta(days=age))


def _build_day_prefixes(today: date) -> list[str]:
    """Return the first eight characters of IDs of each day; they encode the time."""
    days = [today - timedelta(days=age) for age in range(DAYS, 0, -1)]
    noons = [datetime(day.year, day.month, day.day, 12, tzinfo=UTC) for day in days]
    return [encode_base62(build_uuid7(int(noon.timestamp()) * 1000, 0))[:8] for noon in noons]


def build_row_id(kind: str, number: int, today: date, total: int | None = None) -> str:
    """Return the ID of the row with a number.

    Args:
        kind: Prefix of the ID.
        number: Number of the row, from 0.
        today: Date passed to `insert_rows`.
        total: Number of rows of the table; None for sources and endpoints, whose rows are all of the first day.
    """
    day_prefixes = _build_day_prefixes(today)
    day_prefix = day_prefixes[number * len(day_prefixes) // total] if total else day_prefixes[0]
    return f"{kind}_{day_prefix}{number:014d}"


async def insert_rows(connection: Connection, org: str, catalogue: str, rows: int, today: date) -> dict[str, Any]:
    """Insert `rows` offers, events, deliveries, runs and request logs in live mode, and products and variants of the offers.

    Returns:
        The parameters of the statements.
    """
    first = datetime(today.year, today.month, today.day, tzinfo=UTC) - timedelta(days=DAYS)
    values = {
        "org": org,
        "catalogue": catalogue,
        "rows": rows,
        "days": _build_day_prefixes(today),
        "categories": list(CATEGORIES),
        "first": first,
        "today": datetime.now(UTC),
    }
    async with AsyncClientCursor(connection) as cursor:
        for statement in _STATEMENTS.values():
            await cursor.execute(statement.encode(), values)
    return values
