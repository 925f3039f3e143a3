"""Stock checks and their results for each offer of a variant (docs/conventions.md#stock-checks)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from domain.catalogue.model import Offer
from domain.kernel.enums import StoredEnum
from domain.kernel.problems import Problem, ProblemKind
from domain.runs.model import OPEN, Run

OPEN_CHECKS = 20
"""Maximum number of open checks of one source."""
PAUSES = (0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
"""Seconds between polls of a check: four in all."""
_UNSTATED = "location"


class CheckStatus(StoredEnum):
    """The status of a check."""

    QUEUED = "queued"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


class CheckFault(StoredEnum):
    """The reason why an offer's source was not asked or did not state the offer; otherwise the run's error code applies."""

    NOT_CHECKABLE = "not_checkable"
    SOURCE_NOT_ACTIVE = "source_not_active"
    TOO_MANY_CHECKS = "too_many_checks"
    NOT_STATED = "not_stated"


@dataclass(frozen=True, slots=True)
class CheckFailure:
    """The reason why an offer has no result: a code (CheckFault, or that of the run) and a sentence."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result for one offer. Without `failure` and `checked_at` the source has not responded yet.

    `run` is the run that asks the source, None if there is none.
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
        """True if the response is outstanding."""
        return self.checked_at is None and self.failure is None


@dataclass(frozen=True, slots=True)
class StockCheck:
    """A check of one variant, with a result for each offer that is not withdrawn."""

    id: str
    variant: str
    results: Sequence[CheckResult]

    @property
    def status(self) -> CheckStatus:
        """Queued while a response is outstanding; then succeeded if any source responded, otherwise failed."""
        if any(result.waits for result in self.results):
            return CheckStatus.QUEUED
        answered = any(result.failure is None for result in self.results)
        return CheckStatus.SUCCEEDED if answered else CheckStatus.FAILED

    @property
    def runs(self) -> Sequence[str]:
        """The distinct IDs of the runs that ask the sources."""
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
            f"The source's response has no stock at {offer.location}. The previous stock is kept.",
            external_id=offer.id,
        )
        for offer in offers
    ]


def is_unstated(problem: Problem, offer: str) -> bool:
    """Return whether the problem reports that the response did not contain the offer."""
    return problem.field == _UNSTATED and problem.external_id == offer
