"""Rows of an organisation by the hundred thousand, made by the database itself, for measuring lists (`make bench-read`).

Each table has one row that is alone in its value of each filter, and it is the oldest: what a list, newest first, comes
to last.
"""

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from psycopg import AsyncClientCursor

from adapters.postgres.nodes.connecting import Connection
from adapters.postgres.partitions import make_days
from domain.kernel.ids import encode, uuid7

DAYS = 20
"""Over so many days rows are spread, up to yesterday."""
SOURCES = 8
CATEGORIES = ("ctg_0000000000000000000001", "ctg_0000000000000000000002")
"""One that all products are filed under, and one that a single product is."""
GTIN = "4006381333931"
"""Of every fourth variant; as many have an MPN in common, and all others each its own."""
RARE = SOURCES
"""The number of the source that has one offer, one product and one run; of the endpoint that has one delivery."""
_OF_PRODUCT, _OF_VARIANT = 5, 2
"""Offers that a product has, and a variant."""

_ID = "('{kind}_' || (%(days)s::text[])[1 + ({n})::bigint * cardinality(%(days)s::text[]) / ({of})::bigint] || lpad(({n})::text, 14, '0'))"
_SOURCE = "('src_' || (%(days)s::text[])[1] || lpad(({n})::text, 14, '0'))"
_ENDPOINT = "('whe_' || (%(days)s::text[])[1] || lpad(({n})::text, 14, '0'))"
_TIME = "(%(first)s::timestamptz + interval '1 day' * {n}::float8 / %(rows)s * cardinality(%(days)s::text[]))"


def _id(kind: str, n: str, of: str = "%(rows)s") -> str:
    return _ID.format(kind=kind, n=n, of=of)


def _source(n: str, rare: str) -> str:
    """Most rows are of the first source, and one of the rare one."""
    return _SOURCE.format(n=f"CASE WHEN {rare} THEN {RARE} WHEN ({n}) %% 10 < 6 THEN 0 ELSE ({n}) %% {SOURCES} END")


_P, _V = f"n / {_OF_PRODUCT}", f"n / {_OF_VARIANT}"
_PRODUCTS, _VARIANTS = f"(%(rows)s / {_OF_PRODUCT})", f"(%(rows)s / {_OF_VARIANT})"
_UPDATED = "CASE WHEN {n} = 0 THEN %(today)s::timestamptz WHEN {n} < {of} / 10 THEN %(today)s::timestamptz - interval '1 day' ELSE %(first)s::timestamptz END"
_JSON = "convert_to('{{\"title\": \"Halden walnut sofa ' || n || '\", \"sku\": \"SKU-' || n || '\", \"rest\": \"' || repeat('x', {length}) || '\"}}', 'UTF8')"

_CODES = f"""convert_to('{{"sku": "SKU-' || n || '", "mpn": "' || CASE WHEN n %% 3 = 0 THEN 'MANY' ELSE 'M-' || n END || '", "gtin": "'
    || CASE WHEN n %% 4 = 0 THEN '{GTIN}' ELSE lpad((n + 1)::text, 13, '0') END || '", "rest": "' || repeat('x', 150) || '"}}', 'UTF8')"""

