"""Password strength by zxcvbn, as an estimate of the guesses that a password withstands."""

import threading
from asyncio import wrap_future
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from domain.kernel.errors import Overloaded

JUDGED = 16
"""Number of characters that are estimated. The time grows steeply: 16 take up to 30 ms, 32 up to a second."""
OWN = (
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


class ZxcvbnGuesses:
    """PasswordGuesses (domain/people/ports.py) in one thread, since parallel estimates would delay the event loop. `waiting` passwords may queue."""

    def __init__(self, *, waiting: int = 20) -> None:
        self._thread = ThreadPoolExecutor(1, "guesses")
        self._max_pending, self._pending, self._lock = waiting, 0, threading.Lock()

    async def withstands(self, password: str, own: Sequence[str]) -> int:
        if self._pending > self._max_pending:
            raise Overloaded(
                "Too many people are setting a password right now. Try again in a few seconds.", retry_after=3
            )
        with self._lock:
            self._pending += 1
        future = self._thread.submit(_estimate_guesses, password[:JUDGED], [*OWN, *own])
        # A call counts until the thread has finished it, even if its caller was cancelled.
        future.add_done_callback(self._release)
        return await wrap_future(future)

    def close(self) -> None:
        """Stop the thread after its current call."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _release(self, _: "Future[int]") -> None:
        with self._lock:
            self._pending -= 1


def _estimate_guesses(password: str, own: Sequence[str]) -> int:
    from zxcvbn import zxcvbn  # noqa: PLC0415  loading its word lists takes 0.2 s, and few processes need them

    return int(zxcvbn(password, user_inputs=list(own))["guesses"])
