"""JSON of match pairs, merges and the settings of the judge (docs/matching.md)."""

from collections.abc import Mapping
from typing import Any, Final

from adapters.api_json.resource import Body, JsonResource, create_nested_list_field
from domain.kernel.json_values import to_json_value
from domain.kernel.resource import changeable, computed, optional
from domain.kernel.schema import (
    Schema,
    array,
    boolean,
    enum,
    id_schema,
    integer,
    map_schema,
    nullable,
    number,
    response_object,
    strict_object,
    text,
    timestamp,
    with_title,
)
from domain.matching.merge_plan import GROUP_SIZE_CONFLICT
from domain.matching.model import (
    DecidedBy,
    Judgement,
    JudgementOutcome,
    JudgeSettings,
    MatchPair,
    Merge,
    MergeKind,
    MergeStatus,
    PairEvidence,
    PairStatus,
)
from domain.matching.scoring import CONFLICTS
from domain.matching.usecases.judge import MIN_CONFIDENCE
from domain.matching.variant_groups import MAX_OPTION_CHARS, Grouping
from domain.usage.model import MAX_BUDGET_MICROS

CONFLICT = with_title("match_conflict", enum(*CONFLICTS, GROUP_SIZE_CONFLICT))
_VALUE: Final[Schema] = {"description": "The compared value; omitted if the variant has none."}
_EVIDENCE = JsonResource[PairEvidence](
    None,
    {
        "comparison": text(
            "gtin",
            description="Name of the comparison. `calibration` (overlapping evidence), `rivals` (competing matches) and `conflicts` are corrections of the score.",
        ),
        "level": integer(2, minimum=0, description="The comparison's level of agreement; 0 for corrections."),
        "weight": number(6.4, "log2 of the factor on the odds: 1 doubles the odds of a match, -1 halves them."),
        "name": text("same", min_length=0, description="Name of the level; for corrections, an explanation."),
        "left": optional(_VALUE | {"examples": ["4006381333931"]}),
        "right": optional(_VALUE | {"examples": ["4006381333931"]}),
    },
    title="match_evidence",
)
_REASON = with_title(
    "judgement_reason",
    response_object(
        None,
        {
            "field": text("title"),
            "subject_quote": text(
                "Halden oak bench",
                min_length=0,
                description="Verbatim excerpt from the data of the pair's first variant.",
            ),
            "candidate_quote": text(
                "Bench HALDEN, oak",
                min_length=0,
                description="Verbatim excerpt from the data of the pair's second variant.",
            ),
        },
    ),
)
JUDGEMENT = with_title(
    "match_judgement",
    response_object(
        "match_judgement",
        {
            "id": id_schema("jud"),
            "model": text("small-1"),
            "outcome": enum(*JudgementOutcome),
            "choice": enum("same", "different", "unsure"),
            "confidence": number(0.97, "The model's confidence, from 0 to 1."),
            "reasons": array(_REASON, description="The model's reasons."),
            "note": text("Same maker, same size.", min_length=0),
            "judged_at": timestamp(),
        },
        optional=("choice", "confidence", "note"),
    ),
)
_VARIANT_REFERENCE = with_title(
    "match_side", response_object(None, {"id": id_schema("var"), "product": id_schema("prod")})
)


def _render_variant_example(id: str) -> Mapping[str, Any]:
    return {"id": id, "product": id.replace("var_", "prod_")}


def _render_judgement(judgement: Judgement | None) -> Mapping[str, Any] | None:
    return {"object": "match_judgement", "reasons": [], **to_json_value(judgement)} if judgement else None


