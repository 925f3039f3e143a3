"""Website checks: GET, POST /v1/source-probes; GET /v1/source-probes/{id}."""

from adapters.api_json import probes as wire
from domain.jobs.usecases.lane_processor import Handler
from domain.probes.model import PROBE_JOB, NewProbe
from domain.probes.ports import DocumentParser, WebClient
from domain.probes.usecases.execution import ProbeJob, ProposalChecker
from domain.probes.usecases.service import ProbeService
from entrypoints.operations.collection import Collection
from entrypoints.operations.operation import AgentToolSettings, Area
from entrypoints.settings import Settings
from ports.unit_of_work import UnitOfWork


def _create_execution(
    uow: UnitOfWork, web: WebClient, documents: DocumentParser, check_proposal: ProposalChecker
) -> Handler:
    return ProbeJob(uow, web, documents, check_proposal)


def _create_service(settings: Settings) -> ProbeService:
    return ProbeService(settings.allow_private_hosts)


PROBES = Collection("probes", wire.PROBE, "sources")

AREA = Area(
    "probes",
    "Website checks",
    "Checks of websites before they are connected: which product data they publish, and how to import it.",
    create_service=_create_service,
    operations=(
        PROBES.list(
            "List website checks",
            "Returns the website checks in this mode, newest first.",
            ProbeService.list_probes,
            dataset="source_probes",
        ),
        PROBES.create(
            "Check a website",
            "Queues a check of a website: its robots.txt rules, its shop platform, access barriers, whether it has "
            "machine-readable product lists, and the structured data of its pages. The check obeys robots.txt, makes at "
            "most 25 requests, reads at most 20 MiB, waits as the site requires, and never signs in. Returns 422 if the "
            "URL is not allowed. Returns 409 if 20 checks are already queued, or if 20 are already running.",
            ProbeService.create_probe,
            body=wire.PROBE.build_create_body(NewProbe),
            status=202,
            errors=("unprocessable", "conflict"),
            agent=AgentToolSettings(requires_approval=True, contacts_external_systems=True),
            undo="A website check only reads the website and changes no data.",
        ),
        PROBES.read(
            "Read a website check",
            "Returns the progress of a website check and, after success, its report and a proposed source: `proposal` is a body for "
            "POST /v1/sources.",
        ),
    ),
    handler_factories={PROBE_JOB: _create_execution},
)
