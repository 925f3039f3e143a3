"""Stock checks, with a result for each offer of a variant (docs/conventions.md#stock-checks)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from domain.catalogue.model import Offer
from domain.kernel.enums import StoredEnum
from domain.kernel.problems import Problem, ProblemKind
from domain.runs.model import OPEN_STATUSES, Run

MAX_OPEN_CHECKS = 20
"""Maximum number of open checks of one source."""
PAUSES = (0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
"""Seconds to wait before the first and each further reading of a check's results; four seconds in total."""
_MISSING_OFFER_FIELD = "location"
"""The field that a problem names if the source's response lacks an offer."""


class CheckStatus(StoredEnum):
    """Status of a check."""

    QUEUED = "queued"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


class CheckFault(StoredEnum):
    """Reasons for which a source was not queried, or its response did not contain the offer.

    Other failures have the error code of the run.
    """

    NOT_CHECKABLE = "not_checkable"
    SOURCE_NOT_ACTIVE = "source_not_active"
    TOO_MANY_CHECKS = "too_many_checks"
    NOT_STATED = "not_stated"


@dataclass(frozen=True, slots=True)
class CheckFailure:
    """Reason why an offer has no result: a code (a CheckFault or the error code of the run) and a sentence."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class CheckResult:
    """Stock of one offer and the progress of its check.

    If both `failure` and `checked_at` are None, the source has not responded yet. `run` is the ID of the run that queries the
    source, or None.
    """

    source: str
    offer: str
    availability: str
    quantity: int | None
    run: str | None = None
    checked_at: datetime | None = None
    failure: CheckFailure | None = None

    @property
    def is_waiting(self) -> bool:
        """True if the source has not responded yet."""
        return self.checked_at is None and self.failure is None


@dataclass(frozen=True, slots=True)
class StockCheck:
    """Check of a variant's stock at its sources, with a result for each offer that is not withdrawn."""

    id: str
    variant: str
    results: Sequence[CheckResult]

    @property
    def status(self) -> CheckStatus:
        """QUEUED until all sources have responded; then SUCCEEDED if a source returned the stock, otherwise FAILED."""
        if any(result.is_waiting for result in self.results):
            return CheckStatus.QUEUED
        answered = any(result.failure is None for result in self.results)
        return CheckStatus.SUCCEEDED if answered else CheckStatus.FAILED

    @property
    def runs(self) -> Sequence[str]:
        """The distinct IDs of the runs that query the sources."""
        return list(dict.fromkeys(result.run for result in self.results if result.run is not None))


def build_result(offer: Offer, run: Run | CheckFailure) -> CheckResult:
    """Return the result for an offer; `run` is the run that checks the offer, or the reason why there is none."""
    facts: dict[str, Any] = {
        "source": offer.source,
        "offer": offer.id,
        "availability": offer.data["availability"],
        "quantity": offer.data.get("quantity"),
    }
    if isinstance(run, CheckFailure):
        return CheckResult(**facts, failure=run)
    if run.status in OPEN_STATUSES:
        return CheckResult(**facts, run=run.id)
    failure = _find_failure(run, offer)
    return CheckResult(**facts, run=run.id, checked_at=run.finished_at if failure is None else None, failure=failure)


def _find_failure(run: Run, offer: Offer) -> CheckFailure | None:
    if run.error is not None:
        return CheckFailure(run.error.code, run.error.message)
    missing = (problem for problem in run.problems if is_missing_offer(problem, offer.id))
    return next((CheckFailure(CheckFault.NOT_STATED, problem.detail) for problem in missing), None)


def describe_missing_offers(offers: Iterable[Offer]) -> list[Problem]:
    """Return a problem for each offer that the source's response lacks. The problem's `external_id` is the offer's ID."""
    return [
        Problem(
            _MISSING_OFFER_FIELD,
            ProblemKind.MISSING,
            f"The source's response does not contain the stock at {offer.location}. The stored stock is unchanged.",
            external_id=offer.id,
        )
        for offer in offers
    ]


def is_missing_offer(problem: Problem, offer_id: str) -> bool:
    """Return whether the problem reports that the source's response lacks the offer with the ID `offer_id`."""
    return problem.field == _MISSING_OFFER_FIELD and problem.external_id == offer_id