_STATEMENTS: Final[Mapping[str, str]] = {
    "sources": f"""
INSERT INTO sources (org, livemode, id, catalogue, name, kind, connector, config, schedule, status, licence_basis, first_party,
    failures, interval_factor, version, created_at, updated_at)
SELECT %(org)s, true, {_SOURCE.format(n="n")}, %(catalogue)s, 'Source ' || n, 'file', 'csv', '{{"currency": "usd"}}',
    '{{"mode": "manual"}}', 'active', 'own_data', false, 0, '{{}}', 1, %(first)s, %(first)s
FROM generate_series(0, {SOURCES}) n""",
    "products": f"""
INSERT INTO products (org, livemode, id, catalogue, source, key, status, version, visibility, brand_key, data, created_at, updated_at)
SELECT %(org)s, true, {_id("prod", "n", _PRODUCTS)}, %(catalogue)s, {_source("n", "n = 0")}, 'P' || n,
    CASE WHEN n = 0 THEN 'discontinued' WHEN n %% 20 = 0 THEN 'probably_discontinued' ELSE 'active' END, 1, 'listed',
    CASE WHEN n = 0 THEN 'alone' ELSE 'brand' || n %% 100 END, {_JSON.format(length=600)}, %(first)s,
    {_UPDATED.format(n="n", of=_PRODUCTS)}
FROM generate_series(0, {_PRODUCTS} - 1) n""",
    "product_documents": f"""
INSERT INTO product_documents (org, livemode, product, view, body, etag)
SELECT %(org)s, true, {_id("prod", "n", _PRODUCTS)}, 'own', {_JSON.format(length=1200)}, md5(n::text)
FROM generate_series(0, {_PRODUCTS} - 1) n""",
    "product_terms": f"""
INSERT INTO product_terms (org, livemode, term, product)
SELECT %(org)s, true, term, {_id("prod", "n", _PRODUCTS)} FROM generate_series(0, {_PRODUCTS} - 1) n,
    unnest(ARRAY['w:halden', 'w:sofa', 'w:' || n, 'c:' || (%(categories)s::text[])[1], CASE WHEN n = 0 THEN 'c:' || (%(categories)s::text[])[2] ELSE 'c:c' || n %% 30 END,
        CASE WHEN n = 0 THEN 'w:alone' WHEN n %% 3 = 0 THEN 'w:walnut' ELSE 'w:oak' END,
        CASE WHEN n = 0 THEN 'a:preorder' WHEN n %% 5 = 0 THEN 'a:low_stock' ELSE 'a:in_stock' END, 's:' || {_source("n", "n = 0")}]) term""",
    "variants": f"""
INSERT INTO variants (org, livemode, id, product, source, key, sku_code, mpn_code, gtin_key, status, version, data, updated_at)
SELECT %(org)s, true, {_id("var", "n", _VARIANTS)},
    {_id("prod", f"n * {_OF_VARIANT} / {_OF_PRODUCT}", _PRODUCTS)}, {_source(f"n * {_OF_VARIANT} / {_OF_PRODUCT}", "n = 0")},
    'V' || n, 'sku' || n, CASE WHEN n %% 3 = 0 THEN 'many' ELSE 'm' || n END, CASE WHEN n %% 4 = 0 THEN '{GTIN}' ELSE (n + 1)::text END,
    'active', 1, {_CODES}, %(first)s
FROM generate_series(0, {_VARIANTS} - 1) n""",
    "offers": f"""
INSERT INTO offers (org, livemode, id, variant, product, source, location, currency, cost, price, quantity, availability,
    version, stated, observed_at, updated_at)
SELECT %(org)s, true, {_id("ofr", "n")}, {_id("var", _V, _VARIANTS)}, {_id("prod", f"{_V} * {_OF_VARIANT} / {_OF_PRODUCT}", _PRODUCTS)},
    {_source(f"{_V} * {_OF_VARIANT} / {_OF_PRODUCT}", "n = 0")}, 'place ' || n %% 2, 'usd', 10000 + n %% 977, 49900 + n %% 977, n %% 40,
    CASE WHEN n = 0 THEN 'preorder' WHEN n %% 50 = 0 THEN 'backorder' WHEN n %% 17 = 0 THEN 'low_stock'
        WHEN n %% 8 = 0 THEN 'out_of_stock' ELSE 'in_stock' END, 1, 1, %(first)s, {_UPDATED.format(n="n", of="%(rows)s")}
FROM generate_series(0, %(rows)s - 1) n""",
    "runs": f"""
INSERT INTO runs (org, livemode, id, source, trigger, stream, status, stage, stats, problems, snapshot, accept_shrink, created_at,
    started_at, finished_at)
SELECT %(org)s, true, {_id("run", "n")}, {_source("n", "n = 0")}, 'schedule', 'stock', 'succeeded', 'done',
    '{{"rows": 1000, "changed": 10}}', '[]', 'snapshots/' || %(org)s || '/' || n, false, {_TIME.format(n="n")}, {_TIME.format(n="n")},
    {_TIME.format(n="n")}
FROM generate_series(0, %(rows)s - 1) n""",
    "events": f"""
INSERT INTO events (position, org, livemode, id, type, subject, product, source, catalogue, version, time, body)
SELECT n + 1, %(org)s, true, {_id("evt", "n")},
    CASE WHEN n = 0 THEN 'source.blocked' WHEN n %% 10 = 0 THEN 'product.updated' ELSE 'offer.changed' END,
    {_id("ofr", "n")}, {_id("prod", _P, _PRODUCTS)}, {_source(_P, "n = 0")}, %(catalogue)s, 1, {_TIME.format(n="n")},
    convert_to('{{"id": "' || {_id("evt", "n")} || '", "type": "offer.changed", "data": "' || repeat('x', 300) || '"}}', 'UTF8')
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
SELECT %(org)s, true, {_id("dlv", "n")},
    {_ENDPOINT.format(n=f"CASE WHEN n = 1 THEN {RARE} WHEN n %% 10 < 9 THEN 0 ELSE n %% {SOURCES} END")}, {_id("evt", "n")},
    CASE WHEN n = 0 THEN 'source.blocked' WHEN n %% 10 = 0 THEN 'product.updated' ELSE 'offer.changed' END, {_id("ofr", "n")},
    ARRAY[n::bigint], CASE WHEN n = 0 THEN 'failed' ELSE 'succeeded' END,
    '[{{"at": "2026-11-20T13:08:00.123+00:00", "status": "succeeded", "duration_ms": 12}}]', 1, {_TIME.format(n="n")}, {_TIME.format(n="n")}
FROM generate_series(0, %(rows)s - 1) n""",
    "match_pairs": f"""
INSERT INTO match_pairs (org, livemode, id, status, left_variant, left_product, right_variant, right_product, probability, prior,
    evidence, conflicts, created_at, updated_at, held)
SELECT %(org)s, true, {_id("mpr", "n")}, CASE WHEN n = 0 THEN 'dismissed' ELSE 'open' END, {_id("var", _V, _VARIANTS)},
    {_id("prod", _P, _PRODUCTS)}, {_id("var", f"(n %% {_VARIANTS})", _VARIANTS)}, {_id("prod", f"(n %% {_PRODUCTS})", _PRODUCTS)},
    0.9, -1, '[]', '{{}}', {_TIME.format(n="n")}, {_TIME.format(n="n")}, false
FROM generate_series(0, %(rows)s - 1) n""",
    "merges": f"""
INSERT INTO merges (org, livemode, id, status, kind, survivor, merged, decided_by, created_at, pair, rests_on)
SELECT %(org)s, true, {_id("mrg", "n")}, CASE WHEN n = 0 THEN 'undone' ELSE 'applied' END,
    CASE WHEN n %% 3 = 0 THEN 'product' ELSE 'variant' END, {_id("var", _V, _VARIANTS)}, {_id("var", "n")}, 'rules',
    {_TIME.format(n="n")}, {_id("mpr", "n")}, '{{}}'
FROM generate_series(0, %(rows)s - 1) n""",
    "audit_entries": f"""
INSERT INTO audit_entries (org, livemode, id, actor, action, target, target_id, change, before, after, created_at, reversible, sequence)
SELECT %(org)s, true, {_id("aud", "n")}, jsonb_build_object('kind', 'api_key', 'id', CASE WHEN n = 0 THEN 'key_alone' ELSE 'key_1' END),
    CASE WHEN n = 0 THEN 'matching.merge_pair' WHEN n %% 2 = 0 THEN 'sources.update' ELSE 'sources.create' END,
    CASE WHEN n = 0 THEN 'merge' ELSE 'source' END, CASE WHEN n %% 9 = 1 AND n %% 2 = 1 THEN 'src_many' ELSE 'src_' || n END,
    'update', '{{"name": "Old"}}', '{{"name": "New"}}', {_TIME.format(n="n")}, n %% 2 = 0, n + 1
FROM generate_series(0, %(rows)s - 1) n""",
    "request_logs": f"""
INSERT INTO request_logs (org, livemode, position, id, method, path, route, status, error_code, duration_ms, actor, via,
    api_version, created_at)
SELECT %(org)s, true, lpad((extract(epoch FROM {_TIME.format(n="n")}) * 1000)::bigint::text, 13, '0') || '-' || lpad(n::text, 10, '0') || '-00000000',
    {_id("req", "n")}, 'GET', '/v1/products', '/v1/products', CASE WHEN n %% 50 = 0 THEN 404 ELSE 200 END,
    CASE WHEN n %% 50 = 0 THEN 'not_found' END, 3,
    '{{"kind": "api_key", "id": "key_1", "on_behalf_of": null}}', 'api', '2026-11-20', {_TIME.format(n="n")}
FROM generate_series(0, %(rows)s - 1) n""",
}


