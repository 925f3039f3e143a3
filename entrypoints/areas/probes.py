"""GET, POST /v1/source-probes; GET /v1/source-probes/{id}."""

from adapters.wire import probes as wire
from domain.jobs.usecases.draining import Handler
from domain.probes.model import CARRY_OUT, NewProbe
from domain.probes.ports import Documents, Web
from domain.probes.usecases.execution import ProbeExecution, Takable
from domain.probes.usecases.service import ProbeService
from entrypoints.operations.collection import Collection
from entrypoints.operations.operation import Area, Tool
from entrypoints.settings import Settings
from ports.unit_of_work import UnitOfWork


def _execution(uow: UnitOfWork, web: Web, documents: Documents, takes: Takable) -> Handler:
    return ProbeExecution(uow, web, documents, takes)


def _service(settings: Settings) -> ProbeService:
    return ProbeService(settings.allow_private_hosts)


PROBES = Collection("probes", wire.PROBE, "sources")

AREA = Area(
    "probes",
    "Source probes",
    "Checks of websites before they are connected: which product data they publish, and how to import it.",
    service=_service,
    operations=(
        PROBES.list(
            "List source probes",
            "Returns the website checks in this mode, newest first.",
            ProbeService.list_probes,
            dataset="source_probes",
        ),
        PROBES.create(
            "Probe a website",
            "Queues a check of a website: its robots.txt rules, its shop platform, access barriers, whether it has machine-readable "
            "product lists, and the structured data of its pages. The check obeys robots.txt, makes at most 25 requests, reads at most "
            "20 MiB, waits as the site requires, and never signs in. If the URL is not allowed: 422. While 20 probes wait, or 20 run: "
            "409.",
            ProbeService.create,
            body=wire.PROBE.create(NewProbe),
            status=202,
            errors=("unprocessable", "conflict"),
            agent=Tool(approval=True, outside=True),
            undo="A probe only reads a website; nothing else is changed.",
        ),
        PROBES.read(
            "Read a source probe",
            "Returns the progress of a website check and, after success, its report and a proposed source: `proposal` is a body for "
            "POST /v1/sources.",
        ),
    ),
    jobs={CARRY_OUT: _execution},
)
