"""GET /v1/sources/{id}/mappings; GET /v1/mappings/{id}; POST /v1/mappings/{id}/confirm."""

from typing import Final, TypeAlias

from adapters.wire import mappings as wire
from domain.audit.model import Act
from domain.mappings.asking import ASK
from domain.mappings.usecases import MappingAsking, MappingService
from domain.runs.usecases.service import Replayer
from entrypoints.operations.operation import Area, Read, ReadContext, Reply, Tool, Undoing, Write, WriteContext
from ports.unit_of_work import Tx

Reading: TypeAlias = ReadContext[MappingService]
Writing: TypeAlias = WriteContext[MappingService]


async def list_of_source(call: Reading) -> Reply:
    """A source's mappings."""
    return call.list(wire.MAPPING, await call.service.list_mappings(call.tx, call.ids["id"], call.page_request))


async def read(call: Reading) -> Reply:
    """One mapping."""
    return call.one(wire.MAPPING, await call.service.get(call.tx, call.ids["id"]))


async def confirm(call: Writing) -> Reply:
    """Confirm a mapping and have the source's data read by it."""
    return call.one(wire.MAPPING, await call.service.confirm(call.tx, call.ids["id"], call.command))


async def _take_back(service: MappingService, tx: Tx, act: Act) -> None:
    await service.take_back(tx, act)


OPERATIONS: Final = (
    Read(
        id="mappings.list",
        path="/v1/sources/{id}/mappings",
        ids={"id": "src"},
        summary="List a source's mappings",
        description="What the columns mean of each header set that the source's files have had, newest first.",
        handler=list_of_source,
        scope="sources:read",
        reply=wire.MAPPING.list,
        paging="both",
        errors=("not_found",),
        dataset="mappings",
    ),
    Read(
        id="mappings.read",
        path="/v1/mappings/{id}",
        ids={"id": "map"},
        summary="Read a mapping",
        description="What each column of one header set means and what that rests on, with a few rows of the file.",
        handler=read,
        scope="sources:read",
        reply=wire.MAPPING.schema,
        errors=("not_found",),
    ),
    Write(
        id="mappings.confirm",
        method="POST",
        path="/v1/mappings/{id}/confirm",
        ids={"id": "map"},
        summary="Confirm a mapping",
        description="Confirms what the columns mean, with changes, and reads the newest snapshot of the source by it: a "
        "run that stopped as needs_mapping goes on from there. What is confirmed serves the source's next files of these "
        "headers, and the other sources of your organisation in this mode. Confirming again without changes starts nothing. "
        "Columns, fields or settings that there are not: 400, with the closest names. A field that two columns cannot both "
        "have, or no column that names the items: 422. While a run is open, or the source is not active: 409.",
        handler=confirm,
        scope="sources:write",
        body=wire.CONFIRM,
        reply=wire.MAPPING.schema,
        rate="expensive",
        errors=("not_found", "conflict", "unprocessable"),
        agent=Tool(approval=True),
        undo=Undoing("The mapping is as before, and the snapshot is read by it again.", _take_back),
    ),
)

AREA: Final = Area(
    name="mappings",
    title="Mappings",
    description="What the columns of a source's files mean: proposed by runs, confirmed by people.",
    service=lambda _: MappingService(Replayer()),
    operations=OPERATIONS,
    jobs=lambda dependencies: {ASK: MappingAsking(dependencies.uow, dependencies.models, Replayer().settings)},
)