async def make_past_days(connection: Connection, today: date) -> None:
    """Partitions of the days that rows are spread over."""
    for before in range(DAYS, -1, -4):
        await make_days(connection, today - timedelta(days=before))


def _days(today: date) -> list[str]:
    """How ids of each day begin: their first eight characters, which tell times apart by hundredths of a second."""
    days = [today - timedelta(days=before) for before in range(DAYS, 0, -1)]
    noons = [datetime(day.year, day.month, day.day, 12, tzinfo=UTC) for day in days]
    return [encode(uuid7(int(noon.timestamp()) * 1000, 0))[:8] for noon in noons]


def made_id(kind: str, number: int, today: date, of: int | None = None) -> str:
    """The id that a row of that number has, of so many; sources and endpoints are all of the first day."""
    days = _days(today)
    day = days[number * len(days) // of] if of else days[0]
    return f"{kind}_{day}{number:014d}"


async def fill(connection: Connection, org: str, catalogue: str, rows: int, today: date) -> dict[str, Any]:
    """So many offers, events, deliveries, request logs and runs of the organisation's live data; answers what they were made of."""
    first = datetime(today.year, today.month, today.day, tzinfo=UTC) - timedelta(days=DAYS)
    values = {
        "org": org,
        "catalogue": catalogue,
        "rows": rows,
        "days": _days(today),
        "categories": list(CATEGORIES),
        "first": first,
        "today": datetime.now(UTC),
    }
    async with AsyncClientCursor(connection) as cursor:
        for statement in _STATEMENTS.values():
            await cursor.execute(statement.encode(), values)
    return values
