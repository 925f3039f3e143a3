"""GET /v1/match-pairs, /v1/merges and what is decided of them; GET, PATCH /v1/matching/judge-settings."""

from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Final, TypeAlias

from adapters.wire import matching as wire
from domain.audit.model import Act
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
from entrypoints.operations.collection import Collection
from entrypoints.operations.operation import Area, ReadContext, Reply, Tool, Undoing, WriteContext
from ports.models import Models
from ports.unit_of_work import Tx


@dataclass(frozen=True, slots=True)
class MatchingServices:
    """The area's use cases."""

    judge_settings: JudgeSettingsService
    merging: Merging


Reading: TypeAlias = ReadContext[MatchingServices]
Writing: TypeAlias = WriteContext[MatchingServices]


async def list_pairs(call: Reading) -> Reply:
    """Return the pairs that pass the filters."""
    page = await call.tx[PairStore].matching(PairFilter(**call.query), call.page_request)
    return call.list(wire.MATCH_PAIR, page)


async def read_pair(call: Reading) -> Reply:
    """Return one pair."""
    return call.one(wire.MATCH_PAIR, existing(await call.tx[PairStore].get(call.ids["id"])))


async def list_merges(call: Reading) -> Reply:
    """Return the merges that pass the filters."""
    page = await call.tx[MergeStore].matching(MergeFilter(**call.query), call.page_request)
    return call.list(wire.MERGE, page)


async def read_merge(call: Reading) -> Reply:
    """Return one merge."""
    return call.one(wire.MERGE, existing(await call.tx[MergeStore].get(call.ids["id"])))


async def read_judge_settings(call: Reading) -> Reply:
    """Return the judge's settings."""
    return call.one(wire.JUDGE_SETTINGS, await settings_of(call.tx))


async def dismiss_pair(call: Writing) -> Reply:
    """Put down that the two are different items."""
    by = decided_by(call.tx.context)
    return call.one(wire.MATCH_PAIR, await call.service.merging.dismiss(call.tx, call.ids["id"], by))


async def merge_pair(call: Writing) -> Reply:
    """Have the two be one."""
    by = decided_by(call.tx.context)
    return call.one(wire.MATCH_PAIR, await call.service.merging.merge(call.tx, call.ids["id"], by))


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

PAIRS = Collection("matching", wire.MATCH_PAIR, "products", noun="pair", service=attrgetter("merging"))
MERGES = Collection("matching", wire.MERGE, "products", noun="merge", service=attrgetter("merging"))
SETTINGS = Collection(
    "matching", wire.JUDGE_SETTINGS, "products", noun="judge_settings", service=attrgetter("judge_settings")
)
_SETTINGS = "/v1/matching/judge-settings"


def _services(models: Models | None, merging: Merging) -> MatchingServices:
    return MatchingServices(JudgeSettingsService(models.offers if models else None), merging)


AREA = Area(
    "matching",
    "Matching",
    "Which items of different vendors are the same, and what a model may decide about that.",
    service=_services,
    operations=(
        PAIRS.list(
            "List match pairs",
            "Pairs of variants of different sources that may be the same item, newest first. Those of 0.995 or more "
            "without conflict are merged by themselves; from 0.5 on they are offered here.",
            handler=list_pairs,
            query=_PAIR_FILTERS,
            dataset="match_pairs",
        ),
        PAIRS.read(
            "Read a match pair",
            "What speaks for and against the two being the same item, with the values of both.",
            handler=read_pair,
        ),
        PAIRS.write(
            "dismiss",
            "Dismiss a match pair",
            "Records that the two are different items. It is not offered again, whatever the sources say later, until "
            "it is reopened. A pair that is not open: 409.",
            handler=dismiss_pair,
            errors=("conflict",),
            agent=Tool(approval=True),
            undo=Undoing("The pair is open again, as it was before.", _decisions),
        ),
        PAIRS.write(
            "merge",
            "Merge a match pair",
            "The two variants are shown as one from now on: the survivor, with the offers of both. The other's id answers "
            "with it. Their products become one if their variants say so: one has nothing else left, or at least half of the "
            "larger one's variants, and all of the other's, are the same. Nothing is lost: undoing the merge gives back what "
            "was there. A pair that is not open, items that are merged with others of one source, or more than 256 products "
            "or 10,000 variants that would be tied together: 409.",
            handler=merge_pair,
            errors=("conflict",),
            agent=Tool(approval=True),
            undo=Undoing(
                "The merge is undone, with what followed from it alone, and the pair is open as before.", _decisions
            ),
        ),
        PAIRS.write(
            "reopen",
            "Reopen a match pair",
            "Takes a dismissal back. The pair then waits for a person's word. One that is not dismissed: 409.",
            Merging.reopen,
            errors=("conflict",),
            agent=Tool(approval=True),
            undo=Undoing("The pair is dismissed again.", _decisions),
        ),
        MERGES.list(
            "List merges",
            "Merges of variants and products, those that were undone included, newest first.",
            handler=list_merges,
            query=_MERGE_FILTERS,
            dataset="merges",
        ),
        MERGES.read(
            "Read a merge",
            "What was merged into what, by whom, and which earlier merges it rests on.",
            handler=read_merge,
        ),
        MERGES.write(
            "undo",
            "Undo a merge",
            "Both are their own again, under their own ids, as their sources state them by now, and offers are back. "
            "Undoing the merge of products undoes those of their variants with each other; undoing that of variants undoes that of "
            "products that nothing else holds. Their pairs are open again and wait for a person's word. A merge that is undone "
            "already, or that a later one rests on, which is named: 409.",
            Merging.undo,
            errors=("conflict",),
            agent=Tool(approval=True),
            undo=Undoing("The same merges count again, and the pairs stand as before.", _decisions),
        ),
        SETTINGS.read(
            "Read the judge's settings",
            "Whether a model judges open match pairs, which one, what it may do by itself, and what it may cost a "
            "day. Until somebody sets them these are the defaults, with the judge switched off.",
            handler=read_judge_settings,
            path=_SETTINGS,
            dataset="judge_settings",
        ),
        SETTINGS.write(
            "update",
            "Change the judge's settings",
            "Fields that are left out stay. Once it is enabled, data of both items of open pairs goes to the model's "
            "provider: titles, codes, sizes, materials, prices, descriptions. The judge never merges a pair that has a conflict. "
            "Where no model is configured on this service, or the chosen one has no price: 422.",
            JudgeSettingsService.update,
            method="PATCH",
            path=_SETTINGS,
            body=wire.JUDGE_SETTINGS.patch(JudgeSettingsChange),
            errors=("conflict", "unprocessable", "model_unpriced"),
            agent=Tool(approval=True),
            undo=Undoing("The settings are as before; what the judge decided meanwhile stays.", _settings),
        ),
    ),
    jobs={
        MATCH: partial(MatchingStage, offers=PairUpdater()),
        JUDGE: partial(Judging, decisions=Merging()),
        RANK: Ranking,
    },
)
