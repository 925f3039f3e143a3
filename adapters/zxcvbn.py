"""Password strength by zxcvbn: the estimated number of guesses until a password is found."""

import threading
from asyncio import wrap_future
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from domain.kernel.errors import Overloaded

MAX_ESTIMATED_CHARS = 16
"""Maximum number of characters of a password that are estimated; the rest is ignored.

The estimate of 16 characters takes up to 30 ms, of 32 up to a second.
"""
SERVICE_WORDS = (
    "joinery",
    "furniture",
    "catalogue",
    "catalog",
    "supplier",
    "vendor",
    "showroom",
    "furnituretrade",
    "interior",
)
"""Words related to this service, which attackers would try first."""


class ZxcvbnEstimator:
    """Estimator of password strength (port GuessEstimator in domain/people/ports.py), which runs in one thread.

    Args:
        max_waiting_calls: Maximum calls that wait for the thread; further calls raise Overloaded.
    """

    def __init__(self, *, max_waiting_calls: int = 20) -> None:
        # parallel estimates would delay the event loop
        self._thread = ThreadPoolExecutor(1, "guesses")
        self._max_pending, self._pending, self._lock = max_waiting_calls, 0, threading.Lock()

    async def estimate_guesses(self, password: str, personal_words: Sequence[str]) -> int:
        if self._pending > self._max_pending:
            raise Overloaded(
                "Too many people are setting a password right now. Try again in a few seconds.", retry_after=3
            )
        with self._lock:
            self._pending += 1
        future = self._thread.submit(
            _estimate_guesses, password[:MAX_ESTIMATED_CHARS], [*SERVICE_WORDS, *personal_words]
        )
        # A call counts until the thread has finished it, even if its caller was cancelled.
        future.add_done_callback(self._decrement_pending)
        return await wrap_future(future)

    def close(self) -> None:
        """Stop the thread after its current call."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _decrement_pending(self, _: "Future[int]") -> None:
        with self._lock:
            self._pending -= 1


def _estimate_guesses(password: str, personal_words: Sequence[str]) -> int:
    """Estimate how many guesses an attacker who knows `personal_words` needs to find the password."""
    from zxcvbn import zxcvbn  # noqa: PLC0415  loading its word lists takes 0.2 s, and few processes need them

    return int(zxcvbn(password, user_inputs=list(personal_words))["guesses"])
