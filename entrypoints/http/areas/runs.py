"""GET, POST /v1/sources/{id}/runs; POST /v1/sources/{id}/records; GET /v1/runs/{id}."""

from typing import Final

from adapters.wire import records as wire_records
from adapters.wire import runs as wire
from domain.catalogue.model import Stream
from domain.runs.model import Run
from domain.runs.usecases.service import Push
from entrypoints.http.operation import Operation, Reply, RequestContext, Tool


def _accepted(call: RequestContext, run: Run) -> Reply:
    return Reply(wire.to_wire(run), status=202, headers={"Location": f"{call.base_url}/v1/runs/{run.id}"})


async def list_of_source(call: RequestContext) -> Reply:
    """A source's runs."""
    return call.listing(await call.use.runs.list_runs(call.tx, call.ids["id"], call.page_request), wire.to_wire)


async def start(call: RequestContext) -> Reply:
    """Queue a pull now."""
    body = call.body or {}
    stream, accept = Stream(body.get("stream", Stream.CATALOGUE)), body.get("accept_shrink", False)
    run = await call.use.runs.start(call.tx, call.ids["id"], stream=stream, accept_shrink=accept)
    return _accepted(call, run)


async def push(call: RequestContext) -> Reply:
    """Take records."""
    body = call.body
    part = Push(
        records=wire_records.encode(body["records"]),
        count=len(body["records"]),
        complete=body.get("complete", False),
        batch=body.get("batch"),
        more=body.get("more", False),
    )
    return _accepted(call, await call.use.runs.push(call.tx, call.ids["id"], part))


async def read(call: RequestContext) -> Reply:
    """One run."""
    return Reply(wire.to_wire(await call.use.runs.get(call.tx, call.ids["id"])))


OPERATIONS: Final = (
    Operation(
        id="runs.list",
        method="GET",
        path="/v1/sources/{id}/runs",
        ids={"id": "src"},
        summary="List a source's runs",
        description="Every reading of the source, newest first.",
        handler=list_of_source,
        scope="sources:read",
        reply=wire.RUNS,
        rate="read",
        paging="both",
        errors=("not_found",),
        agent=Tool(),
    ),
    Operation(
        id="runs.start",
        method="POST",
        path="/v1/sources/{id}/runs",
        ids={"id": "src"},
        summary="Pull a source now",
        description="Queues a run. `accept_shrink` lets a complete run withdraw as much as it finds gone. While a run "
        "of the stream is open, or the source is not active: 409. Kinds that are not pulled, and a stock pull of a "
        "connector that does not read stock apart: 422.",
        handler=start,
        scope="sources:write",
        body=wire.START,
        body_required=False,
        reply=wire.RUN,
        status=202,
        rate="expensive",
        errors=("not_found", "conflict", "unprocessable"),
        agent=Tool(approval=True),
    ),
    Operation(
        id="runs.push",
        method="POST",
        path="/v1/sources/{id}/records",
        ids={"id": "src"},
        summary="Push records",
        description="For sources of kind push. Calls that name the same open `batch` fill one run: it is carried out "
        "once a call comes without `more`. With `complete` on that last call, what the batch does not state is "
        "withdrawn. Runs of one source follow each other in order. Bad records are told in the run's problems; good "
        "ones are stored.",
        handler=push,
        scope="sources:write",
        body=wire_records.PUSH,
        body_limit=wire_records.BODY_LIMIT,
        reply=wire.RUN,
        status=202,
        rate="write",
        errors=("not_found", "conflict", "unprocessable", "payload_too_large"),
    ),
    Operation(
        id="runs.read",
        method="GET",
        path="/v1/runs/{id}",
        ids={"id": "run"},
        summary="Read a run",
        description="How far a reading of a source is, what it did, and what could not be read.",
        handler=read,
        scope="sources:read",
        reply=wire.RUN,
        rate="read",
        errors=("not_found",),
        agent=Tool(),
    ),
)
