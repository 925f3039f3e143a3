"""Speed of the credit ledger: spends (reserve and settle) with a durable database (`make bench-credits`)."""

import argparse
import asyncio
import itertools
import os
import time
from collections.abc import Sequence
from datetime import timedelta

from benchmarks.stack import AUDIT_CONTEXT, Stack, running_stack
from benchmarks.write import print_figure
from domain.credits.model import CREDIT_SETTINGS_ID, EntryKind
from domain.credits.usecases.ledger import CreditSettingsService
from domain.kernel.tenancy import Tenant
from entrypoints.factories import create_credit_ledger
from ports.unit_of_work import UnitOfWork

LEDGER = create_credit_ledger()


async def create_tenants(stack: Stack, count: int) -> list[Tenant]:
    """Create organisations with two lots of credit each."""
    tenants = []
    for number in range(count):
        tenant = Tenant((await stack.create_organisation(f"Spender {number}")).id, True)
        async with stack.dependencies[UnitOfWork].begin(tenant, AUDIT_CONTEXT) as tx:
            await CreditSettingsService().update(tx, CREDIT_SETTINGS_ID, {"auto_spend": True})
            for days in (100, 200):
                await LEDGER.add_lot(tx, EntryKind.PURCHASE, 10**12, f"crp_{days}", tx.now + timedelta(days=days))
        tenants.append(tenant)
    return tenants


async def measure_spends(
    stack: Stack, name: str, tenants: Sequence[Tenant], tasks: int, group: int, seconds: float
) -> None:
    """Print how many spends a second `tasks` concurrent tasks complete, each with `group` spends in a transaction."""
    numbers, uow, latencies = itertools.count(), stack.dependencies[UnitOfWork], []
    started = time.perf_counter()

    async def spend() -> None:
        while time.perf_counter() - started < seconds:
            number = next(numbers)
            tenant, begun = tenants[number % len(tenants)], time.perf_counter()
            references = [f"use_{tasks}_{group}_{number}_{index}" for index in range(group)]
            async with uow.begin(tenant, AUDIT_CONTEXT) as tx:
                assert all(await LEDGER.reserve_all(tx, [(reference, 9_000) for reference in references]))
            async with uow.begin(tenant, AUDIT_CONTEXT) as tx:
                await LEDGER.settle_all(tx, [(reference, 480) for reference in references])
            latencies.append(time.perf_counter() - begun)

    await asyncio.gather(*(spend() for _ in range(tasks)))
    elapsed = time.perf_counter() - started
    latencies.sort()
    print_figure(
        f"{name}, {tasks} tasks, {group} in a transaction",
        f"{len(latencies) * group / elapsed:6.0f} spends/s   p50 {latencies[len(latencies) // 2] * 1e3:6.2f} ms   "
        f"p99 {latencies[len(latencies) * 99 // 100] * 1e3:6.2f} ms",
    )


async def main(seconds: float) -> None:
    """Run all measurements with a new database."""
    print_figure("load average before", " ".join(f"{load:.2f}" for load in os.getloadavg()))
    async with running_stack() as stack:
        tenants = await create_tenants(stack, 200)
        for name, spenders, tasks, group in (
            ("one organisation", tenants[:1], 1, 1),
            ("one organisation", tenants[:1], 8, 1),
            ("one organisation", tenants[:1], 4, 20),
            ("200 organisations", tenants, 16, 1),
            ("200 organisations", tenants, 16, 20),
        ):
            await measure_spends(stack, f"{name}", spenders, tasks, group, seconds)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=5)
    asyncio.run(main(options.parse_args().seconds))
