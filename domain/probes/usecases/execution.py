"""Execution of a probe; a worker that takes over the job starts from the beginning."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from weakref import WeakValueDictionary

from domain.audit.ports import AuditLog
from domain.ingestion.ports import Connectors
from domain.jobs.model import ClaimedJob
from domain.jobs.ports import JobStore
from domain.kernel.tenancy import AuditContext
from domain.probes.cleaning import cleaned
from domain.probes.facts import host_of
from domain.probes.model import AUDITED, FailureCode, Probe
from domain.probes.ports import Documents, Web
from domain.probes.usecases.probing import Outcome, ProbeFailed, Probing, Takes
from domain.probes.usecases.visiting import Limits, Visit
from ports.schemas import Schemas
from ports.unit_of_work import Tx, UnitOfWork

_LOG = logging.getLogger("joinery.probes")
_MARGIN = 60.0
"""Seconds beyond the limit after which a probe is stopped, for parsing and judging."""
_DIED = "The probe crashed several times and is not retried."
_OWN_ERROR = "An internal error occurred. The operator can find the error in the log."


@dataclass(frozen=True, slots=True)
class Takable:
    """Check whether a loaded connector can read a proposed source."""

    connectors: Connectors
    schemas: Schemas

    def __call__(self, proposal: Mapping[str, Any]) -> bool:
        """Return whether the connector exists, is pulled and accepts the proposed settings."""
        info = self.connectors.info(str(proposal["connector"]))
        if info is None or not info.fetches or proposal["kind"] not in info.kinds:
            return False
        return not self.schemas.faults(info.config_schema, proposal["config"], "config")


class ProbeExecution:
    """The handler of `probes.carry_out` jobs."""

    def __init__(
        self,
        uow: UnitOfWork,
        web: Web,
        documents: Documents,
        takes: Takes,
        *,
        limits: Limits | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        lease: timedelta = timedelta(seconds=30),
    ) -> None:
        self._uow, self._web, self._documents, self._takes = uow, web, documents, takes
        self._limits, self._sleep, self._lease = limits or Limits(), sleep, lease
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def __call__(self, job: ClaimedJob, lost: asyncio.Event) -> None:
        """Execute the probe to its end. Raises LeaseLost if another worker took over the job."""
        context = job.context()
        probe = await self._begin(job, context)
        if probe is None:
            return
        outcome: Outcome | None = None
        code, message = FailureCode.INTERNAL_ERROR, _OWN_ERROR
        turn = self._turns.setdefault(host_of(probe.url), asyncio.Lock())
        try:
            async with turn, asyncio.timeout(self._limits.seconds + _MARGIN):
                outcome = await self._look(probe)
        except ProbeFailed as failure:
            code = FailureCode.FETCH_REFUSED if failure.refused else FailureCode.FETCH_FAILED
            message = cleaned(str(failure))
        except TimeoutError:
            code, message = FailureCode.TIMED_OUT, f"It took longer than {self._limits.seconds:.0f} seconds."
        except Exception:  # an internal error would recur in every attempt
            _LOG.exception("probe failed", extra={"probe": probe.id})
        async with self._uow.begin(job.tenant, context) as tx:
            ended = (
                probe.succeeded(outcome.report, outcome.proposal, tx.now)
                if outcome is not None
                else probe.failed(code, message, tx.now)
            )
            await _end(tx, job, probe, ended)

    async def _begin(self, job: ClaimedJob, context: AuditContext) -> Probe | None:
        async with self._uow.begin(job.tenant, context) as tx:
            probe = await tx.store(Probe).get(str(job.args["probe"]), lock=True)
            if probe is None or probe.over:
                await tx[JobStore].finish(job)
                return None
            if job.lapsed:
                probe = probe.died()
            if probe.hopeless(tx.now):
                await _end(tx, job, probe, probe.failed(FailureCode.TIMED_OUT, _DIED, tx.now))
                return None
            probe = probe.started(tx.now)
            await tx.store(Probe).save(probe)
            await tx[JobStore].hold(job, self._lease)
            return probe

    async def _look(self, probe: Probe) -> Outcome:
        visit = Visit(self._web, self._documents, self._limits, self._sleep)
        return await Probing(visit, self._documents, self._limits, self._takes).run(probe.url)


async def _end(tx: Tx, job: ClaimedJob, before: Probe, after: Probe) -> None:
    """Store the outcome, its audit entry and the end of the job."""
    await tx.store(Probe).save(after)
    await tx[AuditLog].add(AUDITED.updated(before, after))
    await tx[JobStore].finish(job)