MATCH_PAIR = JsonResource[MatchPair](
    "match_pair",
    {
        "id": id_schema("mpr"),
        "status": enum(*PairStatus),
        "probability": number(
            0.87,
            "Probability that the two variants are the same article: 1 / (1 + 2^-s), where s is the sum of `prior` and all weights.",
        ),
        "prior": number(-2.1, "log2 of the odds before any comparison."),
        "variants": computed(
            array(
                _VARIANT_REFERENCE,
                min_items=2,
                max_items=2,
                description="The two variants, each with the product that contained the variant at the time of matching.",
            )
            | {
                "examples": [
                    [
                        _render_variant_example("var_01J8ZQ5T3V7XK2M9RB4CDW"),
                        _render_variant_example("var_01J8ZQ5T3V7XK2M9RB4CDX"),
                    ]
                ]
            },
            lambda pair, _: [
                {"id": pair.left, "product": pair.left_product},
                {"id": pair.right, "product": pair.right_product},
            ],
        ),
        "evidence": create_nested_list_field(
            _EVIDENCE,
            lambda pair: pair.evidence,
            "The evidence for and against a match. The sum of `prior` and the weights is the log2 of the odds.",
        ),
        "conflicts": array(
            CONFLICT,
            description="Contradictory values. A pair with any of them is merged only by a user.",
        ),
        "judgement": optional(computed(JUDGEMENT, lambda pair, _: _render_judgement(pair.judgement))),
        "merge": optional(id_schema("mrg", "The merge of the two variants, if the pair is merged.")),
        "held": boolean(
            False, "Whether a user has undone the pair's merge or dismissal, so that only a user can decide the pair."
        ),
        "created_at": timestamp(),
        "updated_at": timestamp(),
    },
    path="/v1/match-pairs/{id}",
    description="Two variants of different sources that may be the same article.",
)
MERGE = JsonResource[Merge](
    "merge",
    {
        "id": id_schema("mrg"),
        "status": enum(*MergeStatus),
        "kind": enum(*MergeKind),
        "survivor": text("var_01J8ZQ5T3V7XK2M9RB4CDW", description="The variant or product that is shown for both."),
        "merged": text(
            "var_01J8ZQ5T3V7XK2M9RB4CDX", description="The variant or product that is merged into the survivor."
        ),
        "pair": optional(
            id_schema("mpr", "The match from which a merge of variants results; omitted for merges of products.")
        ),
        "decided_by": enum(*DecidedBy),
        "reason": optional(text("The products share merged variants.", min_length=0)),
        "rests_on": array(
            id_schema("mrg"),
            description="The earlier merges on which this merge depends. If this merge combines variants, undo this merge before the "
            "earlier merges. If this merge combines products, undoing an earlier merge can also undo this merge.",
        ),
        "created_at": timestamp(),
        "undone_at": optional(timestamp()),
    },
    path="/v1/merges/{id}",
    description="Two variants or products that are shown as one.",
)


GROUPING = Body[Grouping](
    strict_object(
        {
            "title": text("Lund Table", max_length=500),
            "variants": map_schema(
                map_schema(text("Oak", max_length=MAX_OPTION_CHARS), {"Finish": "Oak"}),
                {"var_01J8ZQ5T3V7XK2M9RB4CDW": {"Finish": "Oak"}},
                "The options of each variant, by the ID of the variant.",
            ),
        },
        required=("title", "variants"),
    ),
    lambda body: Grouping(title=body["title"], variants=body["variants"]),
)


def _confidence_schema(description: str) -> Schema:
    return number(0.95, description) | {"minimum": MIN_CONFIDENCE, "maximum": 1}


JUDGE_SETTINGS = JsonResource[JudgeSettings](
    "judge_settings",
    {
        "enabled": changeable(boolean(False, "Whether a language model judges open match pairs.")),
        "model": optional(
            changeable(
                text(
                    "small-1", max_length=100, description="The language model; omitted if it is the service's default."
                ),
                nullable(
                    text("small-1", max_length=100, description="Null selects the service's default language model.")
                ),
            )
        ),
        "auto_merge_at": changeable(
            _confidence_schema("Minimum confidence at which the judgement `same` merges a pair without conflicts.")
        ),
        "auto_dismiss_at": changeable(
            _confidence_schema("Minimum confidence at which the judgement `different` dismisses a pair.")
        ),
        "daily_budget_micros": changeable(
            integer(
                1_000_000,
                minimum=0,
                maximum=MAX_BUDGET_MICROS,
                description="Cost per day (UTC), in millionths of a US dollar, above which credit is used if its settings permit.",
            )
        ),
    },
    path="/v1/matching/judge-settings",
    description="Settings of automatic judgement in this mode.",
)
