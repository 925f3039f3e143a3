"""GET, POST /v1/sources; GET, PATCH /v1/sources/{id}; PUT, DELETE …/credentials; POST …/test."""

from typing import Any, Final

from adapters.wire import sources as wire
from domain.sources.model import Source
from entrypoints.http.operation import Operation, Reply, RequestContext, Tool


def _reply(call: RequestContext, source: Source, status: int = 200) -> Reply:
    return Reply(wire.to_wire(source, call.tx.now), status=status, version=source.version)


async def list_all(call: RequestContext) -> Reply:
    """The tenant's sources."""

    def to_wire(source: Source) -> dict[str, Any]:
        return wire.to_wire(source, call.tx.now)

    return call.listing(await call.use.sources.page(call.tx, call.page_request), to_wire)


async def create(call: RequestContext) -> Reply:
    """Connect a source."""
    source = await call.use.sources.create(call.tx, call.body)
    reply = _reply(call, source, 201)
    reply.headers["Location"] = f"{call.base_url}/v1/sources/{source.id}"
    return reply


async def read(call: RequestContext) -> Reply:
    """One source."""
    return _reply(call, await call.use.sources.get(call.tx, call.ids["id"]))


async def update(call: RequestContext) -> Reply:
    """Change a source."""
    source = await call.use.sources.update(call.tx, call.ids["id"], call.body, call.expected_version)
    return _reply(call, source)


async def put_credentials(call: RequestContext) -> Reply:
    """Store credentials."""
    credentials = call.body["credentials"]
    return _reply(call, await call.use.sources.put_credentials(call.tx, call.ids["id"], credentials))


async def delete_credentials(call: RequestContext) -> Reply:
    """Forget credentials."""
    return _reply(call, await call.use.sources.delete_credentials(call.tx, call.ids["id"]))


async def test(call: RequestContext) -> Reply:
    """Reach the source once, after letting the database go."""
    attempt = await call.use.sources.test(call.tx, call.ids["id"])

    async def later() -> dict[str, Any]:
        return wire.test_to_wire(await attempt())

    return Reply(later=later)


OPERATIONS: Final = (
    Operation(
        id="sources.list",
        method="GET",
        path="/v1/sources",
        summary="List sources",
        description="Your connections to vendors' data in this mode, newest first.",
        handler=list_all,
        scope="sources:read",
        reply=wire.SOURCES,
        rate="read",
        paging="both",
        agent=Tool(),
    ),
    Operation(
        id="sources.create",
        method="POST",
        path="/v1/sources",
        summary="Connect a source",
        description="The kind is fixed from now on: `url` is pulled from an address, `api` by a connector that signs "
        "in, `file` takes uploads, `push` takes records, `mail` takes mail from the senders that config.inbound names. "
        "A connector that is left out is chosen by kind, platform and format. A source with a schedule is first pulled "
        "at once; one that must sign in, as soon as it has credentials.",
        handler=create,
        scope="sources:write",
        body=wire.CREATE,
        reply=wire.SOURCE,
        status=201,
        rate="write",
        errors=("unprocessable",),
        agent=Tool(approval=True),
    ),
    Operation(
        id="sources.read",
        method="GET",
        path="/v1/sources/{id}",
        ids={"id": "src"},
        summary="Read a source",
        description="A source with its health and how fresh its data is.",
        handler=read,
        scope="sources:read",
        reply=wire.SOURCE,
        rate="read",
        errors=("not_found",),
        agent=Tool(),
    ),
    Operation(
        id="sources.update",
        method="PATCH",
        path="/v1/sources/{id}",
        ids={"id": "src"},
        summary="Change a source",
        description="Fields that are left out stay. `config` and `schedule` are replaced as wholes. Setting a blocked "
        "source's status to active starts its count of failures anew. The kind cannot change.",
        handler=update,
        scope="sources:write",
        body=wire.PATCH,
        reply=wire.SOURCE,
        rate="write",
        if_match=True,
        errors=("not_found", "precondition_required", "precondition_failed", "conflict", "unprocessable"),
        agent=Tool(approval=True),
    ),
    Operation(
        id="sources.put_credentials",
        method="PUT",
        path="/v1/sources/{id}/credentials",
        ids={"id": "src"},
        summary="Store a source's credentials",
        description="Replaces any. They are checked against the form that the connector asks for, sealed at rest, and "
        "never returned, logged, exported or put into an event.",
        handler=put_credentials,
        scope="sources:write",
        body=wire.CREDENTIALS,
        reply=wire.SOURCE,
        rate="write",
        errors=("not_found", "unprocessable"),
    ),
    Operation(
        id="sources.delete_credentials",
        method="DELETE",
        path="/v1/sources/{id}/credentials",
        ids={"id": "src"},
        summary="Forget a source's credentials",
        description="Runs that need them fail until new ones are stored.",
        handler=delete_credentials,
        scope="sources:write",
        reply=wire.SOURCE,
        rate="write",
        errors=("not_found",),
    ),
    Operation(
        id="sources.test",
        method="POST",
        path="/v1/sources/{id}/test",
        ids={"id": "src"},
        summary="Try a source out",
        description="Reaches the source once as a run would, reads its first records, and stores nothing. What goes "
        "wrong on the way is told in `failure`. Kinds that are not pulled answer 422.",
        handler=test,
        scope="sources:write",
        reply=wire.SOURCE_TEST,
        rate="expensive",
        errors=("not_found", "unprocessable"),
        agent=Tool(approval=True),
        outside=True,
    ),
)
