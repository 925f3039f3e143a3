"""GET, POST /v1/sources/{id}/runs and /categories; POST …/replay, …/records; GET /v1/runs/{id}."""

from typing import Any, Final, TypeAlias

from adapters.wire import category_rules as wire_rules
from adapters.wire import records as wire_records
from adapters.wire import runs as wire
from adapters.wire.resource import Body
from domain.jobs.usecases.draining import Handler
from domain.jobs.usecases.ticks import Tick
from domain.kernel.concurrency import ConcurrencyLimit
from domain.runs.queueing import EXECUTE, REFILE
from domain.runs.usecases.category_rules import CategoryRuleService, Refiling
from domain.runs.usecases.execution import RunExecution
from domain.runs.usecases.rehearsal import Rehearsal
from domain.runs.usecases.scheduling import BatchExpiry, RunScheduler
from domain.runs.usecases.service import Push, RunService
from domain.sources.model import Ladder
from entrypoints.dependencies import Dependencies
from entrypoints.operations.operation import Area, Read, ReadContext, Reply, Tool, Undoing, Write, WriteContext

Reading: TypeAlias = ReadContext[RunService]
Writing: TypeAlias = WriteContext[RunService]


def _push(body: Any) -> Push:
    return Push(
        records=wire_records.encode(body["records"]),
        count=len(body["records"]),
        complete=body.get("complete", False),
        batch=body.get("batch"),
        more=body.get("more", False),
        accept_shrink=body.get("accept_shrink", False),
    )


PUSH: Final = Body(wire_records.PUSH, _push, limit=wire_records.BODY_LIMIT)


async def list_of_source(call: Reading) -> Reply:
    """A source's runs."""
    return call.list(wire.RUN, await call.service.list_runs(call.tx, call.ids["id"], call.page_request))


async def start(call: Writing) -> Reply:
    """Queue a pull now."""
    return call.made(wire.RUN, await call.service.start(call.tx, call.ids["id"], call.command))


async def replay(call: Writing) -> Reply:
    """Work the kept snapshot through again."""
    return call.made(wire.RUN, await call.service.replay(call.tx, call.ids["id"], call.command))


async def push(call: Writing) -> Reply:
    """Take records."""
    return call.made(wire.RUN, await call.service.push(call.tx, call.ids["id"], call.command))


async def read(call: Reading) -> Reply:
    """One run."""
    return call.one(wire.RUN, await call.service.get(call.tx, call.ids["id"]))


async def list_categories(call: Reading) -> Reply:
    """A source's category paths."""
    rules = call.service.category_rules
    found = await rules.read(call.tx, call.ids["id"])

    async def later() -> Reply:
        return call.one(wire_rules.CATEGORY_RULES, wire_rules.Listing(*await rules.render(wire_rules.listing, found)))

    return Reply(later=later)


async def set_categories(call: Writing) -> Reply:
    """Set category rules."""
    rules = call.service.category_rules
    found, run = await rules.change(call.tx, call.ids["id"], call.command)
    return call.one(wire_rules.CATEGORY_RULES, wire_rules.Listing(*await rules.render(wire_rules.listing, found), run))


def _execution(dependencies: Dependencies) -> Handler:
    return RunExecution(
        dependencies.uow,
        dependencies.connectors,
        dependencies.objects,
        dependencies.vault,
        dependencies.feed_readers,
        dependencies.workspaces,
        slots=ConcurrencyLimit(dependencies.settings.worker_readers),
        statistics=dependencies.maintenance.statistics,
        ladder=Ladder(dependencies.settings.degraded_after, dependencies.settings.blocked_after),
        ask_models=dependencies.models is not None,
    )


def _due_pulls(dependencies: Dependencies) -> Tick:
    return Tick(
        "due pulls", 15, RunScheduler(dependencies.uow, dependencies.source_schedule, dependencies.clock).queue_due
    )


def _open_batches(dependencies: Dependencies) -> Tick:
    expiry = BatchExpiry(dependencies.uow, dependencies.storage, dependencies.clock)
    return Tick("open batches", 60, expiry.expire, purges=True)


