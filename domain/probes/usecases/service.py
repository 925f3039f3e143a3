"""Use cases of website checks: create, read and list probes."""

from domain.audit.ports import AuditLog
from domain.jobs.ports import JobStore
from domain.kernel.addresses import describe_url_refusal
from domain.kernel.errors import Conflict, Unprocessable
from domain.kernel.ids import new_id
from domain.kernel.paging import Page, PageRequest
from domain.kernel.resource import require_found
from domain.probes.facts import extract_host
from domain.probes.model import (
    AUDITED_PROBE_FIELDS,
    MAX_PROBES_PER_OPEN_STATUS,
    NewProbe,
    Probe,
    ProbeFilter,
    ProbeStatus,
    create_probe_job,
)
from ports.unit_of_work import Tx


class ProbeService:
    """Use cases of a tenant's probes.

    Args:
        allowed_hosts: The private hosts that may be probed (JOINERY_ALLOW_PRIVATE_HOSTS).
    """

    def __init__(self, allowed_hosts: frozenset[str]) -> None:
        self._allowed_hosts = allowed_hosts

    async def list_probes(self, tx: Tx, page_request: PageRequest) -> Page[Probe]:
        """Return a page of the tenant's probes, newest first."""
        return await tx.store(Probe).page(page_request)

    async def get(self, tx: Tx, id: str) -> Probe:
        """Return a probe by its ID. Raises NotFound."""
        return require_found(await tx.store(Probe).get(id))

    async def create_probe(self, tx: Tx, new: NewProbe) -> Probe:
        """Create a probe of a website and queue the job that executes it.

        Raises Unprocessable for a URL that must not be requested; Conflict if too many probes are queued or
        running.
        """
        url = new["url"]
        if reason := describe_url_refusal(url, self._allowed_hosts):
            raise Unprocessable.for_field("url", "invalid_value", reason)
        await _check_open_probes(tx)
        probe = Probe(new_id("prb"), url, ProbeStatus.QUEUED, tx.now)
        await tx.store(Probe).add(probe)
        await tx[AuditLog].add(AUDITED_PROBE_FIELDS.describe_creation(probe))
        await tx[JobStore].add(create_probe_job(probe, extract_host(url), tx.tenant))
        return probe


async def _check_open_probes(tx: Tx) -> None:
    """Raise Conflict if too many probes are queued or running."""
    for status in (ProbeStatus.QUEUED, ProbeStatus.RUNNING):
        found = await tx.store(Probe).page(PageRequest(limit=MAX_PROBES_PER_OPEN_STATUS), ProbeFilter(status))
        if len(found.items) >= MAX_PROBES_PER_OPEN_STATUS:
            raise Conflict(
                f"{MAX_PROBES_PER_OPEN_STATUS} website checks are already {status}, the maximum. Wait until one has ended."
            )
