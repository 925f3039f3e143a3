"""Runs, pushed records and category rules: /v1/sources/{id}/runs, /replay, /records, /categories; /v1/runs/{id}."""

from collections.abc import Sequence
from functools import partial
from typing import Any, TypeAlias

from adapters.api_json import category_rules as wire_rules
from adapters.api_json import pushed_records as wire_records
from adapters.api_json import runs as wire
from adapters.api_json.resource import Body
from domain.ingestion.ports import Connectors
from domain.jobs.usecases.lane_processor import Handler
from domain.jobs.usecases.ticks import Tick
from domain.kernel.concurrency import ConcurrencyLimit
from domain.runs.run_queue import EXECUTE_RUN, REASSIGN_CATEGORIES
from domain.runs.usecases.category_rules import CategoryReassignment, CategoryRuleService
from domain.runs.usecases.dry_run import DryRun
from domain.runs.usecases.execution import RunExecution
from domain.runs.usecases.scheduling import BatchExpiry, RunScheduler
from domain.runs.usecases.service import PushRequest, RunService
from domain.sources.model import HealthThresholds
from entrypoints.dependencies import Dependencies
from entrypoints.operations.collection import Collection
from entrypoints.operations.operation import AgentToolSettings, Area, ReadContext, Reply, UndoSupport, WriteContext
from entrypoints.settings import Settings
from ports.language_models import LanguageModels
from ports.maintenance import Maintenance

RunReadContext: TypeAlias = ReadContext[RunService]
RunWriteContext: TypeAlias = WriteContext[RunService]


def _decode_push(body: Any) -> PushRequest:
    return PushRequest(
        records=wire_records.encode_records(body["records"]),
        record_count=len(body["records"]),
        is_complete=body.get("complete", False),
        batch=body.get("batch"),
        has_more=body.get("more", False),
        accept_shrink=body.get("accept_shrink", False),
    )


PUSH_BODY = Body(wire_records.PUSH, _decode_push, max_bytes=wire_records.BODY_LIMIT)


async def read_category_rules(context: RunReadContext) -> Reply:
    """Return the category paths of a source, each with the category rule that applies to it."""
    rules = context.service.category_rules
    state = await rules.load(context.tx, context.ids["id"])

    async def render_rules() -> Reply:
        return context.build_resource_reply(
            wire_rules.CATEGORY_RULES,
            wire_rules.CategoryRulesReply(*await rules.list_categories(wire_rules.render_categories, state)),
        )

    return Reply(complete_later=render_rules)


async def set_category_rules(context: RunWriteContext) -> Reply:
    """Change the category rules of a source, and start a run that applies them to the source's products."""
    rules = context.service.category_rules
    state, run = await rules.change_rules(context.tx, context.ids["id"], context.command)
    return context.build_resource_reply(
        wire_rules.CATEGORY_RULES,
        wire_rules.CategoryRulesReply(*await rules.list_categories(wire_rules.render_categories, state), run),
    )


def _create_execution(
    dependencies: Dependencies, settings: Settings, maintenance: Maintenance, models: LanguageModels | None
) -> Handler:
    create = partial(
        RunExecution,
        processing_limit=ConcurrencyLimit(settings.worker_readers),
        update_statistics=maintenance.update_statistics,
        health_thresholds=HealthThresholds(settings.degraded_after, settings.blocked_after),
        uses_models=models is not None,
    )
    return dependencies.call(create)


def _create_service(connectors: Connectors, dry_run: DryRun, rules: CategoryRuleService) -> RunService:
    return RunService(connectors, dry_run, rules)


def _create_ticks(scheduler: RunScheduler, expiry: BatchExpiry) -> Sequence[Tick]:
    return [
        Tick("due pulls", 15, scheduler.queue_due_runs),
        Tick("followed catalogues", 2, scheduler.queue_runs_of_followers),
        Tick("open batches", 60, expiry.expire_batches, is_purge=True),
    ]


RUNS = Collection("runs", wire.RUN, "sources")
RULES = Collection("runs", wire_rules.CATEGORY_RULES, "sources")

