"""GET, POST /v1/source-probes; GET /v1/source-probes/{id}."""

from typing import Final, TypeAlias

from adapters.wire import probes as wire
from domain.jobs.usecases.draining import Handler
from domain.probes.model import CARRY_OUT, NewProbe
from domain.probes.usecases.execution import ProbeExecution, Takable
from domain.probes.usecases.service import ProbeService
from entrypoints.dependencies import Dependencies
from entrypoints.operations.operation import Area, Read, ReadContext, Reply, Tool, Write, WriteContext

Reading: TypeAlias = ReadContext[ProbeService]
Writing: TypeAlias = WriteContext[ProbeService]


async def list_all(call: Reading) -> Reply:
    """The tenant's probes."""
    return call.list(wire.PROBE, await call.service.list_probes(call.tx, call.page_request))


async def create(call: Writing) -> Reply:
    """Queue a probe."""
    return call.made(wire.PROBE, await call.service.create(call.tx, call.command))


async def read(call: Reading) -> Reply:
    """One probe."""
    return call.one(wire.PROBE, await call.service.get(call.tx, call.ids["id"]))


def _execution(dependencies: Dependencies) -> Handler:
    takes = Takable(dependencies.connectors, dependencies.schemas)
    return ProbeExecution(dependencies.uow, dependencies.web, dependencies.documents, takes)


OPERATIONS: Final = (
    Read(
        id="probes.list",
        path="/v1/source-probes",
        summary="List source probes",
        description="The websites that you had looked at in this mode, newest first.",
        handler=list_all,
        scope="sources:read",
        reply=wire.PROBE.list,
        paging="both",
        dataset="source_probes",
    ),
    Write(
        id="probes.create",
        method="POST",
        path="/v1/source-probes",
        summary="Probe a website",
        description="Queues a look at a website: its rules for robots, what shop platform it is built on, what keeps "
        "readers out, whether it lists its products for machines, and what its pages state of them. It obeys "
        "robots.txt, makes at most 25 requests, reads at most 20 MiB, waits as the site asks, and never signs in. "
        "Addresses that are never asked: 422. While 20 probes wait, or 20 run: 409.",
        handler=create,
        scope="sources:write",
        body=wire.PROBE.create(NewProbe),
        reply=wire.PROBE.schema,
        status=202,
        errors=("unprocessable", "conflict"),
        agent=Tool(approval=True, outside=True),
        undo="It only looks, and what it found is told; nothing else is changed.",
    ),
    Read(
        id="probes.read",
        path="/v1/source-probes/{id}",
        ids={"id": "prb"},
        summary="Read a source probe",
        description="How far a look at a website is; once it succeeded its report, and a source that it proposes: "
        "`proposal` is a body that POST /v1/sources takes as it is.",
        handler=read,
        scope="sources:read",
        reply=wire.PROBE.schema,
        errors=("not_found",),
    ),
)

AREA: Final = Area(
    name="probes",
    title="Source probes",
    description="Looks at websites: what they offer whoever wants their products, and how to connect them.",
    service=lambda dependencies: ProbeService(dependencies.settings.allow_private_hosts),
    operations=OPERATIONS,
    jobs=lambda dependencies: {CARRY_OUT: _execution(dependencies)},
)
