"""Matches, merges and settings of the judge: /v1/match-pairs, /v1/merges, /v1/matching/judge-settings."""

from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Final, TypeAlias

from adapters.api_json import matching as wire
from domain.agents.usecases.changes import GROUP_PRODUCTS
from domain.audit.model import AuditAct
from domain.kernel.resource import require_found
from domain.kernel.schema import Schema, enum, id_schema, text
from domain.matching.index import MATCHING_JOB
from domain.matching.judge_answers import JUDGING_JOB
from domain.matching.model import JudgeSettingsChange, MergeFilter, MergeKind, MergeStatus, PairFilter, PairStatus
from domain.matching.ports import MergeStore, PairStore
from domain.matching.usecases.judge import JudgeJob, JudgeSettingsService, load_judge_settings
from domain.matching.usecases.matching_stage import MatchingJob
from domain.matching.usecases.merges import (
    BULK_MERGE_JOB,
    BulkMergeJob,
    MergeService,
    PrecedenceUpdateJob,
    find_decider_kind,
    undo_decisions,
)
from domain.matching.usecases.pair_updates import PairUpdater
from domain.sources.precedence_update import UPDATE_SOURCE_PRECEDENCE
from entrypoints.operations.collection import Collection
from entrypoints.operations.operation import (
    AgentToolSettings,
    Area,
    ConsoleAction,
    ReadContext,
    Reply,
    UndoSupport,
    WriteContext,
)
from ports.language_models import LanguageModels
from ports.unit_of_work import Tx


@dataclass(frozen=True, slots=True)
class MatchingServices:
    """Use cases of matching: settings of the judge, and decisions on match pairs and merges."""

    judge_settings: JudgeSettingsService
    merging: MergeService


MatchingReadContext: TypeAlias = ReadContext[MatchingServices]
MatchingWriteContext: TypeAlias = WriteContext[MatchingServices]


async def list_pairs(context: MatchingReadContext) -> Reply:
    """Return a page of the match pairs that satisfy the filters."""
    page = await context.tx[PairStore].list_pairs(PairFilter(**context.query), context.page_request)
    return context.build_list_reply(wire.MATCH_PAIR, page)


async def read_pair(context: MatchingReadContext) -> Reply:
    """Return one match pair."""
    return context.build_resource_reply(
        wire.MATCH_PAIR, require_found(await context.tx[PairStore].get(context.ids["id"]))
    )


async def list_merges(context: MatchingReadContext) -> Reply:
    """Return a page of the merges that satisfy the filters."""
    page = await context.tx[MergeStore].list_merges(MergeFilter(**context.query), context.page_request)
    return context.build_list_reply(wire.MERGE, page)


async def read_merge(context: MatchingReadContext) -> Reply:
    """Return one merge."""
    return context.build_resource_reply(wire.MERGE, require_found(await context.tx[MergeStore].get(context.ids["id"])))


async def read_judge_settings(context: MatchingReadContext) -> Reply:
    """Return the settings of the judge."""
    return context.build_resource_reply(wire.JUDGE_SETTINGS, await load_judge_settings(context.tx))


async def dismiss_pair(context: MatchingWriteContext) -> Reply:
    """Dismiss a match pair, which records that the two variants are different articles."""
    decision_maker = find_decider_kind(context.tx.context)
    return context.build_resource_reply(
        wire.MATCH_PAIR, await context.service.merging.dismiss_pair(context.tx, context.ids["id"], decision_maker)
    )


async def merge_pair(context: MatchingWriteContext) -> Reply:
    """Merge the two variants of a match pair."""
    decision_maker = find_decider_kind(context.tx.context)
    return context.build_resource_reply(
        wire.MATCH_PAIR, await context.service.merging.merge_pair(context.tx, context.ids["id"], decision_maker)
    )


async def _undo_decisions(_: MatchingServices, tx: Tx, act: AuditAct) -> None:
    await undo_decisions(tx, act)


async def _undo_settings(services: MatchingServices, tx: Tx, act: AuditAct) -> None:
    await services.judge_settings.undo_change(tx, act)


_PAIR_FILTERS: Final[dict[str, Schema]] = {
    "status": enum(*PairStatus),
    "variant": id_schema("var", "Pairs that contain this variant."),
    "product": id_schema("prod", "Pairs with a variant of this product."),
}
_MERGE_FILTERS: Final[dict[str, Schema]] = {
    "status": enum(*MergeStatus),
    "kind": enum(*MergeKind),
    "survivor": text("var_01J8ZQ5T3V7XK2M9RB4CDW", max_length=40, description="The ID of a variant or product."),
    "merged": text("var_01J8ZQ5T3V7XK2M9RB4CDX", max_length=40, description="The ID of a variant or product."),
    "pair": id_schema("mpr"),
}

PAIRS = Collection("matching", wire.MATCH_PAIR, "products", noun="pair", select_service=attrgetter("merging"))
MERGES = Collection("matching", wire.MERGE, "products", noun="merge", select_service=attrgetter("merging"))
SETTINGS = Collection(
    "matching", wire.JUDGE_SETTINGS, "products", noun="judge_settings", select_service=attrgetter("judge_settings")
)
_SETTINGS = "/v1/matching/judge-settings"


