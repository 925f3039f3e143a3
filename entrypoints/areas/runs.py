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
    """Return a source's category paths."""
    rules = call.service.category_rules
    state = await rules.read(call.tx, call.ids["id"])

    async def later() -> Reply:
        return call.one(wire_rules.CATEGORY_RULES, wire_rules.Listing(*await rules.render(wire_rules.listing, state)))

    return Reply(later=later)


async def set_categories(call: Writing) -> Reply:
    """Set category rules."""
    rules = call.service.category_rules
    state, run = await rules.change(call.tx, call.ids["id"], call.command)
    return call.one(wire_rules.CATEGORY_RULES, wire_rules.Listing(*await rules.render(wire_rules.listing, state), run))


def _execution(
    dependencies: Dependencies, settings: Settings, maintenance: Maintenance, models: Models | None
) -> Handler:
    create = partial(
        RunExecution,
        slots=ConcurrencyLimit(settings.worker_readers),
        statistics=maintenance.statistics,
        ladder=Ladder(settings.degraded_after, settings.blocked_after),
        ask_models=models is not None,
    )
    return dependencies.call(create)


def _service(connectors: Connectors, rehearsal: Rehearsal, rules: CategoryRuleService) -> RunService:
    return RunService(connectors, rehearsal, rules)


def _ticks(scheduler: RunScheduler, expiry: BatchExpiry) -> Sequence[Tick]:
    return [Tick("due pulls", 15, scheduler.queue_due), Tick("open batches", 60, expiry.expire, purges=True)]


RUNS = Collection("runs", wire.RUN, "sources")
RULES = Collection("runs", wire_rules.CATEGORY_RULES, "sources")

AREA = Area(
    "runs",
    "Runs",
    "Imports of a source: pulls, uploads and pushes.",
    service=_service,
    operations=(
        RUNS.list(
            "List a source's runs",
            "Returns the runs of the source, newest first.",
            RunService.list_runs,
            path="/v1/sources/{id}/runs",
            dataset="runs",
        ),
        RUNS.write(
            "start",
            "Pull a source now",
            "Queues a run. `accept_shrink` allows a complete run to withdraw all items that are missing from the feed. While a run of "
            "the stream is open, or if the source is not active: 409. For kinds that are not pulled, and a stock pull of a connector "
            "without a separate stock stream: 422.",
            RunService.start,
            made=True,
            path="/v1/sources/{id}/runs",
            body=wire.START,
            status=202,
            rate="expensive",
            errors=("conflict", "unprocessable"),
            agent=Tool(approval=True, outside=True),
            undo="Imported data stays. Correct it at the source and start another run.",
        ),
        RUNS.write(
            "replay",
            "Re-import a source's stored data",
            "Queues a run over the stream's newest stored snapshot without fetching, for example after a change of mapping or "
            "settings. With `accept_shrink`, it re-imports the snapshot that the removal limit refused last and allows its removals, "
            "whether it was pulled, uploaded, mailed or pushed. While a run is open, if the source is not active, or if no snapshot is "
            "stored: 409.",
            RunService.replay,
            made=True,
            path="/v1/sources/{id}/replay",
            body=wire.START,
            status=202,
            rate="expensive",
            errors=("conflict",),
            agent=Tool(approval=True),
            undo="Imported data stays. Correct the mapping or the settings and re-import it.",
        ),
        RUNS.write(
            "push",
            "Push records",
            "For sources of kind push. Calls with the same open `batch` fill one run, which starts after a call without `more`. If "
            "that last call has `complete`, items that the batch does not contain are withdrawn. Runs of one source are executed in "
            "order. Invalid records are reported as problems of the run; valid ones are stored. A batch is abandoned after 24 hours "
            "without a call; further calls for it: 409. A record is merged: omitted fields keep their values, null removes them; a "
            "complete batch states everything. A record with offers only creates no product. A dry run parses the records and, with "
            "`explain`, returns their effects.",
            RunService.push,
            made=True,
            path="/v1/sources/{id}/records",
            body=PUSH,
            preview=wire.OUTCOME,
            status=202,
            errors=("conflict", "unprocessable", "payload_too_large", "quota_exceeded"),
            undo="Records stay until others replace them. Push the correct ones.",
        ),
        RULES.read(
            "Read a source's category rules",
            "Returns every category path of the source's products and all paths above, with its rule, the rule that it inherits, and "
            "a suggestion. A rule applies to its path and all paths below, except those with a more specific rule.",
            id="runs.list_categories",
            path="/v1/sources/{id}/categories",
            handler=list_categories,
            dataset="category_rules",
            alone=True,
        ),
        RULES.write(
            "set_categories",
            "Set a source's category rules",
            "Sets the given rules and removes those given as null; others stay. `run` is the run that applies the rules to the "
            "source's products, without fetching. Unknown categories, and more than 5,000 rules: 422. While a run of the source is "
            "open, or if the source is not active: 409, and no rule is changed.",
            path="/v1/sources/{id}/categories",
            handler=set_categories,
            body=wire_rules.CHANGES,
            rate="expensive",
            alone=True,
            errors=("conflict", "unprocessable"),
            agent=Tool(approval=True),
            undo=Undoing(
                "The previous rules are restored, and a run applies them to the products.",
                lambda service, tx, act: service.category_rules.undo(tx, act),
            ),
        ),
        RUNS.read("Read a run", "Returns the progress of a run, its results and its problems."),
    ),
    jobs={EXECUTE: _execution, REFILE: Refiling},
    ticks=_ticks,
)
