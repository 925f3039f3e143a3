"""The JSON of match pairs, merges and the judge's settings (docs/matching.md)."""

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
_VALUE: Final[Schema] = {"description": "What it rests on, in JSON's types; left out where nothing is stated."}
_EVIDENCE = Resource[PairEvidence](
    None,
    {
        "comparison": text(
            "gtin", description="What was compared. `calibration`, `rivals` and `conflicts` are corrections."
        ),
        "level": integer(2, least=0, description="Which level was found; 0 for corrections."),
        "weight": number(6.4, "Powers of two: 1 makes a match twice as likely, -1 half as likely."),
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
            "subject_quote": text("Halden oak bench", shortest=0, description="Words of the first variant's data."),
            "candidate_quote": text("Bench HALDEN, oak", shortest=0, description="Words of the second one's."),
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
            "confidence": number(0.97, "From 0 to 1."),
            "reasons": array(_REASON, description="Every quote stands in the data word for word."),
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
            0.87, "That the two are the same item: 1 / (1 + 2^-s), s being `prior` and all weights together."
        ),
        "prior": number(-2.1, "log2 of the odds before anything is compared."),
        "variants": computed(
            array(
                _SIDE,
                least=2,
                most=2,
                description="The two, with the products that they belonged to when they were matched.",
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
            "What speaks for and against it; with `prior` the weights add up to the log2 of the odds.",
        ),
        "conflicts": array(
            CONFLICT,
            description="Facts that contradict each other: with any the pair is never merged but by a person.",
        ),
        "judgement": optional(computed(JUDGEMENT, lambda pair, _: _judgement(pair.judgement))),
        "merge": optional(id_of("mrg", "The merge of the two variants, while the pair is merged.")),
        "held": boolean(False, "A person took its merge or its dismissal back: it waits for a person's word."),
        "created_at": timestamp(),
        "updated_at": timestamp(),
    },
    path="/v1/match-pairs/{id}",
    description="Two variants of different sources that may be the same item.",
)
MERGE = Resource[Merge](
    "merge",
    {
        "id": id_of("mrg"),
        "status": enum(*MergeStatus),
        "kind": enum(*MergeKind),
        "survivor": text("var_01J8ZQ5T3V7XK2M9RB4CDW", description="The variant or product that is shown for both."),
        "merged": text("var_01J8ZQ5T3V7XK2M9RB4CDX", description="The one that answers with the survivor meanwhile."),
        "pair": optional(id_of("mpr", "The pair that it was made of; merges of products have none.")),
        "decided_by": enum(*DecidedBy),
        "reason": optional(text("Their variants are the same items.", shortest=0)),
        "rests_on": array(
            id_of("mrg"),
            description="Merges without which it would not be. Undoing one of them is refused first, or undoes this one too if it is one of products.",
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
        "enabled": changeable(boolean(False, "Whether a model judges open pairs.")),
        "model": optional(
            changeable(
                text(
                    "small-1", longest=100, description="The model that judges; the service's own where it is left out."
                ),
                nullable(text("small-1", longest=100, description="Null chooses the service's own model.")),
            )
        ),
        "auto_merge_at": changeable(
            _confidence("From this confidence on `same` merges a pair that has no conflict; otherwise it stays open.")
        ),
        "auto_dismiss_at": changeable(_confidence("From this confidence on `different` dismisses a pair.")),
        "daily_budget_micros": changeable(
            integer(
                1_000_000,
                least=0,
                most=MOST_BUDGET,
                description="What judging may cost a day (UTC), in millionths of a dollar.",
            )
        ),
    },
    path="/v1/matching/judge-settings",
    description="What the judge may do by itself, in this mode.",
)
