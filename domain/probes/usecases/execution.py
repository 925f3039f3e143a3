"""Execution of probes as jobs; a worker that takes over a job restarts the probe."""

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
from domain.probes.facts import extract_host
from domain.probes.model import AUDITED_PROBE_FIELDS, FailureCode, Probe
from domain.probes.ports import DocumentParser, WebClient
from domain.probes.text_cleanup import clean_strings
from domain.probes.usecases.polite_client import PoliteClient, ProbeLimits
from domain.probes.usecases.probe_runner import CanReadProposal, ProbeFailed, ProbeOutcome, ProbeRunner
from domain.proposals.model import create_proposing_job
from ports.schemas import SchemaValidator
from ports.unit_of_work import Tx, UnitOfWork

_LOG = logging.getLogger("joinery.probes")
_EXTRA_SECONDS = 60.0
"""Seconds that a probe may take beyond `ProbeLimits.seconds`, for parsing and evaluation."""
_UNFINISHED = "The website check crashed repeatedly or did not end in time. Start a new website check."
_INTERNAL_ERROR = "An internal error occurred. The operator can find the error in the log."


@dataclass(frozen=True, slots=True)
class ProposalChecker:
    """Callable that checks whether a connector of this service can read a proposed source.

    Attributes:
        connectors: The loaded connectors.
        schemas: Validates the proposed settings.
    """

    connectors: Connectors
    schemas: SchemaValidator

    def __call__(self, proposal: Mapping[str, Any]) -> bool:
        """Return whether the connector exists, can fetch data from the source and accepts the proposed settings."""
        info = self.connectors.find_connector(str(proposal["connector"]))
        if info is None or not info.can_fetch or proposal["kind"] not in info.kinds:
            return False
        return not self.schemas.find_field_errors(info.config_schema, proposal["config"], "config")


class ProbeJob:
    """Handler of `probes.carry_out` jobs.

    Args:
        uow: The unit of work.
        web_client: The client for requests.
        documents: The parser of fetched documents.
        can_read_proposal: Returns whether this service can read a proposed source.
        limits: The limits of each probe; None for the default limits.
        sleep: Waits for a number of seconds.
        lease: The duration of the job's lease, which is renewed at the start of the probe.
    """

    def __init__(
        self,
        uow: UnitOfWork,
        web_client: WebClient,
        documents: DocumentParser,
        can_read_proposal: CanReadProposal,
        *,
        limits: ProbeLimits | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        lease: timedelta = timedelta(seconds=30),
    ) -> None:
        self._uow, self._web_client, self._documents, self._can_read_proposal = (
            uow,
            web_client,
            documents,
            can_read_proposal,
        )
        self._limits, self._sleep, self._lease = limits or ProbeLimits(), sleep, lease
        self._lock_by_host: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def __call__(self, job: ClaimedJob, lost: asyncio.Event) -> None:
        """Execute the probe and store its result. Raises LeaseLost if another worker took over the job.

        Args:
            job: The job of the probe.
            lost: Set when the job's lease is lost; ignored, because the handler is then cancelled as well.
        """
        context = job.create_context()
        probe = await self._start_probe(job, context)
        if probe is None:
            return
        outcome: ProbeOutcome | None = None
        code, message = FailureCode.INTERNAL_ERROR, _INTERNAL_ERROR
        host_lock = self._lock_by_host.setdefault(extract_host(probe.url), asyncio.Lock())
        try:
            async with host_lock, asyncio.timeout(self._limits.seconds + _EXTRA_SECONDS):
                outcome = await self._run_probe(probe)
        except ProbeFailed as failure:
            code = FailureCode.FETCH_REFUSED if failure.is_forbidden else FailureCode.FETCH_FAILED
            message = clean_strings(str(failure))
        except TimeoutError:
            code, message = (
                FailureCode.TIMED_OUT,
                f"The website check took longer than {self._limits.seconds:.0f} seconds.",
            )
        except Exception:  # an internal error would recur in every attempt
            _LOG.exception("website check failed", extra={"probe": probe.id})
        async with self._uow.begin(job.tenant, context) as tx:
            ended = (
                probe.mark_succeeded(outcome.report, outcome.proposal, tx.now)
                if outcome is not None
                else probe.mark_failed(code, message, tx.now)
            )
            await _finish_probe(tx, job, probe, ended)

    async def _start_probe(self, job: ClaimedJob, context: AuditContext) -> Probe | None:
        """Mark the probe as running and return it; None if it is finished or has exhausted its attempts."""
        async with self._uow.begin(job.tenant, context) as tx:
            probe = await tx.store(Probe).get(str(job.args["probe"]), lock=True)
            if probe is None or probe.is_finished:
                await tx[JobStore].finish(job)
                return None
            if job.has_expired_lease:
                probe = probe.count_crash()
            if probe.has_exhausted_attempts(tx.now):
                await _finish_probe(tx, job, probe, probe.mark_failed(FailureCode.TIMED_OUT, _UNFINISHED, tx.now))
                return None
            probe = probe.mark_running(tx.now)
            await tx.store(Probe).save(probe)
            await tx[JobStore].renew_lease(job, self._lease)
            return probe

    async def _run_probe(self, probe: Probe) -> ProbeOutcome:
        """Run the probe within its limits."""
        web_client = PoliteClient(self._web_client, self._documents, self._limits, self._sleep)
        return await ProbeRunner(web_client, self._documents, self._limits, self._can_read_proposal).run_probe(
            probe.url
        )


async def _finish_probe(tx: Tx, job: ClaimedJob, before: Probe, after: Probe) -> None:
    """Store the finished probe with an audit entry, and finish the job."""
    await tx.store(Probe).save(after)
    await tx[AuditLog].add(AUDITED_PROBE_FIELDS.describe_update(before, after))
    if after.proposal is not None:
        await tx[JobStore].add(create_proposing_job(tx.tenant, probe=after.id))
    await tx[JobStore].finish(job)
