"""Starts the runs that read the vendors' feeds and follows them to their end, showing how far they are."""

import asyncio
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TextIO

from entrypoints.demo.api import Api
from entrypoints.demo.errors import DemoError
from entrypoints.demo.messages import progress

Run = dict[str, Any]
ENDED: Final = frozenset({"succeeded", "failed", "needs_mapping", "cancelled"})
_UNREAD: Final = frozenset({"failed", "cancelled"})
_PAUSE: Final = 0.25
STUCK_AFTER: Final = 120.0
"""Seconds without any movement after which following ends."""


@dataclass(slots=True)
class FollowedRun:
    """One stream of one source being read."""

    name: str
    source: str
    stream: str = "catalogue"
    run: Run = field(default_factory=dict)

    @property
    def ended(self) -> bool:
        """Whether there is nothing more to wait for."""
        return self.run.get("status") in ENDED


async def begin(api: Api, followed: FollowedRun) -> None:
    """Take up the stream's last run, or start one when there is none that read the feed. Raises DemoError."""
    runs = (await api.get(f"/v1/sources/{followed.source}/runs"))["data"]
    of_stream = [run for run in runs if run["stream"] == followed.stream]
    if of_stream and of_stream[0]["status"] not in _UNREAD:
        followed.run = _informative(of_stream)
        return
    path, key = f"/v1/sources/{followed.source}/runs", f"demo-run-{followed.source}-{followed.stream}-{len(of_stream)}"
    followed.run = await api.post(path, {"stream": followed.stream}, key)


def _informative(runs: Sequence[Run]) -> Run:
    """The last run; where it found the feed unchanged, the one before it that read the feed."""
    unchanged = runs[0]["status"] == "succeeded" and "unchanged_feed" in runs[0]["stats"]
    read = (run for run in runs if run["status"] == "succeeded" and "unchanged_feed" not in run["stats"])
    return next(read, runs[0]) if unchanged else runs[0]


async def follow(api: Api, runs: Sequence[FollowedRun], out: TextIO | None = None) -> None:
    """Ask until all have ended; show each change. Raises DemoError when nothing moves for two minutes."""
    board = Board(out or sys.stdout)
    moved = time.monotonic()
    while True:
        lines = [progress(followed.name, followed.run) for followed in runs]
        if board.show(lines):
            moved = time.monotonic()
        if all(followed.ended for followed in runs):
            return
        if time.monotonic() - moved > STUCK_AFTER:
            raise DemoError("The runs do not move; look at worker.log in the data directory's folder `log`.")
        await asyncio.sleep(_PAUSE)
        for followed in runs:
            if not followed.ended:
                followed.run = await api.get(f"/v1/runs/{followed.run['id']}")


class Board:
    """Lines that change: drawn over each other on a terminal, written one after the other elsewhere."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._live = out.isatty()
        self._shown: list[str] = []

    def show(self, lines: Sequence[str]) -> bool:
        """Show the lines; answers whether any is new."""
        fresh = [line for at, line in enumerate(lines) if at >= len(self._shown) or self._shown[at] != line]
        if not fresh:
            return False
        if self._live:
            up = f"\x1b[{len(self._shown)}A" if self._shown else ""
            self._out.write(up + "".join(f"\r\x1b[2K{line}\n" for line in lines))
        else:
            self._out.write("".join(f"{line}\n" for line in fresh))
        self._out.flush()
        self._shown = list(lines)
        return True
