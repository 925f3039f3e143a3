"""When a request is sent again, how long to wait before, and what is raised when it is not."""

import random
from dataclasses import dataclass
from itertools import count

from .errors import ConnectionFailed, JoineryError, refusal
from .steps import Answer, NoResponse, Request, Send, Sleep, Steps
from .tables import IN_PROGRESS, KEPT_STATUSES, LONGEST_PAUSE, RATE_LIMITED, RETRIED_STATUSES


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """At most so many repetitions (None: for ever), which wait no longer than `max_total_delay` seconds in all."""

    retries: int | None = 4
    max_total_delay: float = 60.0
    initial_delay: float = 0.5
    max_delay: float = 8.0

    @property
    def patient(self) -> bool:
        """Whether it goes on for ever."""
        return self.retries is None

    def pause(self, tries: int, waited: float, retry_after: float | None) -> float | None:
        """Seconds until the next try, or None for no further one. Doubles each time; between half and all of that is drawn."""
        if self.retries is not None and tries >= self.retries:
            return None
        step = min(self.max_delay, self.initial_delay * 2.0 ** min(tries, 16))
        # S311: it spreads clients, and hides nothing
        pause = max(random.uniform(step / 2, step), retry_after or 0.0)  # noqa: S311
        pause = min(pause, LONGEST_PAUSE) if self.patient else pause
        return None if self.retries is not None and waited + pause > self.max_total_delay else pause


def call(request: Request, policy: RetryPolicy) -> Steps[Answer]:
    """Send it until there is an answer that counts. Raises JoineryError."""
    unclear = False
    waited = 0.0
    for tries in count():
        outcome: Answer | NoResponse = yield Send(request)
        if isinstance(outcome, Answer) and outcome.status < 300:
            return outcome
        error = _error(request, outcome)
        unclear = _is_unclear(request, outcome, error, earlier=unclear)
        pause = policy.pause(tries, waited, error.retry_after) if _is_passing(request, outcome, error, policy) else None
        if pause is None:
            error.maybe_done = unclear
            raise error from (outcome.error if isinstance(outcome, NoResponse) else None)
        waited += pause
        yield Sleep(pause, str(error), tries + 1)
    raise AssertionError  # count() has no end


def _error(request: Request, outcome: Answer | NoResponse) -> JoineryError:
    if isinstance(outcome, Answer):
        return refusal(outcome)
    address = request.url.partition("?")[0]
    return ConnectionFailed(f"No answer from {address}: {type(outcome.error).__name__}: {outcome.error}")


def _is_passing(request: Request, outcome: Answer | NoResponse, error: JoineryError, policy: RetryPolicy) -> bool:
    """Whether trying again can help and does no harm. What may have reached the server is only repeated when that is safe."""
    if isinstance(outcome, NoResponse):
        return request.repeatable or not outcome.sent
    if policy.patient and request.repeatable and (outcome.status >= 500 or outcome.status == 408):
        return True  # a follower only reads, and outlives whatever a proxy says of an outage
    if outcome.status == 429:  # refused before anything was done; without a code it is a proxy's
        return error.code in (RATE_LIMITED, None)
    arriving = request.file is not None and outcome.status == 409  # the server still has the broken try in hand
    passing = outcome.status in RETRIED_STATUSES or error.code == IN_PROGRESS or arriving
    return passing and request.repeatable


def _is_unclear(request: Request, outcome: Answer | NoResponse, error: JoineryError, *, earlier: bool) -> bool:
    """Whether the change may have been made, though this is how it ended."""
    if not request.writes:
        return False
    if isinstance(outcome, NoResponse):
        return earlier or outcome.sent
    if outcome.status >= 500 or error.code == IN_PROGRESS:
        return True
    keyed = "Idempotency-Key" in request.headers
    return earlier and not (keyed and outcome.status in KEPT_STATUSES)
