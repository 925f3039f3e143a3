"""JSON of match pairs, merges and the judge's settings (docs/matching.md)."""

from collections.abc import Mapping
from typing import Any, Final

from adapters.wire.resource import Resource, parts
from domain.kernel.plain import plain
from domain.kernel.resource import changeable, computed, optional
from domain.kernel.schema import (
    Schema,
    array,
    boolean,
    enum,
    id_of,
    integer,
    named,
    nullable,
    number,
    record,
    text,
    timestamp,
)
from domain.matching.merge_plan import FAMILY
from domain.matching.model import (
    DecidedBy,
    Judgement,
    JudgeSettings,
    MatchPair,
    Merge,
    MergeKind,
    MergeStatus,
    Outcome,
    PairEvidence,
    PairStatus,
)
from domain.matching.scoring import CONFLICTS
from domain.matching.usecases.judging import LEAST_SURE, MOST_BUDGET

CONFLICT = named("match_conflict", enum(*CONFLICTS, FAMILY))
_VALUE: Final[Schema] = {"description": "The compared value; omitted if the variant has none."}
_EVIDENCE = Resource[PairEvidence](
    None,
    {
        "comparison": text(
            "gtin", description="The comparison. `calibration`, `rivals` and `conflicts` are corrections."
        ),
        "level": integer(2, least=0, description="The comparison's level of agreement; 0 for corrections."),
        "weight": number(6.4, "log2 of the factor on the odds: 1 doubles the odds of a match, -1 halves them."),
        "name": text("the same", shortest=0, description="The level in words."),
        "left": optional(_VALUE | {"examples": ["4006381333931"]}),
        "right": optional(_VALUE | {"examples": ["4006381333931"]}),
    },
    title="match_evidence",
)
_REASON = named(
    "judgement_reason",
    record(
        None,
        {
            "field": text("title"),
            "subject_quote": text(
                "Halden oak bench", shortest=0, description="A quotation from the first variant's data."
            ),
            "candidate_quote": text(
                "Bench HALDEN, oak", shortest=0, description="A quotation from the second variant's data."
            ),
        },
    ),
)
JUDGEMENT = named(
    "match_judgement",
    record(
        "match_judgement",
        {
            "id": id_of("jud"),
            "model": text("small-1"),
            "outcome": enum(*Outcome),
            "choice": enum("same", "different", "unsure"),
            "confidence": number(0.97, "The model's confidence, from 0 to 1."),
            "reasons": array(_REASON, description="The reasons. Every quotation occurs word for word in the data."),
            "note": text("Same maker, same size.", shortest=0),
            "judged_at": timestamp(),
        },
        optional=("choice", "confidence", "note"),
    ),
)
_SIDE = named("match_side", record(None, {"id": id_of("var"), "product": id_of("prod")}))


def _side(id: str) -> Mapping[str, Any]:
    return {"id": id, "product": id.replace("var_", "prod_")}


def _judgement(judgement: Judgement | None) -> Mapping[str, Any] | None:
    return {"object": "match_judgement", "reasons": [], **plain(judgement)} if judgement else None


MATCH_PAIR = Resource[MatchPair](
    "match_pair",
    {
        "id": id_of("mpr"),
        "status": enum(*PairStatus),
        "probability": number(
            0.87,
            "Probability that the two are the same article: 1 / (1 + 2^-s), where s is the sum of `prior` and all weights.",
        ),
        "prior": number(-2.1, "log2 of the odds before any comparison."),
        "variants": computed(
            array(
                _SIDE,
                least=2,
                most=2,
                description="The two variants, with their products at the time of matching.",
            )
            | {"examples": [[_side("var_01J8ZQ5T3V7XK2M9RB4CDW"), _side("var_01J8ZQ5T3V7XK2M9RB4CDX")]]},
            lambda pair, _: [
                {"id": pair.left, "product": pair.left_product},
                {"id": pair.right, "product": pair.right_product},
            ],
        ),
        "evidence": parts(
            _EVIDENCE,
            lambda pair: pair.evidence,
            "The evidence for and against a match. The sum of `prior` and the weights is the log2 of the odds.",
        ),
        "conflicts": array(
            CONFLICT,
            description="Contradictory values. A pair with any of them is merged only by a user.",
        ),
        "judgement": optional(computed(JUDGEMENT, lambda pair, _: _judgement(pair.judgement))),
        "merge": optional(id_of("mrg", "The merge of the two variants, if the pair is merged.")),
        "held": boolean(False, "A user has undone the pair's merge or dismissal, so only a user can decide it."),
        "created_at": timestamp(),
        "updated_at": timestamp(),
    },
    path="/v1/match-pairs/{id}",
    description="Two variants of different sources that may be the same article.",
)
MERGE = Resource[Merge](
    "merge",
    {
        "id": id_of("mrg"),
        "status": enum(*MergeStatus),
        "kind": enum(*MergeKind),
        "survivor": text("var_01J8ZQ5T3V7XK2M9RB4CDW", description="The variant or product that is shown for both."),
        "merged": text(
            "var_01J8ZQ5T3V7XK2M9RB4CDX", description="The variant or product that is merged into the survivor."
        ),
        "pair": optional(id_of("mpr", "The match pair of a merge of variants; omitted for merges of products.")),
        "decided_by": enum(*DecidedBy),
        "reason": optional(text("Their variants are the same articles.", shortest=0)),
        "rests_on": array(
            id_of("mrg"),
            description="The merges that this merge depends on. While this merge exists, undoing one of them is refused, or, if this is a merge of products, undoes this one too.",
        ),
        "created_at": timestamp(),
        "undone_at": optional(timestamp()),
    },
    path="/v1/merges/{id}",
    description="Two variants or products that are shown as one.",
)


def _confidence(description: str) -> Schema:
    return number(0.95, description) | {"minimum": LEAST_SURE, "maximum": 1}


JUDGE_SETTINGS = Resource[JudgeSettings](
    "judge_settings",
    {
        "enabled": changeable(boolean(False, "Whether a model judges open match pairs.")),
        "model": optional(
            changeable(
                text("small-1", longest=100, description="The model; omitted if it is the service's default."),
                nullable(text("small-1", longest=100, description="Null selects the service's default model.")),
            )
        ),
        "auto_merge_at": changeable(
            _confidence("Minimum confidence at which the judgement `same` merges a pair without conflicts.")
        ),
        "auto_dismiss_at": changeable(
            _confidence("Minimum confidence at which the judgement `different` dismisses a pair.")
        ),
        "daily_budget_micros": changeable(
            integer(
                1_000_000,
                least=0,
                most=MOST_BUDGET,
                description="Maximum cost per day (UTC), in millionths of a US dollar.",
            )
        ),
    },
    path="/v1/matching/judge-settings",
    description="Settings of automatic judgement in this mode.",
)
