"""GET /v1/match-pairs, /v1/merges and what is decided of them; GET, PATCH /v1/matching/judge-settings."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from adapters.wire import matching as wire
from domain.audit.model import Act
from domain.jobs.usecases.draining import Handler
from domain.kernel.resource import existing
from domain.kernel.schema import Schema, enum, id_of, text
from domain.matching.index import MATCH
from domain.matching.judging import JUDGE
from domain.matching.model import JudgeSettingsChange, MergeFilter, MergeKind, MergeStatus, PairFilter, PairStatus
from domain.matching.ports import MergeStore, PairStore
from domain.matching.usecases.judging import JudgeSettingsService, Judging, settings_of
from domain.matching.usecases.matching_stage import MatchingStage
from domain.matching.usecases.merging import Merging, Ranking, decided_by, take_back_decisions
from domain.matching.usecases.pair_updates import PairUpdater
from domain.sources.queueing import RANK
from entrypoints.dependencies import Dependencies
from entrypoints.operations.operation import Area, Read, ReadContext, Reply, Tool, Undoing, Write, WriteContext
from ports.unit_of_work import Tx


@dataclass(frozen=True, slots=True)
class MatchingServices:
    """The area's use cases."""

    judge_settings: JudgeSettingsService
    merging: Merging


Reading: TypeAlias = ReadContext[MatchingServices]
Writing: TypeAlias = WriteContext[MatchingServices]


async def list_pairs(call: Reading) -> Reply:
    """The pairs that pass the filters."""
    page = await call.tx[PairStore].matching(PairFilter(**call.query), call.page_request)
    return call.list(wire.MATCH_PAIR, page)


async def read_pair(call: Reading) -> Reply:
    """One pair."""
    return call.one(wire.MATCH_PAIR, existing(await call.tx[PairStore].get(call.ids["id"])))


async def dismiss_pair(call: Writing) -> Reply:
    """Put down that the two are different items."""
    by = decided_by(call.tx.context)
    return call.one(wire.MATCH_PAIR, await call.service.merging.dismiss(call.tx, call.ids["id"], by))


async def merge_pair(call: Writing) -> Reply:
    """Have the two be one."""
    by = decided_by(call.tx.context)
    return call.one(wire.MATCH_PAIR, await call.service.merging.merge(call.tx, call.ids["id"], by))


async def reopen_pair(call: Writing) -> Reply:
    """Take a dismissal back."""
    return call.one(wire.MATCH_PAIR, await call.service.merging.reopen(call.tx, call.ids["id"]))


async def list_merges(call: Reading) -> Reply:
    """The merges that pass the filters."""
    page = await call.tx[MergeStore].matching(MergeFilter(**call.query), call.page_request)
    return call.list(wire.MERGE, page)


async def read_merge(call: Reading) -> Reply:
    """One merge."""
    return call.one(wire.MERGE, existing(await call.tx[MergeStore].get(call.ids["id"])))


async def undo_merge(call: Writing) -> Reply:
    """Take a merge back."""
    return call.one(wire.MERGE, await call.service.merging.undo(call.tx, call.ids["id"]))


async def read_judge_settings(call: Reading) -> Reply:
    """What is set of the judge."""
    return call.one(wire.JUDGE_SETTINGS, await settings_of(call.tx))


async def update_judge_settings(call: Writing) -> Reply:
    """Change it."""
    service = call.service.judge_settings
    return call.one(wire.JUDGE_SETTINGS, await service.update(call.tx, call.command, call.expected_version))


async def _decisions(_: MatchingServices, tx: Tx, act: Act) -> None:
    await take_back_decisions(tx, act)


async def _settings(services: MatchingServices, tx: Tx, act: Act) -> None:
    await services.judge_settings.undo(tx, act)


_PAIR_FILTERS: Final[dict[str, Schema]] = {
    "status": enum(*PairStatus),
    "variant": id_of("var", "Pairs that have this variant on either side."),
    "product": id_of("prod", "Pairs of a variant of this product."),
}
_MERGE_FILTERS: Final[dict[str, Schema]] = {
    "status": enum(*MergeStatus),
    "kind": enum(*MergeKind),
    "survivor": text("var_01J8ZQ5T3V7XK2M9RB4CDW", longest=40, description="The id of a variant or product."),
    "merged": text("var_01J8ZQ5T3V7XK2M9RB4CDX", longest=40, description="The id of a variant or product."),
    "pair": id_of("mpr"),
}

