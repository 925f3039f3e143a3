"""What the service has on its hands, over all organisations in memory."""

from collections.abc import Sequence
from datetime import datetime

from adapters.memory.orgs import ORGS
from adapters.memory.request_logs import REQUEST_LOGS
from adapters.memory.runs import RUNS
from adapters.memory.sources import SOURCES as KEPT_SOURCES
from adapters.memory.storage import ENTRIES
from adapters.memory.table import EVERYWHERE, MemoryDatabase
from adapters.memory.usage import DAYS
from adapters.memory.webhooks import DELIVERIES
from domain.kernel.tenancy import Tenant
from domain.platform.workload import COUNTED, LOOKED_AT, SOURCES, TENANTS, WINDOW, SourceLoad, TenantLoad
from domain.runs.model import Run
from domain.sources.model import Source, SourceStatus
from ports.clock import Clock


class MemoryWorkload:
    """Workload."""

    def __init__(self, store: MemoryDatabase, clock: Clock) -> None:
        self._store, self._clock = store, clock

    async def tenants(self, now: datetime) -> Sequence[TenantLoad]:
        busy = {tenant for tenant, usage in self._store.everyone(DAYS) if usage.day == now.date()}
        busy |= {tenant for tenant, _ in self._store.everyone(ENTRIES)}
        loads = [load for tenant in busy if (load := self._load(tenant, now)) is not None]
        looked = sorted(loads, key=lambda one: (one.records, one.stored_bytes), reverse=True)[:LOOKED_AT]
        return sorted(
            looked, key=lambda one: (one.requests + one.deliveries, one.records, one.stored_bytes), reverse=True
        )[:TENANTS]

    async def slowest(self) -> Sequence[SourceLoad]:
        found = []
        for tenant, source in self._store.everyone(KEPT_SOURCES):
            runs = [run for run in self._store.committed(RUNS, tenant).values() if run.source == source.id]
            newest = max(runs, key=lambda run: run.id, default=None)
            if newest is not None and newest.started_at is not None:
                found.append(self._source(tenant, source, newest))
        return sorted(found, key=lambda one: one.seconds or 0.0, reverse=True)[:SOURCES]

    async def troubled(self) -> Sequence[SourceLoad]:
        sources = [
            self._source(tenant, source, None)
            for tenant, source in self._store.everyone(KEPT_SOURCES)
            if source.status in (SourceStatus.DEGRADED, SourceStatus.BLOCKED)
        ]
        return sorted(sources, key=lambda one: one.failures, reverse=True)[:SOURCES]

    async def tenant_of_source(self, id: str) -> Tenant | None:
        return next((tenant for tenant, source in self._store.everyone(KEPT_SOURCES) if source.id == id), None)

    def _load(self, tenant: Tenant, now: datetime) -> TenantLoad | None:
        org = self._store.committed(ORGS, EVERYWHERE).get(tenant.org)
        if org is None:
            return None
        days = self._store.committed(DAYS, tenant).values()
        entries = self._store.committed(ENTRIES, tenant).values()
        logs = self._store.committed(REQUEST_LOGS, tenant).values()
        deliveries = self._store.committed(DELIVERIES, tenant).values()
        since = now - WINDOW
        return TenantLoad(
            tenant.org, tenant.livemode, org.name, org.plan.name,
            sum(one.amount for one in days if one.day == now.date() and one.meter == "records"),
            sum(one.stored.bytes for one in entries if not one.freed),
            min(COUNTED, sum(one.log.created_at >= since for one in logs)),
            min(COUNTED, sum(one.created_at >= since for one in deliveries)),
        )  # fmt: skip

    def _source(self, tenant: Tenant, source: Source, run: Run | None) -> SourceLoad:
        seconds = None
        if run is not None and run.started_at is not None:
            seconds = ((run.finished_at or self._clock.now()) - run.started_at).total_seconds()
        reason = source.status_reason.message if source.status_reason else ""
        return SourceLoad(
            tenant.org, tenant.livemode, source.id, source.name, source.connector, source.status, source.failures, reason,
            run.status if run else None, run.started_at if run else None, seconds,
        )  # fmt: skip
