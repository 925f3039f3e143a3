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
    """Use cases of the area."""

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
    """Record that the two variants are different items."""
    decision_maker = decided_by(call.tx.context)
    return call.one(wire.MATCH_PAIR, await call.service.merging.dismiss(call.tx, call.ids["id"], decision_maker))


async def merge_pair(call: Writing) -> Reply:
    """Merge the two variants."""
    decision_maker = decided_by(call.tx.context)
    return call.one(wire.MATCH_PAIR, await call.service.merging.merge(call.tx, call.ids["id"], decision_maker))


async def _undo_decisions(_: MatchingServices, tx: Tx, act: Act) -> None:
    await take_back_decisions(tx, act)


async def _undo_settings(services: MatchingServices, tx: Tx, act: Act) -> None:
    await services.judge_settings.undo(tx, act)


_PAIR_FILTERS: Final[dict[str, Schema]] = {
    "status": enum(*PairStatus),
    "variant": id_of("var", "Pairs with this variant on either side."),
    "product": id_of("prod", "Pairs with a variant of this product."),
}
_MERGE_FILTERS: Final[dict[str, Schema]] = {
    "status": enum(*MergeStatus),
    "kind": enum(*MergeKind),
    "survivor": text("var_01J8ZQ5T3V7XK2M9RB4CDW", longest=40, description="The ID of a variant or product."),
    "merged": text("var_01J8ZQ5T3V7XK2M9RB4CDX", longest=40, description="The ID of a variant or product."),
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
    "Matches between items of different vendors, and settings of the model that judges them.",
    service=_services,
    operations=(
        PAIRS.list(
            "List match pairs",
            "Returns pairs of variants of different sources that may be the same item, newest first. Pairs with a score of 0.995 or "
            "more and no conflict are merged automatically; those from 0.5 are listed here.",
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
            "Records that the two are different items. The pair is not proposed again, whatever the sources state later, until it is "
            "reopened. If the pair is not open: 409.",
            handler=dismiss_pair,
            errors=("conflict",),
            agent=Tool(approval=True),
            undo=Undoing("The pair is open again.", _undo_decisions),
        ),
        PAIRS.write(
            "merge",
            "Merge a match pair",
            "Shows the two variants as one, the survivor, with the offers of both. The ID of the other variant returns the survivor. "
            "Their products become one if all variants of one match variants of the other, and they are the only ones or at least half "
            "of the larger product's variants. Undoing the merge restores the previous state. If the pair is not open, the items are "
            "already merged with others of one source, or more than 256 products or 10,000 variants would be connected: 409.",
            handler=merge_pair,
            errors=("conflict",),
            agent=Tool(approval=True),
            undo=Undoing(
                "The merge and the merges that depend on it alone are undone, and the pair is open again.",
                _undo_decisions,
            ),
        ),
        PAIRS.write(
            "reopen",
            "Reopen a match pair",
            "Revokes the dismissal. The pair then waits for a person's decision. If the pair is not dismissed: 409.",
            Merging.reopen,
            errors=("conflict",),
            agent=Tool(approval=True),
            undo=Undoing("The pair is dismissed again.", _undo_decisions),
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
            "Separates the items again under their own IDs, as their sources state them now, with their offers. Undoing a merge of "
            "products undoes the merges of their variants with each other; undoing a merge of variants undoes the merge of products "
            "that depends on it alone. Their pairs are open again and wait for a person's decision. If the merge is already undone, or "
            "a later merge depends on it, which is named: 409.",
            Merging.undo,
            errors=("conflict",),
            agent=Tool(approval=True),
            undo=Undoing("The same merges apply again, and the pairs return to their previous state.", _undo_decisions),
        ),
        SETTINGS.read(
            "Read the judge's settings",
            "Returns whether a model judges open match pairs, which one, what it may decide automatically, and its daily cost limit. "
            "Until changed, these are the defaults, with the judge disabled.",
            handler=read_judge_settings,
            path=_SETTINGS,
            dataset="judge_settings",
        ),
        SETTINGS.write(
            "update",
            "Change the judge's settings",
            "Omitted fields keep their values. If enabled, data of both items of open pairs is sent to the model's provider: titles, "
            "codes, sizes, materials, prices, descriptions. The judge never merges a pair with a conflict. If this service has no "
            "model configured, or the chosen model has no price: 422.",
            JudgeSettingsService.update,
            method="PATCH",
            path=_SETTINGS,
            body=wire.JUDGE_SETTINGS.patch(JudgeSettingsChange),
            errors=("conflict", "unprocessable", "model_unpriced"),
            agent=Tool(approval=True),
            undo=Undoing("The previous settings are restored; the judge's decisions since then stay.", _undo_settings),
        ),
    ),
    jobs={
        MATCH: partial(MatchingStage, offers=PairUpdater()),
        JUDGE: partial(Judging, decisions=Merging()),
        RANK: Ranking,
    },
)
