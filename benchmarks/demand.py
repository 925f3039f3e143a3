"""Rate at which signals of demand are counted, and the time of releasing a day (`make bench-demand`)."""

import argparse
import asyncio
import random
import time
from datetime import UTC, datetime, timedelta

import msgspec
import psycopg

from benchmarks.ingest import print_figure
from benchmarks.stack import AUDIT_CONTEXT, Stack, running_stack
from domain.demand.model import DemandDay
from domain.demand.ports import DemandUpkeep
from domain.demand.usecases.release import DemandReleaser
from domain.demand.usecases.signals import DemandService
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from entrypoints.areas.demand import AREA, validate_signals
from entrypoints.http.body import decode_and_validate
from entrypoints.operations.validation import Validator
from ports.clock import Clock
from ports.unit_of_work import UnitOfWork

SIGNALS = 1_000
"""Signals per request."""
PRODUCTS = 2_000
_PUBLISH = (
    "INSERT INTO published_products (livemode, id, catalogue, org, source, key, status, version, data, updated_at) "
    "VALUES (true, %s, 'cat_bench', %s, 'src_bench', 'A', 'active', 1, '{}', now())"
)
_LICENSE = "INSERT INTO licences (org, livemode, catalogue, holder, groups) VALUES (%s, true, 'cat_bench', '*', '{base,retail}')"


def _publish_products(stack: Stack, vendor: str) -> list[str]:
    """Publish products of the vendor, and return their IDs."""
    products = [new_id("prod") for _ in range(PRODUCTS)]
    with psycopg.connect(stack.settings.database_url, autocommit=True) as connection:
        connection.execute(_LICENSE, (vendor,))
        connection.cursor().executemany(_PUBLISH, [(product, vendor) for product in products])
    return products


def _build_body(products: list[str], now: datetime) -> bytes:
    """Return the body of a request: nine tenths are about products, the others are search misses."""
    signals = []
    for number in range(SIGNALS):
        occurred_at = (now - timedelta(minutes=random.randrange(600))).isoformat(timespec="milliseconds")
        signal = {"id": new_id("req"), "type": "view", "occurred_at": occurred_at}
        about = {"type": "search_miss", "query": f"Oak {number % 97}"} if number % 10 == 0 else {}
        signals.append(signal | (about or {"product": random.choice(products)}))
    return msgspec.json.encode({"signals": signals})


async def measure_counting(stack: Stack, tenant: Tenant, products: list[str], rounds: int) -> None:
    """Print the signals per second of one organisation whose requests follow each other, from bytes to commit."""
    body, service, uow = AREA.operations[0].body, DemandService(), stack.dependencies[UnitOfWork]
    assert body is not None
    validator = Validator(body.accepted_schema)
    bodies = [_build_body(products, datetime.now(UTC)) for _ in range(rounds)]
    started, cpu = time.perf_counter(), time.process_time()
    for content in bodies:
        value, _ = decode_and_validate(content, body.max_values, validator)
        async with uow.begin(tenant, AUDIT_CONTEXT) as tx:
            receipt = await service.record(tx, *validate_signals(body.decode(value)), is_vendor=False)
        assert receipt.accepted == SIGNALS, receipt.rejected[:1]
    elapsed, used = time.perf_counter() - started, time.process_time() - cpu
    print_figure("counted signals", f"{rounds * SIGNALS / elapsed:,.0f} a second, one request at a time")
    print_figure(
        "time of a request with 1,000 signals",
        f"{elapsed / rounds * 1e3:.1f} ms, {used / rounds * 1e3:.1f} ms in the API",
    )


async def measure_release(stack: Stack, vendor: str, organisations: int) -> None:
    """Print the time to release a vendor's day, to which `organisations` have sent signals."""
    upkeep, day = stack.dependencies[DemandUpkeep], datetime.now(UTC).date()
    with psycopg.connect(stack.settings.database_url, autocommit=True) as connection:
        statement = """
            INSERT INTO demand_hours SELECT 'org_bench_' || o, true, %(day)s::timestamptz, %(vendor)s, p.id, 'order', 1 + o %% 3
            FROM published_products AS p, generate_series(1, %(organisations)s) AS o
        """
        connection.execute(
            statement,
            {
                "day": datetime(day.year, day.month, day.day, tzinfo=UTC),
                "vendor": vendor,
                "organisations": organisations,
            },
        )
    releaser = DemandReleaser(stack.dependencies[UnitOfWork], upkeep, stack.dependencies[Clock])
    started = time.perf_counter()
    await releaser.release_day(DemandDay(vendor, True, day))
    print_figure(
        f"release of a day: {PRODUCTS:,} products, {organisations} organisations",
        f"{time.perf_counter() - started:.2f} s",
    )


async def main(rounds: int) -> None:
    """Run all measurements with a new database."""
    async with running_stack() as stack:
        vendor, shop = await stack.create_organisation("Mill"), await stack.create_organisation("Shop")
        products = _publish_products(stack, vendor.id)
        await measure_counting(stack, Tenant(shop.id, True), products, rounds)
        await measure_release(stack, vendor.id, 100)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=60)
    asyncio.run(main(options.parse_args().rounds))