OPERATIONS: Final = (
    Read(
        id="runs.list",
        path="/v1/sources/{id}/runs",
        ids={"id": "src"},
        summary="List a source's runs",
        description="Every reading of the source, newest first.",
        handler=list_of_source,
        scope="sources:read",
        reply=wire.RUN.list,
        paging="both",
        errors=("not_found",),
        dataset="runs",
    ),
    Write(
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
        reply=wire.RUN.schema,
        status=202,
        rate="expensive",
        errors=("not_found", "conflict", "unprocessable"),
        agent=Tool(approval=True, outside=True),
        undo="What a run has read stays; correct it at the source and run again.",
    ),
    Write(
        id="runs.replay",
        method="POST",
        path="/v1/sources/{id}/replay",
        ids={"id": "src"},
        summary="Read a source's kept data again",
        description="Queues a run over the newest snapshot of the stream that is kept, without fetching: after another "
        "mapping or other settings. With `accept_shrink` it reads what the shrink guard refused last and lets it through, whether "
        "it was pulled, uploaded, mailed or pushed. While a run is open, the source is "
        "not active, or nothing is kept: 409.",
        handler=replay,
        scope="sources:write",
        body=wire.START,
        reply=wire.RUN.schema,
        status=202,
        rate="expensive",
        errors=("not_found", "conflict"),
        agent=Tool(approval=True),
        undo="What a run has read stays; correct the mapping or the settings and read it again.",
    ),
    Write(
        id="runs.push",
        method="POST",
        path="/v1/sources/{id}/records",
        ids={"id": "src"},
        summary="Push records",
        description="For sources of kind push. Calls that name the same open `batch` fill one run: it is carried out "
        "once a call comes without `more`. With `complete` on that last call, what the batch does not state is "
        "withdrawn. Runs of one source follow each other in order. Bad records are told in the run's problems; good "
        "ones are stored. A batch that no part comes for is given up after 24 hours; further ones are refused: 409. "
        "A record merges: what it leaves out stays, null removes; a complete batch states everything. One that names offers "
        "alone makes nothing. A dry run reads the records for real and, with `explain`, tells what would come of them.",
        handler=push,
        scope="sources:write",
        body=PUSH,
        preview=wire.OUTCOME,
        reply=wire.RUN.schema,
        status=202,
        errors=("not_found", "conflict", "unprocessable", "payload_too_large", "quota_exceeded"),
        undo="Records stay until others say otherwise; push what is right.",
    ),
    Read(
        id="runs.list_categories",
        path="/v1/sources/{id}/categories",
        ids={"id": "src"},
        summary="Read a source's category rules",
        description="Every category path that the source's products have and every path above, with its rule, the rule "
        "that it inherits, and a suggestion. A rule covers its path and every path below it, until one with a longer path.",
        handler=list_categories,
        scope="sources:read",
        reply=wire_rules.CATEGORY_RULES.schema,
        errors=("not_found",),
        dataset="category_rules",
        alone=True,
    ),
    Write(
        id="runs.set_categories",
        method="POST",
        path="/v1/sources/{id}/categories",
        ids={"id": "src"},
        summary="Set a source's category rules",
        description="Sets the rules given, removes those given with null; others stay. `run` files the source's products "
        "by them anew, without fetching anything. Unknown categories, and more than 5,000 rules: 422. While a run of the "
        "source is open, or the source is not active: 409, and nothing is kept.",
        handler=set_categories,
        scope="sources:write",
        body=wire_rules.CHANGES,
        reply=wire_rules.CATEGORY_RULES.schema,
        rate="expensive",
        alone=True,
        errors=("not_found", "conflict", "unprocessable"),
        agent=Tool(approval=True),
        undo=Undoing(
            "The rules that were changed are as before, and a run files the products by them.",
            lambda service, tx, act: service.category_rules.undo(tx, act),
        ),
    ),
    Read(
        id="runs.read",
        path="/v1/runs/{id}",
        ids={"id": "run"},
        summary="Read a run",
        description="How far a reading of a source is, what it did, and what could not be read.",
        handler=read,
        scope="sources:read",
        reply=wire.RUN.schema,
        errors=("not_found",),
    ),
)

AREA: Final = Area(
    name="runs",
    title="Runs",
    description="One pull, upload or push of a source, from fetching to storing.",
    service=lambda dependencies: RunService(
        dependencies.connectors,
        Rehearsal(dependencies.feed_readers, dependencies.workspaces),
        CategoryRuleService(dependencies.parsers),
    ),
    operations=OPERATIONS,
    jobs=lambda dependencies: {EXECUTE: _execution(dependencies), REFILE: Refiling(dependencies.uow)},
    ticks=lambda dependencies: [_due_pulls(dependencies), _open_batches(dependencies)],
)
