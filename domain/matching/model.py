"""Match pairs, merges, and the settings of the judge (the job that sends open pairs to a language model)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypedDict

from domain.audit.model import AuditedFields
from domain.kernel.enums import StoredEnum

AUTO_MERGE_PROBABILITY = 0.995
"""Minimum probability at which rules merge a pair without conflict (docs/conventions.md#match-pairs)."""
MIN_STORED_PROBABILITY = 0.5
"""Minimum probability at which a pair is stored and shown to people."""
JUDGE_SETTINGS_ID = "judge"
"""The ID of a tenant's single row of judge settings."""


class PairStatus(StoredEnum):
    """Status of a match pair.

    A pair is `superseded` if one of its items was merged elsewhere, has changed so that the pair no longer matches, or
    was removed.
    """

    OPEN = "open"
    MERGED = "merged"
    DISMISSED = "dismissed"
    SUPERSEDED = "superseded"


class DecidedBy(StoredEnum):
    """Kind of actor that decided about a match pair or a merge."""

    RULES = "rules"
    JUDGE = "judge"
    PERSON = "person"
    AGENT = "agent"


class MergeKind(StoredEnum):
    """Kind of a merge: of variants, of products whose variants are merged, or of products that are variants of one product."""

    PRODUCT = "product"
    VARIANT = "variant"
    GROUP = "group"


class MergeStatus(StoredEnum):
    """Status of a merge: applied, or undone later."""

    APPLIED = "applied"
    UNDONE = "undone"


class JudgementOutcome(StoredEnum):
    """Result of a judgement.

    The pair was merged, dismissed or left open; or the model refused the request (`refused`) or answered incorrectly
    (`failed`).
    """

    MERGED = "merged"
    DISMISSED = "dismissed"
    LEFT_OPEN = "left_open"
    REFUSED = "refused"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class PairEvidence:
    """One component of the log2 odds of a pair.

    Attributes:
        comparison: The name of the comparison, or `calibration`, `rivals` (competing candidates) or `conflicts`.
        level: The number of the comparison's level; 0 for components without levels.
        weight: The contribution to the log2 odds.
        name: The name of the level, or the explanation of the component.
        left: The compared value of the left item.
        right: The compared value of the right item.
    """

    comparison: str
    level: int
    weight: float
    name: str
    left: Any = None
    right: Any = None


@dataclass(frozen=True, slots=True)
class QuotedReason:
    """One reason in a judgement: a field, and a literal quote from this field of each of the two items.

    Attributes:
        field: The name of the field.
        subject_quote: The quote from the left item, which the model knows as `subject`.
        candidate_quote: The quote from the right item, which the model knows as `candidate`.
    """

    field: str
    subject_quote: str
    candidate_quote: str


@dataclass(frozen=True, slots=True)
class Judgement:
    """Answer of a language model about a pair, with its outcome.

    Attributes:
        choice: `same`, `different` or `unsure`; None without a valid answer.
        confidence: The model's confidence from 0 to 1, or None.
        note: The explanation by the model, or the reason why there is no valid answer.
    """

    id: str
    model: str
    outcome: JudgementOutcome
    judged_at: datetime
    choice: str | None = None
    confidence: float | None = None
    reasons: tuple[QuotedReason, ...] = ()
    note: str | None = None


@dataclass(frozen=True, slots=True)
class MatchPair:
    """Two variants of different sources that may be the same item.

    Attributes:
        left: The smaller of the two variant IDs.
        left_product: The ID of the product of the left variant.
        right: The greater of the two variant IDs.
        right_product: The ID of the product of the right variant.
        prior: The prior log2 odds; the prior and the weights of the evidence add up to the log2 odds of `probability`.
        conflicts: The names of contradictory features.
        merge: The ID of the merge of the variants while the pair is merged.
        held: Whether a person undid the merge or dismissal, so that only a person may decide about the pair.
    """

    id: str
    status: PairStatus
    left: str
    left_product: str
    right: str
    right_product: str
    probability: float
    prior: float
    evidence: tuple[PairEvidence, ...]
    conflicts: tuple[str, ...]
    created_at: datetime
    updated_at: datetime
    judgement: Judgement | None = None
    merge: str | None = None
    held: bool = False

    @property
    def can_merge_by_rules(self) -> bool:
        """True if rules may merge the pair: it is certain (`is_certain`) and not held."""
        return is_certain(self.probability, self.conflicts) and not self.held


@dataclass(frozen=True, slots=True)
class PairFilter:
    """Conditions of a list of pairs; None means any.

    `variant` and `product` match pairs that contain them on either side.
    """

    status: str | None = None
    variant: str | None = None
    product: str | None = None


@dataclass(frozen=True, slots=True)
class Merge:
    """Merge of two products or variants: `merged` is shown as `survivor`.

    A merge of variants results from a pair, and a merge of products from the merges of their variants or from a decision that they
    are variants of one product.

    Attributes:
        survivor: The ID of the product or variant that is shown for both.
        merged: The ID of the product or variant that is no longer shown.
        pair: The ID of the pair from which a merge of variants results.
        rests_on: The IDs of the earlier merges on which this merge depends. A merge cannot be undone while a merge of
            variants depends on it. If a merge of variants is undone, a dependent merge of products is undone as well,
            unless other variants imply the merge of products.
    """

    id: str
    status: MergeStatus
    kind: MergeKind
    survivor: str
    merged: str
    decided_by: DecidedBy
    created_at: datetime
    pair: str | None = None
    reason: str | None = None
    rests_on: tuple[str, ...] = ()
    undone_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class MergeFilter:
    """Conditions of a list of merges; None means any.

    `survivor` and `merged` are IDs of products or variants.
    """

    status: str | None = None
    kind: str | None = None
    survivor: str | None = None
    merged: str | None = None
    pair: str | None = None


@dataclass(frozen=True, slots=True)
class JudgeSettings:
    """Settings of a tenant's judge.

    Attributes:
        enabled: Whether a model judges open pairs.
        model: The name of the model, or None for the service's default model.
        auto_merge_at: The minimum confidence for an automatic merge.
        auto_dismiss_at: The minimum confidence for an automatic dismissal.
        daily_budget_micros: The budget for a day (UTC) in millionths of a dollar.
    """

    id: str = JUDGE_SETTINGS_ID
    enabled: bool = False
    model: str | None = None
    auto_merge_at: float = 0.95
    auto_dismiss_at: float = 0.95
    daily_budget_micros: int = 1_000_000
    version: int = 1
    created_at: datetime | None = None
    updated_at: datetime | None = None


class JudgeSettingsChange(TypedDict, total=False):
    """Changes of judge settings; omitted fields stay unchanged."""

    enabled: bool
    model: str | None
    auto_merge_at: float
    auto_dismiss_at: float
    daily_budget_micros: int


@dataclass(frozen=True)
class ScoredPair:
    """Two variants with the probability of a match, before they are stored as a MatchPair."""

    left: str
    left_product: str
    right: str
    right_product: str
    probability: float
    prior: float
    evidence: tuple[PairEvidence, ...]
    conflicts: tuple[str, ...]

    @property
    def is_certain(self) -> bool:
        """True if no person needs to decide about the pair: the function `is_certain` accepts its probability."""
        return is_certain(self.probability, self.conflicts)


AUDITED_PAIR_FIELDS = AuditedFields("match_pair", ("status", "merge", "held"))
AUDITED_MERGE_FIELDS = AuditedFields(
    "merge", ("status", "kind", "survivor", "merged", "pair", "decided_by", "reason", "rests_on")
)
AUDITED_SETTINGS_FIELDS = AuditedFields(
    "judge_settings", ("enabled", "model", "auto_merge_at", "auto_dismiss_at", "daily_budget_micros")
)


def is_certain(probability: float, conflicts: Sequence[str]) -> bool:
    """Return whether a pair needs no review: it has at least AUTO_MERGE_PROBABILITY, and no conflicts."""
    return probability >= AUTO_MERGE_PROBABILITY and not conflicts


def build_pair_key(first_id: str, second_id: str) -> tuple[str, str]:
    """Return the two variant IDs of a pair in ascending order, as the key of the pair."""
    return (first_id, second_id) if first_id < second_id else (second_id, first_id)
