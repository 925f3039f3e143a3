"""GET, POST /v1/sources/{id}/runs and /categories; POST …/replay, …/records; GET /v1/runs/{id}."""

from collections.abc import Sequence
from functools import partial
from typing import Any, TypeAlias

from adapters.wire import category_rules as wire_rules
from adapters.wire import records as wire_records
from adapters.wire import runs as wire
from adapters.wire.resource import Body
from domain.ingestion.ports import Connectors
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
from entrypoints.operations.collection import Collection
from entrypoints.operations.operation import Area, ReadContext, Reply, Tool, Undoing, WriteContext
from entrypoints.settings import Settings
from ports.maintenance import Maintenance
from ports.models import Models

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


PUSH = Body(wire_records.PUSH, _push, limit=wire_records.BODY_LIMIT)


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


def _execution(
    dependencies: Dependencies, settings: Settings, maintenance: Maintenance, models: Models | None
) -> Handler:
    make = partial(
        RunExecution,
        slots=ConcurrencyLimit(settings.worker_readers),
        statistics=maintenance.statistics,
        ladder=Ladder(settings.degraded_after, settings.blocked_after),
        ask_models=models is not None,
    )
    return dependencies.call(make)


def _service(connectors: Connectors, rehearsal: Rehearsal, rules: CategoryRuleService) -> RunService:
    return RunService(connectors, rehearsal, rules)


def _ticks(scheduler: RunScheduler, expiry: BatchExpiry) -> Sequence[Tick]:
    return [Tick("due pulls", 15, scheduler.queue_due), Tick("open batches", 60, expiry.expire, purges=True)]


RUNS = Collection("runs", wire.RUN, "sources")
RULES = Collection("runs", wire_rules.CATEGORY_RULES, "sources")

AREA = Area(
    "runs",
    "Runs",
    "One pull, upload or push of a source, from fetching to storing.",
    service=_service,
    operations=(
        RUNS.list(
            "List a source's runs",
            "Every reading of the source, newest first.",
            RunService.list_runs,
            path="/v1/sources/{id}/runs",
            dataset="runs",
        ),
        RUNS.write(
            "start",
            "Pull a source now",
            "Queues a run. `accept_shrink` lets a complete run withdraw as much as it finds gone. While a run "
            "of the stream is open, or the source is not active: 409. Kinds that are not pulled, and a stock pull of a "
            "connector that does not read stock apart: 422.",
            RunService.start,
            made=True,
            path="/v1/sources/{id}/runs",
            body=wire.START,
            status=202,
            rate="expensive",
            errors=("conflict", "unprocessable"),
            agent=Tool(approval=True, outside=True),
            undo="What a run has read stays; correct it at the source and run again.",
        ),
        RUNS.write(
            "replay",
            "Read a source's kept data again",
            "Queues a run over the newest snapshot of the stream that is kept, without fetching: after another "
            "mapping or other settings. With `accept_shrink` it reads what the shrink guard refused last and lets it through, whether "
            "it was pulled, uploaded, mailed or pushed. While a run is open, the source is "
            "not active, or nothing is kept: 409.",
            RunService.replay,
            made=True,
            path="/v1/sources/{id}/replay",
            body=wire.START,
            status=202,
            rate="expensive",
            errors=("conflict",),
            agent=Tool(approval=True),
            undo="What a run has read stays; correct the mapping or the settings and read it again.",
        ),
        RUNS.write(
            "push",
            "Push records",
            "For sources of kind push. Calls that name the same open `batch` fill one run: it is carried out "
            "once a call comes without `more`. With `complete` on that last call, what the batch does not state is "
            "withdrawn. Runs of one source follow each other in order. Bad records are told in the run's problems; good "
            "ones are stored. A batch that no part comes for is given up after 24 hours; further ones are refused: 409. "
            "A record merges: what it leaves out stays, null removes; a complete batch states everything. One that names offers "
            "alone makes nothing. A dry run reads the records for real and, with `explain`, tells what would come of them.",
            RunService.push,
            made=True,
            path="/v1/sources/{id}/records",
            body=PUSH,
            preview=wire.OUTCOME,
            status=202,
            errors=("conflict", "unprocessable", "payload_too_large", "quota_exceeded"),
            undo="Records stay until others say otherwise; push what is right.",
        ),
        RULES.read(
            "Read a source's category rules",
            "Every category path that the source's products have and every path above, with its rule, the rule "
            "that it inherits, and a suggestion. A rule covers its path and every path below it, until one with a longer path.",
            id="runs.list_categories",
            path="/v1/sources/{id}/categories",
            handler=list_categories,
            dataset="category_rules",
            alone=True,
        ),
        RULES.write(
            "set_categories",
            "Set a source's category rules",
            "Sets the rules given, removes those given with null; others stay. `run` files the source's products "
            "by them anew, without fetching anything. Unknown categories, and more than 5,000 rules: 422. While a run of the "
            "source is open, or the source is not active: 409, and nothing is kept.",
            path="/v1/sources/{id}/categories",
            handler=set_categories,
            body=wire_rules.CHANGES,
            rate="expensive",
            alone=True,
            errors=("conflict", "unprocessable"),
            agent=Tool(approval=True),
            undo=Undoing(
                "The rules that were changed are as before, and a run files the products by them.",
                lambda service, tx, act: service.category_rules.undo(tx, act),
            ),
        ),
        RUNS.read("Read a run", "How far a reading of a source is, what it did, and what could not be read."),
    ),
    jobs={EXECUTE: _execution, REFILE: Refiling},
    ticks=_ticks,
)
