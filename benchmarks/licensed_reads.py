"""Response times of product lists for an organisation that reads 50 licensed catalogues, compared with one own catalogue of the same size."""

import argparse
import asyncio
import statistics
import time
from collections.abc import Mapping
from datetime import timedelta
from urllib.parse import urlencode

import aiohttp

from adapters.postgres.nodes.connections import Connection
from adapters.postgres.nodes.pool import Pool
from benchmarks.generated_rows import create_past_partitions, insert_rows
from benchmarks.ingest import print_figure
from benchmarks.list_pages import LargeOrganisation, _format_value, build_queries, prepare
from benchmarks.read import wait_for_port
from benchmarks.stack import AUDIT_CONTEXT, Stack, running_stack
from domain.access.usecases import AccessService, KeyRequest
from domain.kernel.tenancy import Tenant
from ports.unit_of_work import UnitOfWork

PORT = 18_989
CATALOGUES = 50
_REPETITIONS = 40
_OWNER = "'org_vendor' || (hashtext({product}) & 1023) % 50"
_CATALOGUE = "'cat_vendor' || (hashtext({product}) & 1023) % 50"
_COPIES = {
    "published_products (livemode, id, org, catalogue, source, key, status, version, brand_key, data, updated_at)":
        "livemode, id, {owner}, {catalogue}, source, key, status, version, brand_key, data, updated_at FROM products",
    "published_terms (livemode, term, product, org, catalogue)":
        "livemode, term, product, {owner}, {catalogue} FROM product_terms",
    "published_facets (livemode, product, org, catalogue, status, brand_key, category, sources, title_key, currency, price, availabilities, completeness, "
    "is_priced, colours, finishes)":
        "livemode, product, {owner}, {catalogue}, status, brand_key, category, sources, title_key, currency, price, availabilities, completeness, "
        "is_priced, colours, finishes FROM product_facets",
    "published_documents (livemode, product, view, org, catalogue, body, etag)":
        "livemode, product, view_name, {owner}, {catalogue}, body, etag FROM product_documents, unnest(ARRAY['network', 'stock']) AS v (view_name)",
    "published_variants (livemode, id, org, catalogue, product, key, sku_code, mpn_code, gtin_key, data)":
        "livemode, id, {owner}, {catalogue}, product, key, sku_code, mpn_code, gtin_key, data FROM variants",
    "published_offers (livemode, id, org, catalogue, variant, product, source, location, currency, cost, msrp, map, price, compare_at, quantity, incoming, "
    "availability, lead_time_days, version, stated, observed_at, updated_at, withdrawn_at)":
        "livemode, id, {owner}, {catalogue}, variant, product, source, location, currency, cost, msrp, map, price, compare_at, quantity, incoming, "
        "availability, lead_time_days, version, stated, observed_at, updated_at, withdrawn_at FROM offers",
}  # fmt: skip
"""Copies of the rows of one organisation as the published rows of 50 vendors."""


async def _move_to_vendors(connection: Connection, org: str, reader: str) -> None:
    """Make the rows of an organisation the published catalogues of 50 vendors, half of them with a further licence of the reader."""
    for target, source in _COPIES.items():
        product = "id" if target.startswith("published_products") else "product"
        values = {"owner": _OWNER.format(product=product), "catalogue": _CATALOGUE.format(product=product)}
        statement = f"INSERT INTO {target} SELECT {source.format(**values)} WHERE org = '{org}'"
        await connection.execute(statement.encode())
        table = source.split(" FROM ")[1].split(",")[0]
        await connection.execute(f"DELETE FROM {table} WHERE org = '{org}'".encode())
    await connection.execute(
        "INSERT INTO licences (org, livemode, catalogue, holder, groups, view) "
        "SELECT 'org_vendor' || n, true, 'cat_vendor' || n, '*', '{base,retail}'::text[], 'network' FROM generate_series(0, 49) n "
        f"UNION ALL SELECT 'org_vendor' || n, true, 'cat_vendor' || n, '{reader}', '{{base,retail,stock}}', 'stock' "
        "FROM generate_series(0, 24) n".encode()
    )
    await connection.execute(b"VACUUM ANALYZE")


async def _measure(large: LargeOrganisation, secret: str) -> dict[str, float]:
    """Return the milliseconds of each query of the product list; the lower quartile of the second half of the requests."""
    [products] = [query for query in build_queries(large) if query.path == "/v1/products"]
    filters: Mapping[str, Mapping[str, object]] = {"plain": {}, **products.filters}
    found = {}
    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {secret}"}) as session:
        for name, query in filters.items():
            path = "/v1/products?" + urlencode({key: _format_value(value) for key, value in query.items()})
            times = []
            for _ in range(_REPETITIONS):
                started = time.perf_counter()
                async with session.get(f"http://127.0.0.1:{PORT}{path}") as response:
                    body = await response.read()
                    assert response.status == 200, (name, body)
                times.append((time.perf_counter() - started) * 1000)
            found[name] = statistics.quantiles(times[_REPETITIONS // 2 :], n=4)[0]
    return found


async def main(rows: int) -> None:
    """Measure the lists of one organisation, move its rows to 50 vendors, and measure the lists of a licence holder."""
    async with running_stack(port=PORT) as stack:
        large = await prepare(stack, rows)
        reader = await stack.create_organisation("Reader")
        api = stack.start_process("api")
        try:
            await wait_for_port(PORT)
            own = await _measure(large, large.secret)
            async with stack.dependencies[Pool].connect_as_owner() as pooled:
                connection = pooled.driver_connection
                await _move_to_vendors(connection, large.tenant.org, reader.id)
                # generated IDs contain the day, so those of another day are different
                earlier = large.today.date() - timedelta(days=30)
                await create_past_partitions(connection, earlier)
                await insert_rows(connection, reader.id, reader.get_catalogue_id(True), 10_000, earlier)
                await connection.execute("VACUUM ANALYZE")
            licensed = await _measure(large, await _create_key(stack, reader.id))
        finally:
            api.terminate()
            api.wait(20)
    for name, milliseconds in own.items():
        print_figure(
            f"products: {name}",
            f"own {milliseconds:6.2f} ms   licensed {licensed[name]:6.2f} ms   ratio {licensed[name] / milliseconds:5.2f}",
        )


async def _create_key(stack: Stack, org: str) -> str:
    async with stack.dependencies[UnitOfWork].begin(Tenant(org, True), AUDIT_CONTEXT) as tx:
        return (await stack.dependencies[AccessService].create_key(tx, KeyRequest("bench")))[1]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=500_000, help="offers; a fifth as many products (default: 500,000)")
    asyncio.run(main(parser.parse_args().rows))