OPERATIONS: Final = (
    Read(
        id="matching.list_pairs",
        path="/v1/match-pairs",
        summary="List match pairs",
        description="Pairs of variants of different sources that may be the same item, newest first. Those of 0.995 or more "
        "without conflict are merged by themselves; from 0.5 on they are offered here.",
        handler=list_pairs,
        scope="products:read",
        query=_PAIR_FILTERS,
        reply=wire.MATCH_PAIR.list,
        paging="both",
        dataset="match_pairs",
    ),
    Read(
        id="matching.read_pair",
        path="/v1/match-pairs/{id}",
        ids={"id": "mpr"},
        summary="Read a match pair",
        description="What speaks for and against the two being the same item, with the values of both.",
        handler=read_pair,
        scope="products:read",
        reply=wire.MATCH_PAIR.schema,
        errors=("not_found",),
    ),
    Write(
        id="matching.dismiss_pair",
        method="POST",
        path="/v1/match-pairs/{id}/dismiss",
        ids={"id": "mpr"},
        summary="Dismiss a match pair",
        description="Records that the two are different items. It is not offered again, whatever the sources say later, until "
        "it is reopened. A pair that is not open: 409.",
        handler=dismiss_pair,
        scope="products:write",
        reply=wire.MATCH_PAIR.schema,
        errors=("not_found", "conflict"),
        agent=Tool(approval=True),
        undo=Undoing("The pair is open again, as it was before.", _decisions),
    ),
    Write(
        id="matching.merge_pair",
        method="POST",
        path="/v1/match-pairs/{id}/merge",
        ids={"id": "mpr"},
        summary="Merge a match pair",
        description="The two variants are shown as one from now on: the survivor, with the offers of both. The other's id answers "
        "with it. Their products become one if their variants say so: one has nothing else left, or at least half of the "
        "larger one's variants, and all of the other's, are the same. Nothing is lost: undoing the merge gives back what "
        "was there. A pair that is not open, items that are merged with others of one source, or more than 256 products "
        "or 10,000 variants that would be tied together: 409.",
        handler=merge_pair,
        scope="products:write",
        reply=wire.MATCH_PAIR.schema,
        errors=("not_found", "conflict"),
        agent=Tool(approval=True),
        undo=Undoing(
            "The merge is undone, with what followed from it alone, and the pair is open as before.", _decisions
        ),
    ),
    Write(
        id="matching.reopen_pair",
        method="POST",
        path="/v1/match-pairs/{id}/reopen",
        ids={"id": "mpr"},
        summary="Reopen a match pair",
        description="Takes a dismissal back. The pair then waits for a person's word. One that is not dismissed: 409.",
        handler=reopen_pair,
        scope="products:write",
        reply=wire.MATCH_PAIR.schema,
        errors=("not_found", "conflict"),
        agent=Tool(approval=True),
        undo=Undoing("The pair is dismissed again.", _decisions),
    ),
    Read(
        id="matching.list_merges",
        path="/v1/merges",
        summary="List merges",
        description="Merges of variants and products, those that were undone included, newest first.",
        handler=list_merges,
        scope="products:read",
        query=_MERGE_FILTERS,
        reply=wire.MERGE.list,
        paging="both",
        dataset="merges",
    ),
    Read(
        id="matching.read_merge",
        path="/v1/merges/{id}",
        ids={"id": "mrg"},
        summary="Read a merge",
        description="What was merged into what, by whom, and which earlier merges it rests on.",
        handler=read_merge,
        scope="products:read",
        reply=wire.MERGE.schema,
        errors=("not_found",),
    ),
    Write(
        id="matching.undo_merge",
        method="POST",
        path="/v1/merges/{id}/undo",
        ids={"id": "mrg"},
        summary="Undo a merge",
        description="Both are their own again, under their own ids, as their sources state them by now, and offers are back. "
        "Undoing the merge of products undoes those of their variants with each other; undoing that of variants undoes that of "
        "products that nothing else holds. Their pairs are open again and wait for a person's word. A merge that is undone "
        "already, or that a later one rests on, which is named: 409.",
        handler=undo_merge,
        scope="products:write",
        reply=wire.MERGE.schema,
        errors=("not_found", "conflict"),
        agent=Tool(approval=True),
        undo=Undoing("The same merges count again, and the pairs stand as before.", _decisions),
    ),
    Read(
        id="matching.read_judge_settings",
        path="/v1/matching/judge-settings",
        summary="Read the judge's settings",
        description="Whether a model judges open match pairs, which one, what it may do by itself, and what it may cost a "
        "day. Until somebody sets them these are the defaults, with the judge switched off.",
        handler=read_judge_settings,
        scope="products:read",
        reply=wire.JUDGE_SETTINGS.schema,
        dataset="judge_settings",
    ),
    Write(
        id="matching.update_judge_settings",
        method="PATCH",
        path="/v1/matching/judge-settings",
        summary="Change the judge's settings",
        description="Fields that are left out stay. Once it is enabled, data of both items of open pairs goes to the model's "
        "provider: titles, codes, sizes, materials, prices, descriptions. The judge never merges a pair that has a conflict. "
        "Where no model is configured on this service, or the chosen one has no price: 422.",
        handler=update_judge_settings,
        scope="products:write",
        body=wire.JUDGE_SETTINGS.patch(JudgeSettingsChange),
        reply=wire.JUDGE_SETTINGS.schema,
        errors=("conflict", "unprocessable", "model_unpriced"),
        agent=Tool(approval=True),
        undo=Undoing("The settings are as before; what the judge decided meanwhile stays.", _settings),
    ),
)


def _services(dependencies: Dependencies) -> MatchingServices:
    models = dependencies.models
    return MatchingServices(JudgeSettingsService(models.offers if models else None), Merging())


def _jobs(dependencies: Dependencies) -> Mapping[str, Handler]:
    judge = Judging(dependencies.uow, dependencies.models, Merging())
    stage = MatchingStage(dependencies.uow, PairUpdater())
    return {MATCH: stage, JUDGE: judge, RANK: Ranking(dependencies.uow)}


AREA: Final = Area(
    name="matching",
    title="Matching",
    description="Which items of different vendors are the same, and what a model may decide about that.",
    service=_services,
    operations=OPERATIONS,
    jobs=_jobs,
)
