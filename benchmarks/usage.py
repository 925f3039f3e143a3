"""Cost of counting usage for quotas (`make bench-usage`)."""

import argparse
import asyncio
import statistics
import time
from collections.abc import Collection
from unittest.mock import patch

from adapters.postgres.locks import PostgresShards
from adapters.postgres.webhook_deliveries import _Outcomes
from benchmarks.ingest import print_figure
from benchmarks.stack import AUDIT_CONTEXT, Stack, running_stack
from domain.changes.model import FeedPosition
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from domain.usage.meters import RECORDS, find_month_start
from domain.usage.ports import UsageMeters
from domain.usage.usecases import quota
from domain.webhooks.model import (
    AttemptStatus,
    Delivery,
    DeliveryAttempt,
    DeliveryStatus,
    EncryptedSecrets,
    Endpoint,
)
from domain.webhooks.ports import DeliveryProgress, DeliveryStore, WebhookStore
from ports.clock import Clock
from ports.unit_of_work import UnitOfWork

BATCH_SIZE = 200
"""Deliveries per transaction, as a busy worker records them."""


def _build_delivery(stack: Stack, endpoint: str, position: int) -> Delivery:
    now = stack.dependencies[Clock].now()
    attempt = DeliveryAttempt(now, AttemptStatus.SUCCEEDED, 12, response_status=200)
    return Delivery(
        new_id("dlv"), endpoint, new_id("evt"), "offer.changed", new_id("ofr"), (position,), DeliveryStatus.SUCCEEDED, now,
        body=b"{}" * 400, attempts=(attempt,), tries=1, attempts_made=1, completed_at=now,
    )  # fmt: skip


async def _record_deliveries(log: DeliveryStore, tenant: Tenant, deliveries: list[Delivery]) -> float:
    progress = DeliveryProgress(deliveries=[(tenant, delivery) for delivery in deliveries])
    started = time.perf_counter()
    await log.record_progress(progress)
    return (time.perf_counter() - started) / len(deliveries)


async def measure_delivery_counting(stack: Stack, tenant: Tenant, rounds: int) -> None:
    """Print the time to record a delivery with and without counting, in alternating batches."""
    now = stack.dependencies[Clock].now()
    endpoint = Endpoint(
        id=new_id("whe"),
        url="https://bench.example/",
        event_types=("*",),
        api_version="2026-10-04",
        secret_last4="0000",
        created_at=now,
        updated_at=now,
    )
    async with stack.dependencies[UnitOfWork].begin(tenant, AUDIT_CONTEXT) as tx:
        await tx[WebhookStore].add(endpoint, EncryptedSecrets(b"sealed"), FeedPosition())
    await stack.dependencies[PostgresShards].rebalance()
    log, position = stack.dependencies[DeliveryStore], 0
    durations_by_counting: dict[bool, list[float]] = {True: [], False: []}

    def skip_counting(_: _Outcomes, __: Collection[str]) -> list[str]:
        return []

    for number in range(2 * rounds):
        deliveries = [_build_delivery(stack, endpoint.id, position + index) for index in range(BATCH_SIZE)]
        position += BATCH_SIZE
        if number % 2:
            with patch.object(_Outcomes, "succeeded", skip_counting):
                durations_by_counting[False].append(await _record_deliveries(log, tenant, deliveries))
        else:
            durations_by_counting[True].append(await _record_deliveries(log, tenant, deliveries))
    counted, uncounted = (statistics.median(durations_by_counting[is_counted]) * 1e6 for is_counted in (True, False))
    print_figure(
        f"recording a delivery, in batches of {BATCH_SIZE}",
        f"{counted:7.1f} µs with counting, {uncounted:7.1f} µs without: {counted - uncounted:+.1f} µs",
    )
    async with stack.dependencies[UnitOfWork].begin_reading(tenant) as tx:
        used = await tx[UsageMeters].get_month_usage(find_month_start(now.date()))
    print_figure("counted deliveries", f"{used['deliveries']:,} of {rounds * BATCH_SIZE:,}")


async def measure_run_counting(stack: Stack, tenant: Tenant, rounds: int) -> None:
    """Print the time to reserve a quota at the start of a run, and to count the rows of a chunk."""
    reservation_times, counting_times = [], []
    for number in range(rounds):
        started = time.perf_counter()
        async with stack.dependencies[UnitOfWork].begin(tenant, AUDIT_CONTEXT) as tx:
            await quota.reserve_quota(tx, RECORDS, 20_000, f"run_{number}")
        reservation_times.append(time.perf_counter() - started)
        async with stack.dependencies[UnitOfWork].begin(tenant, AUDIT_CONTEXT) as tx:
            started = time.perf_counter()
            await tx[UsageMeters].add_usage(RECORDS, 20_000, f"run_{number}")
            counting_times.append(time.perf_counter() - started)
    print_figure("reserving quota, once per run", f"{statistics.median(reservation_times) * 1e6:7.0f} µs")
    print_figure("counting, once per chunk of about 20,000 rows", f"{statistics.median(counting_times) * 1e6:7.0f} µs")


async def main(rounds: int) -> None:
    """Run all measurements with a new database."""
    async with running_stack() as stack:
        tenant = Tenant((await stack.create_organisation()).id, True)
        await measure_delivery_counting(stack, tenant, rounds)
        await measure_run_counting(stack, tenant, rounds)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=60)
    asyncio.run(main(options.parse_args().rounds))
