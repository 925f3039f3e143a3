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
    "Looks at websites: what they offer whoever wants their products, and how to connect them.",
    service=_service,
    operations=(
        PROBES.list(
            "List source probes",
            "The websites that you had looked at in this mode, newest first.",
            ProbeService.list_probes,
            dataset="source_probes",
        ),
        PROBES.create(
            "Probe a website",
            "Queues a look at a website: its rules for robots, what shop platform it is built on, what keeps "
            "readers out, whether it lists its products for machines, and what its pages state of them. It obeys "
            "robots.txt, makes at most 25 requests, reads at most 20 MiB, waits as the site asks, and never signs in. "
            "Addresses that are never asked: 422. While 20 probes wait, or 20 run: 409.",
            ProbeService.create,
            body=wire.PROBE.create(NewProbe),
            status=202,
            errors=("unprocessable", "conflict"),
            agent=Tool(approval=True, outside=True),
            undo="It only looks, and what it found is told; nothing else is changed.",
        ),
        PROBES.read(
            "Read a source probe",
            "How far a look at a website is; once it succeeded its report, and a source that it proposes: "
            "`proposal` is a body that POST /v1/sources takes as it is.",
        ),
    ),
    jobs={CARRY_OUT: _execution},
)
