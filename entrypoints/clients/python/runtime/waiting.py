"""Waits for a run to end."""

import time
from typing import Any, Generic, TypeVar

from .core import Core
from .groups import AsyncGroup, Group
from .steps import Sleep, Steps
from .tables import OPEN_RUN_STATUSES

R = TypeVar("R")


def ended(core: Core, run: str, timeout: float) -> Steps[Any]:
    """The run once it has ended. Raises TimeoutError."""
    until, pause = time.monotonic() + timeout, 0.25
    while True:
        found = yield from core.call("GET", "/v1/runs/{}", (run,), needs=("status",))
        if found["status"] not in OPEN_RUN_STATUSES:
            return found
        left = until - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"{run} is still {found['status']} after {timeout:g} s.")
        yield Sleep(min(pause, left))
        pause = min(pause * 1.5, 5.0)


class WaitForRuns(Group, Generic[R]):
    """`wait` of `client.runs`."""

    def wait(self, run: str, timeout: float = 300.0) -> R:
        """The run once it has ended, well or not: see its `status`. Raises TimeoutError, JoineryError."""
        made: R = self._run(ended(self._core, run, timeout))
        return made


class AsyncWaitForRuns(AsyncGroup, Generic[R]):
    """`wait` of `client.runs`."""

    async def wait(self, run: str, timeout: float = 300.0) -> R:
        """The run once it has ended, well or not: see its `status`. Raises TimeoutError, JoineryError."""
        made: R = await self._run(ended(self._core, run, timeout))
        return made
