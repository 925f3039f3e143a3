"""Use cases of probes: create, read."""

from domain.audit.ports import AuditLog
from domain.jobs.ports import JobStore
from domain.kernel.addresses import refusal
from domain.kernel.errors import Conflict, Unprocessable
from domain.kernel.ids import new_id
from domain.kernel.paging import Page, PageRequest
from domain.kernel.resource import existing
from domain.probes.facts import host_of
from domain.probes.model import AUDITED, OPEN_PROBES, NewProbe, Probe, ProbeFilter, ProbeStatus, job_of
from ports.unit_of_work import Tx


class ProbeService:
    """Probes of one tenant. `allowed` are the hosts that the operator lets through (JOINERY_ALLOW_PRIVATE_HOSTS)."""

    def __init__(self, allowed: frozenset[str]) -> None:
        self._allowed = allowed

    async def list_probes(self, tx: Tx, page_request: PageRequest) -> Page[Probe]:
        """Return a page of the tenant's probes, newest first."""
        return await tx.store(Probe).page(page_request)

    async def get(self, tx: Tx, id: str) -> Probe:
        """Return a probe. Raises NotFound."""
        return existing(await tx.store(Probe).get(id))

    async def create(self, tx: Tx, new: NewProbe) -> Probe:
        """Queue a probe of a website.

        Raises Unprocessable for a forbidden address; Conflict if too many probes wait or run.
        """
        url = new["url"]
        if reason := refusal(url, self._allowed):
            raise Unprocessable.of("url", "invalid_value", reason)
        await _refuse_more(tx)
        probe = Probe(new_id("prb"), url, ProbeStatus.QUEUED, tx.now)
        await tx.store(Probe).add(probe)
        await tx[AuditLog].add(AUDITED.created(probe))
        await tx[JobStore].add(job_of(probe, host_of(url), tx.tenant))
        return probe


async def _refuse_more(tx: Tx) -> None:
    for status in (ProbeStatus.QUEUED, ProbeStatus.RUNNING):
        found = await tx.store(Probe).page(PageRequest(limit=OPEN_PROBES), ProbeFilter(status))
        if len(found.items) >= OPEN_PROBES:
            raise Conflict(
                f"{OPEN_PROBES} probes are {status} already, the most there may be; wait until one has ended."
            )
