"""Match pairs, merges, and the settings of the judge."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypedDict

from domain.audit.model import Audited
from domain.kernel.enums import StoredEnum

MERGED_AT = 0.995
"""Minimum probability at which rules merge a pair without conflict (docs/conventions.md#match-pairs)."""
OFFERED_AT = 0.5
"""Minimum probability at which a pair is offered."""
SETTINGS = "judge"
"""The ID of a tenant's single row of judge settings."""


class PairStatus(StoredEnum):
    """The status of a pair. `superseded`: one of its items was merged elsewhere, changed so that they differ, or was removed."""

    OPEN = "open"
    MERGED = "merged"
    DISMISSED = "dismissed"
    SUPERSEDED = "superseded"


class DecidedBy(StoredEnum):
    """The actor that merged two items."""

    RULES = "rules"
    JUDGE = "judge"
    PERSON = "person"
    AGENT = "agent"


class MergeKind(StoredEnum):
    """The kind of merged objects."""

    PRODUCT = "product"
    VARIANT = "variant"


class MergeStatus(StoredEnum):
    """The status of a merge."""

    APPLIED = "applied"
    UNDONE = "undone"


class Outcome(StoredEnum):
    """The outcome of a judgement."""

    MERGED = "merged"
    DISMISSED = "dismissed"
    LEFT_OPEN = "left_open"
    REFUSED = "refused"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class PairEvidence:
    """One component of a pair's log2 odds: the comparison, its level (`name` in words), and both values."""

    comparison: str
    level: int
    weight: float
    name: str
    left: Any = None
    right: Any = None


@dataclass(frozen=True, slots=True)
class Quote:
    """A reason of a judgement: literal quotes from both items' data about one field."""

    field: str
    subject_quote: str
    candidate_quote: str


@dataclass(frozen=True, slots=True)
class Judgement:
    """The answer of a model about a pair, and its outcome; `confidence` from 0 to 1, `choice` is `same`, `different` or `unsure`."""

    id: str
    model: str
    outcome: Outcome
    judged_at: datetime
    choice: str | None = None
    confidence: float | None = None
    reasons: tuple[Quote, ...] = ()
    note: str | None = None


@dataclass(frozen=True, slots=True)
class MatchPair:
    """Two variants of different sources that may be the same item; `left` has the smaller id.

    `prior` and the weights of the evidence add up to the log2 odds that `probability` stands for. `merge` is the merge of
    the variants while the pair is merged. `held`: a person took its merge back, so that rules and the judge leave it alone.
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
    def merges_by_rules(self) -> bool:
        """Return whether rules may merge the pair: it is certain, and nobody has undone its merge."""
        return is_certain(self.probability, self.conflicts) and not self.held


@dataclass(frozen=True, slots=True)
class PairFilter:
    """The filter of a list of pairs; all that are set must match. `variant` and `product` match either side."""

    status: str | None = None
    variant: str | None = None
    product: str | None = None


@dataclass(frozen=True, slots=True)
class Merge:
    """A merge of two products or variants: `merged` is shown as `survivor`.

    A merge of variants was made of `pair`; a merge of products of the merges of their variants. `rests_on` are earlier merges without
    which it would not be: to undo one of them, one of variants must be undone before, one of products is undone with it.
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
    """The filter of a list of merges; `survivor` and `merged` are IDs of products or variants."""

    status: str | None = None
    kind: str | None = None
    survivor: str | None = None
    merged: str | None = None
    pair: str | None = None


@dataclass(frozen=True, slots=True)
class JudgeSettings:
    """Settings of the judge: whether a model judges pairs, its minimum confidences and its budget.

    The budget is in millionths of a dollar a day (UTC). `model` is None for the one that the service is set to.
    """

    id: str = SETTINGS
    enabled: bool = False
    model: str | None = None
    auto_merge_at: float = 0.95
    auto_dismiss_at: float = 0.95
    daily_budget_micros: int = 1_000_000
    version: int = 1
    created_at: datetime | None = None
    updated_at: datetime | None = None


class JudgeSettingsChange(TypedDict, total=False):
    """Changes of judge settings; omitted fields stay."""

    enabled: bool
    model: str | None
    auto_merge_at: float
    auto_dismiss_at: float
    daily_budget_micros: int


@dataclass(frozen=True)
class ScoredPair:
    """The score of two variants to offer, as in MatchPair."""

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
        """Return whether the pair needs no decision by a person."""
        return is_certain(self.probability, self.conflicts)


PAIR_AUDITED = Audited("match_pair", ("status", "merge", "held"))
MERGE_AUDITED = Audited("merge", ("status", "kind", "survivor", "merged", "pair", "decided_by", "reason", "rests_on"))
SETTINGS_AUDITED = Audited(
    "judge_settings", ("enabled", "model", "auto_merge_at", "auto_dismiss_at", "daily_budget_micros")
)


def is_certain(probability: float, conflicts: Sequence[str]) -> bool:
    """Return whether a pair is the same item beyond what anybody need be asked about."""
    return probability >= MERGED_AT and not conflicts


def key_of(one: str, other: str) -> tuple[str, str]:
    """Return the two IDs of a pair in ascending order."""
    return (one, other) if one < other else (other, one)