def _create_services(models: LanguageModels | None, merging: MergeService) -> MatchingServices:
    return MatchingServices(JudgeSettingsService(models.is_configured if models else None), merging)


AREA = Area(
    "matching",
    "Matching",
    "Matches between variants of different sources, their merges, and settings of the AI review.",
    create_service=_create_services,
    operations=(
        PAIRS.list(
            "List match pairs",
            "Returns pairs of variants of different sources that may be the same article, newest first, including merged, "
            "dismissed and superseded pairs. A pair is proposed if its score is 0.5 or more. A pair with a score of 0.995 or "
            "more and no conflict is merged automatically.",
            handler=list_pairs,
            query=_PAIR_FILTERS,
            dataset="match_pairs",
        ),
        PAIRS.read(
            "Read a match pair",
            "Returns the evidence for and against a match, with the values of both variants.",
            handler=read_pair,
        ),
        PAIRS.write(
            "dismiss",
            "Dismiss a match pair",
            "Records that the two are different items. The pair is not proposed again, even if the sources change, until "
            "it is reopened. Returns 409 if the pair is not open.",
            handler=dismiss_pair,
            errors=("conflict",),
            agent=AgentToolSettings(requires_approval=True),
            undo=UndoSupport("The pair is open again.", _undo_decisions),
        ),
        PAIRS.write(
            "merge",
            "Merge a match pair",
            "Merges the two variants into one, the survivor, which has the offers of both. Reading the ID of the other "
            "variant returns the survivor. Their products are also merged in two cases. In the first, every variant of one product "
            "has another variant as its survivor, and at least one is merged with a variant of the other product. In the "
            "second, all variants of the smaller product are merged with variants of the larger one, which has at most twice "
            "as many, and the products have no common source. Undoing the merge restores the previous state. Returns 409 if "
            "the pair is not open, if the merge would join two items of one source, or if it would connect more than 256 "
            "products or 10,000 variants.",
            handler=merge_pair,
            errors=("conflict",),
            agent=AgentToolSettings(requires_approval=True),
            undo=UndoSupport(
                "The merge, and merges that were based only on it, are undone, and the pair is open again.",
                _undo_decisions,
            ),
        ),
        PAIRS.write(
            "reopen",
            "Reopen a match pair",
            "Revokes the dismissal. The pair then waits for a person's decision. Returns 409 if the pair is not dismissed.",
            MergeService.reopen_pair,
            errors=("conflict",),
            agent=AgentToolSettings(requires_approval=True),
            undo=UndoSupport("The pair is dismissed again.", _undo_decisions),
        ),
        MERGES.list(
            "List merges",
            "Returns merges of variants and products, including undone ones, newest first.",
            handler=list_merges,
            query=_MERGE_FILTERS,
            dataset="merges",
        ),
        MERGES.read(
            "Read a merge",
            "Returns the merged items, who merged them, and the earlier merges on which the merge depends.",
            handler=read_merge,
        ),
        MERGES.write(
            "undo",
            "Undo a merge",
            "Separates the items again, with their own IDs and offers, as their sources list them now. Undoing a merge of "
            "products also undoes the merges between their variants. Undoing a merge of variants also undoes a merge of "
            "products that was based only on it. The pairs are open again and wait for a person's decision. Returns 409 if "
            "the merge is already undone, or if a later merge depends on it; the detail names that merge.",
            MergeService.undo_merge,
            errors=("conflict",),
            agent=AgentToolSettings(requires_approval=True),
            undo=UndoSupport(
                "The same merges apply again, and the pairs return to their previous state.", _undo_decisions
            ),
        ),
        SETTINGS.read(
            "Read the settings of the AI review",
            "Returns whether a language model reviews open match pairs, which model, what it may decide automatically, and "
            "its daily budget. Until they are changed, the settings are the defaults, with the review disabled.",
            handler=read_judge_settings,
            path=_SETTINGS,
            dataset="judge_settings",
        ),
        SETTINGS.write(
            "update",
            "Change the settings of the AI review",
            "Omitted fields keep their values. If enabled, data of both items of open pairs is sent to the model's "
            "provider: titles, brands, codes, options, sizes, weights, materials, features, categories, prices and descriptions. The model never merges a pair with a "
            "conflict. Returns 422 if this service has no language model configured, or no price is set for the chosen one.",
            JudgeSettingsService.update,
            method="PATCH",
            path=_SETTINGS,
            body=wire.JUDGE_SETTINGS.build_patch_body(JudgeSettingsChange),
            errors=("conflict", "unprocessable", "model_unpriced"),
            agent=AgentToolSettings(requires_approval=True),
            undo=UndoSupport(
                "The previous settings are restored; the model's decisions since then remain.", _undo_settings
            ),
        ),
    ),
    console_actions=(
        ConsoleAction(
            id=GROUP_PRODUCTS,
            scope="products:write",
            body=wire.GROUPING,
            undo="Undo the acceptance of the proposal instead.",
        ),
    ),
    handler_factories={
        MATCHING_JOB: partial(MatchingJob, pair_writer=PairUpdater()),
        JUDGING_JOB: partial(JudgeJob, decisions=MergeService()),
        BULK_MERGE_JOB: BulkMergeJob,
        UPDATE_SOURCE_PRECEDENCE: PrecedenceUpdateJob,
    },
)