AREA = Area(
    "runs",
    "Runs",
    "Imports of a source: pulls, uploads and pushes.",
    create_service=_create_service,
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
            "Queues a run, which fetches and imports the source's feed. `accept_shrink` allows a complete run to withdraw all items that are missing from the feed. "
            "Returns 409 while a run of the requested stream is open, or if the source is not active. Returns 422 if the source is "
            "not of kind `url` or `api`, its connector cannot pull, or the requested stream has no separate feed.",
            RunService.queue_pull,
            is_creation=True,
            path="/v1/sources/{id}/runs",
            body=wire.START_RUN_BODY,
            status=202,
            rate="expensive",
            errors=("conflict", "unprocessable"),
            agent=AgentToolSettings(requires_approval=True, contacts_external_systems=True),
            undo="Imported data stays. Have the vendor's data corrected, then start another run.",
        ),
        RUNS.write(
            "replay",
            "Re-import a source's stored data",
            "Queues a run that imports the stream's newest stored snapshot again, without fetching, for example after a "
            "change of mapping or settings. `accept_shrink` disables the removal limit. If the limit refused the stream's "
            "last import, a run with `accept_shrink` imports the refused snapshot, whether pulled, uploaded, mailed or pushed. "
            "Returns 409 while a run of the stream is open, if the source is not active, or if no snapshot is stored.",
            RunService.queue_replay,
            is_creation=True,
            path="/v1/sources/{id}/replay",
            body=wire.START_RUN_BODY,
            status=202,
            rate="expensive",
            errors=("conflict",),
            agent=AgentToolSettings(requires_approval=True),
            undo="Imported data stays. Correct the mapping or the settings, then re-import the data.",
        ),
        RUNS.write(
            "push",
            "Push records",
            "For sources of kind push. All calls with the same `batch` belong to one run, which starts after the first "
            "call without `more`. If that call has `complete`, items that the batch does not contain are withdrawn. Runs "
            "of one source are executed in order. Invalid records are reported as problems of the run; valid ones are "
            "stored. An incomplete batch expires after 24 hours without a call: nothing is imported, and a later call for it returns 409. A record is merged: "
            "omitted fields keep their values, null removes them. Exception: a batch that ends with `complete` also removes the "
            "fields that it omits. A record that has only offers creates no product. A dry run parses the records and, with "
            "`explain`, returns their effects.",
            RunService.push,
            is_creation=True,
            path="/v1/sources/{id}/records",
            body=PUSH_BODY,
            preview=wire.RUN_PREVIEW_PROPERTIES,
            status=202,
            errors=("conflict", "unprocessable", "payload_too_large", "quota_exceeded"),
            undo="Pushed data stays. Push corrected records.",
        ),
        RULES.read(
            "Read a source's category rules",
            "Returns every category path of the source's products and all paths above, with its rule, the rule that it inherits, and "
            "a suggestion. A rule applies to its path and all paths below, except those with a more specific rule.",
            id="runs.list_categories",
            path="/v1/sources/{id}/categories",
            handler=read_category_rules,
            dataset="category_rules",
            is_exclusive=True,
        ),
        RULES.write(
            "set_categories",
            "Set a source's category rules",
            "Sets the rules in the body and deletes those whose value is null; other rules stay. `run` is the run that applies the rules to "
            "the source's products, without fetching. Returns 422 for unknown categories or more than 5,000 rules. Returns "
            "409 while a run of the source is open, or if the source is not active; no rule is changed then.",
            path="/v1/sources/{id}/categories",
            handler=set_category_rules,
            body=wire_rules.RULE_CHANGES,
            rate="expensive",
            is_exclusive=True,
            errors=("conflict", "unprocessable"),
            agent=AgentToolSettings(requires_approval=True),
            undo=UndoSupport(
                "The previous rules are restored, and a run applies them to the products.",
                lambda service, tx, act: service.category_rules.undo(tx, act),
            ),
        ),
        RUNS.read(
            "Read a run",
            "Returns the progress of a run, which is one import of a source, its results and problems, and why it failed or was refused.",
        ),
    ),
    handler_factories={EXECUTE_RUN: _create_execution, REASSIGN_CATEGORIES: CategoryReassignment},
    create_ticks=_create_ticks,
)
