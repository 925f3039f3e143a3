"""What counting usage costs, beside not counting (`make bench-usage`)."""

import argparse
import asyncio
import statistics
import time
from collections.abc import Collection
from unittest.mock import patch

from adapters.postgres.locks import PostgresShards
from adapters.postgres.webhook_deliveries import _Outcomes
from benchmarks.ingest import line
from benchmarks.stack import CALL, Stack, stack
from domain.changes.model import FeedPosition
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from domain.usage.meters import RECORDS, month_of
from domain.usage.ports import UsageMeters
from domain.usage.usecases import quota
from domain.webhooks.model import (
    Attempt,
    AttemptStatus,
    Delivery,
    DeliveryStatus,
    Endpoint,
    SealedSecrets,
)
from domain.webhooks.ports import DeliveryLog, Progress, WebhookStore
from ports.clock import Clock
from ports.unit_of_work import UnitOfWork

BATCH = 200
"""Deliveries of one transaction: what a worker under load records at once."""


def _delivery(parts: Stack, endpoint: str, position: int) -> Delivery:
    now = parts.container[Clock].now()
    attempt = Attempt(now, AttemptStatus.SUCCEEDED, 12, response_status=200)
    return Delivery(
        new_id("dlv"), endpoint, new_id("evt"), "offer.changed", new_id("ofr"), (position,), DeliveryStatus.SUCCEEDED, now,
        body=b"{}" * 400, attempts=(attempt,), tries=1, made=1, completed_at=now,
    )  # fmt: skip


async def _recorded(log: DeliveryLog, tenant: Tenant, deliveries: list[Delivery]) -> float:
    progress = Progress(deliveries=[(tenant, one) for one in deliveries])
    begun = time.perf_counter()
    await log.record(progress)
    return (time.perf_counter() - begun) / len(deliveries)


async def deliveries(parts: Stack, tenant: Tenant, rounds: int) -> None:
    """Recording batches with counting and without, in turns."""
    now = parts.container[Clock].now()
    endpoint = Endpoint(
        id=new_id("whe"),
        url="https://bench.example/",
        event_types=("*",),
        api_version="2026-10-04",
        secret_last4="0000",
        created_at=now,
        updated_at=now,
    )
    async with parts.container[UnitOfWork].begin(tenant, CALL) as tx:
        await tx[WebhookStore].add(endpoint, SealedSecrets(b"sealed"), FeedPosition())
    await parts.container[PostgresShards].rebalance()
    log, position = parts.container[DeliveryLog], 0
    found: dict[bool, list[float]] = {True: [], False: []}

    def nothing(_: _Outcomes, __: Collection[str]) -> list[str]:
        return []

    for number in range(2 * rounds):
        made = [_delivery(parts, endpoint.id, position + one) for one in range(BATCH)]
        position += BATCH
        if number % 2:
            with patch.object(_Outcomes, "succeeded", nothing):
                found[False].append(await _recorded(log, tenant, made))
        else:
            found[True].append(await _recorded(log, tenant, made))
    counted, bare = (statistics.median(found[way]) * 1e6 for way in (True, False))
    line(
        f"recording a delivery, {BATCH} at once",
        f"{counted:7.1f} µs counted, {bare:7.1f} µs not: {counted - bare:+.1f} µs",
    )
    async with parts.container[UnitOfWork].read(tenant) as tx:
        used = await tx[UsageMeters].used(month_of(now.date()))
    line("deliveries counted", f"{used['deliveries']:,} of {rounds * BATCH:,}")


async def runs(parts: Stack, tenant: Tenant, rounds: int) -> None:
    """What a run's beginning and each of its portions pay."""
    reserved, counted = [], []
    for number in range(rounds):
        begun = time.perf_counter()
        async with parts.container[UnitOfWork].begin(tenant, CALL) as tx:
            await quota.reserve(tx, RECORDS, 20_000, f"run_{number}")
        reserved.append(time.perf_counter() - begun)
        async with parts.container[UnitOfWork].begin(tenant, CALL) as tx:
            begun = time.perf_counter()
            await tx[UsageMeters].count(RECORDS, 20_000, f"run_{number}")
            counted.append(time.perf_counter() - begun)
    line("keeping room, once a run", f"{statistics.median(reserved) * 1e6:7.0f} µs")
    line("counting, once a portion (some 20,000 rows)", f"{statistics.median(counted) * 1e6:7.0f} µs")


async def main(rounds: int) -> None:
    """On a database of its own."""
    async with stack() as parts:
        tenant = Tenant((await parts.organisation()).id, True)
        await deliveries(parts, tenant, rounds)
        await runs(parts, tenant, rounds)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=60)
    asyncio.run(main(options.parse_args().rounds))
