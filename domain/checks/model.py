"""A stock check: what the sources of one variant were asked, and what each of its offers comes to (docs/conventions.md#stock-checks)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from domain.catalogue.model import Offer
from domain.kernel.enums import StoredEnum
from domain.kernel.problems import Problem, ProblemKind
from domain.runs.model import OPEN, Run

OPEN_CHECKS = 20
"""How many checks of one source wait at most."""
PAUSES = (0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
"""Seconds between the looks at what came of a check: four in all."""
_UNSTATED = "location"


class CheckStatus(StoredEnum):
    """Where a check stands."""

    QUEUED = "queued"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


class CheckFault(StoredEnum):
    """Why an offer's source was not asked, or its answer tells nothing of the offer; else it is the run's error code."""

    NOT_CHECKABLE = "not_checkable"
    SOURCE_NOT_ACTIVE = "source_not_active"
    TOO_MANY_CHECKS = "too_many_checks"
    NOT_STATED = "not_stated"


@dataclass(frozen=True, slots=True)
class CheckFailure:
    """Why there is no answer for an offer: a code (CheckFault, or that of the run) and a sentence."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One offer as it stands. Without `failure` and `checked_at` its source has been asked and has not answered yet.

    `run` is the run that asks, None where none does.
    """

    source: str
    offer: str
    availability: str
    quantity: int | None
    run: str | None = None
    checked_at: datetime | None = None
    failure: CheckFailure | None = None

    @property
    def waits(self) -> bool:
        """Whether the answer is still to come."""
        return self.checked_at is None and self.failure is None


@dataclass(frozen=True, slots=True)
class StockCheck:
    """A check of one variant, a result for each of its offers that is not withdrawn."""

    id: str
    variant: str
    results: Sequence[CheckResult]

    @property
    def status(self) -> CheckStatus:
        """Queued while any answer is to come; then succeeded when there was one, else failed."""
        if any(result.waits for result in self.results):
            return CheckStatus.QUEUED
        answered = any(result.failure is None for result in self.results)
        return CheckStatus.SUCCEEDED if answered else CheckStatus.FAILED

    @property
    def runs(self) -> Sequence[str]:
        """The runs that ask, each once."""
        return list(dict.fromkeys(result.run for result in self.results if result.run is not None))


def result_of(offer: Offer, run: Run | CheckFailure) -> CheckResult:
    """Return the result of an offer, by the run that checks it or by the reason why none does."""
    facts: dict[str, Any] = {
        "source": offer.source,
        "offer": offer.id,
        "availability": offer.data["availability"],
        "quantity": offer.data.get("quantity"),
    }
    if isinstance(run, CheckFailure):
        return CheckResult(**facts, failure=run)
    if run.status in OPEN:
        return CheckResult(**facts, run=run.id)
    failure = _failure(run, offer)
    return CheckResult(**facts, run=run.id, checked_at=run.finished_at if failure is None else None, failure=failure)


def _failure(run: Run, offer: Offer) -> CheckFailure | None:
    if run.error is not None:
        return CheckFailure(run.error.code, run.error.message)
    untold = (problem for problem in run.problems if is_unstated(problem, offer.id))
    return next((CheckFailure(CheckFault.NOT_STATED, problem.detail) for problem in untold), None)


def unstated(offers: Iterable[Offer]) -> list[Problem]:
    """Return the problems of a run whose response does not contain these offers, identified by offer ID."""
    return [
        Problem(
            _UNSTATED,
            ProblemKind.MISSING,
            f"The source's answer states no stock at {offer.location}; what was known of it stays.",
            external_id=offer.id,
        )
        for offer in offers
    ]


def is_unstated(problem: Problem, offer: str) -> bool:
    """Whether the problem says that the offer was not named."""
    return problem.field == _UNSTATED and problem.external_id == offer
