"""One started program: its log, waiting for its end without a busy loop, and stopping it in good time."""

import asyncio
import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from entrypoints.up.lifeline import before_exec

LOG_LIMIT: Final = 16 * 2**20
"""Bytes after which a log is put aside (as `….1`) when its program starts."""


@dataclass(frozen=True, slots=True)
class Program:
    """What to run. `death` is what the kernel sends it when the supervisor dies; `user` and `directory` see lifeline."""

    name: str
    argv: Sequence[str]
    env: Mapping[str, str]
    log: Path
    death: signal.Signals = signal.SIGKILL
    user: int | None = None
    directory: Path | None = None


class Process:
    """A running program, in a session of its own, so that Ctrl-C at a terminal reaches the supervisor only."""

    def __init__(self, program: Program) -> None:
        with open_log(program.log) as log:
            self._popen = subprocess.Popen(
                list(program.argv),
                env=dict(program.env),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=before_exec(program.death, user=program.user, directory=program.directory),  # noqa: PLW1509
            )

    @property
    def pid(self) -> int:
        """The program's process id."""
        return self._popen.pid

    def ended(self) -> int | None:
        """The exit code, negative for a signal, or None while it runs."""
        return self._popen.poll()

    async def wait(self) -> int:
        """The exit code, once it ended."""
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[int] = loop.create_future()

        def resolve(code: int) -> None:
            if not ended.done():
                ended.set_result(code)

        def watch() -> None:
            code = self._popen.wait()
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(resolve, code)

        threading.Thread(target=watch, name=f"wait-{self.pid}", daemon=True).start()
        return await ended

    async def stop(self, gentle: signal.Signals, within: float) -> bool:
        """Ask the program to end; after `within` seconds end it and what it started. Answers whether it went by itself."""
        self._signal(gentle)
        try:
            async with asyncio.timeout(within):
                await self.wait()
        except (TimeoutError, asyncio.CancelledError) as error:
            self.kill()
            await self.wait()
            if isinstance(error, asyncio.CancelledError):
                raise
            return False
        finally:
            self._kill_group()
        return True

    def kill(self) -> None:
        """End the program and all that it started, now."""
        self._signal(signal.SIGKILL)
        self._kill_group()

    def _signal(self, number: signal.Signals) -> None:
        if self._popen.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                self._popen.send_signal(number)

    def _kill_group(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._popen.pid, signal.SIGKILL)


@contextlib.contextmanager
def open_log(path: Path) -> Iterator[int]:
    """The log's file descriptor, to be appended to; a long log is put aside first."""
    with contextlib.suppress(OSError):
        if path.stat().st_size > LOG_LIMIT:
            path.replace(path.with_name(path.name + ".1"))
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def tail(path: Path, start: int = 0, limit: int = 8192) -> str:
    """The last `limit` bytes of a log, nothing before byte `start`; empty when there is none."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(start, size - limit))
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""


def length(path: Path) -> int:
    """The log's length in bytes now; 0 when there is none."""
    try:
        return path.stat().st_size
    except OSError:
        return 0
