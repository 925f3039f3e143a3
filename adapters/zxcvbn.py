"""How many guesses a password withstands, by zxcvbn: words and passwords by how often they are chosen, keys in a row, dates, repetitions, letters in disguise."""

import threading
from asyncio import wrap_future
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from domain.kernel.errors import Overloaded

JUDGED = 16
"""Characters that are looked at. What zxcvbn tries grows steeply with them: 16 take up to 30 ms, 32 up to a second."""
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
"""Words of this service, which are tried here first."""


class ZxcvbnGuesses:
    """PasswordGuesses (domain/people/ports.py). `waiting` passwords may wait for the one thread: what is judged side by side holds up the loop."""

    def __init__(self, *, waiting: int = 20) -> None:
        self._thread = ThreadPoolExecutor(1, "guesses")
        self._most, self._at_hand, self._lock = waiting, 0, threading.Lock()

    async def withstands(self, password: str, own: Sequence[str]) -> int:
        if self._at_hand > self._most:
            raise Overloaded(
                "Too many people set a password at this moment; try again in a few seconds.", retry_after=3
            )
        with self._lock:
            self._at_hand += 1
        future = self._thread.submit(_guesses, password[:JUDGED], [*OWN, *own])
        # It counts until the thread is done with it, whether or not anybody still waits for the answer.
        future.add_done_callback(self._done)
        return await wrap_future(future)

    def close(self) -> None:
        """End the thread, once it has done what it is doing."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _done(self, _: "Future[int]") -> None:
        with self._lock:
            self._at_hand -= 1


def _guesses(password: str, own: Sequence[str]) -> int:
    from zxcvbn import zxcvbn  # noqa: PLC0415  its lists take 0.2 s, and few processes ever ask

    return int(zxcvbn(password, user_inputs=list(own))["guesses"])
