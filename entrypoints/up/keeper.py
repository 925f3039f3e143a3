"""Keeps one part running: starts it again with back-off when it ends by itself, and says so in one line."""

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

from entrypoints.up.errors import UpError
from entrypoints.up.process import Process

STEADY: Final = 30.0
"""Seconds after which a part counts as running well again."""
FIRST_PAUSE: Final = 0.25
LONGEST_PAUSE: Final = 30.0

Say = Callable[[str], None]


class Part(Protocol):
    """Something that can be started again and again."""

    @property
    def name(self) -> str:
        """How messages call it."""
        ...

    async def start(self) -> Process:
        """Start it; answer once it serves. Raises UpError."""
        ...

    async def stop(self) -> None:
        """End it, also in the middle of a start."""
        ...


class Keeper:
    """Watches one part from its first start on."""

    def __init__(self, part: Part, log: Path, say: Say) -> None:
        self.part, self.log = part, log
        self._say = say
        self._process: Process | None = None
        self._crashes = 0
        self.on_crash: Callable[[int], None] = lambda crashes: None
        """Told of every crash and how many there were in a row."""

    async def start(self) -> None:
        """The first start, whose failure is the caller's. Raises UpError."""
        self._process = await self.part.start()

    async def keep(self) -> None:
        """Watch until cancelled."""
        clock = asyncio.get_running_loop().time
        while True:
            if self._process is not None:
                since = clock()
                code = await self._process.wait()
                self._crashes = 1 if clock() - since > STEADY else self._crashes + 1
                self._say(f"{self.part.name} {describe(code)} and is started again; its log is {self.log}")
                self.on_crash(self._crashes)
            await asyncio.sleep(pause(self._crashes))
            await self._again()

    async def _again(self) -> None:
        try:
            self._process = await self.part.start()
        except (UpError, OSError) as error:
            self._process = None
            self._crashes += 1
            self._say(f"{self.part.name} could not be started again: {error}")


def pause(crashes: int) -> float:
    """Seconds to wait before the start after so many crashes in a row."""
    return min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(max(0, crashes - 1), 16))


def describe(code: int) -> str:
    """How a process ended, in words."""
    if code >= 0:
        return f"stopped by itself (exit code {code})"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"
