"""Programs that the supervisor starts: tied to it, logged, watched for their end, stopped in good time."""

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from adapters.processes.fork_server import die_with_parent

LOG_LIMIT = 16 * 2**20
"""Bytes after which a log is put aside (as `….1`) when its program starts."""
_TAIL = 8192


class Process:
    """A running program, in a session of its own, so that Ctrl-C at a terminal reaches the supervisor only.

    Args:
        argv: its command line
        env: all that it sees of the environment
        log: where it writes
        death: the signal that the kernel sends it when the supervisor dies
        user: the user and group that it runs as (None: those of the supervisor)
        directory: the directory that it is started in (None: that of the supervisor)

    """

    def __init__(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        log: Path,
        *,
        death: signal.Signals = signal.SIGKILL,
        user: int | None = None,
        directory: Path | None = None,
    ) -> None:
        self._log = log
        with contextlib.suppress(OSError):
            if self._log.stat().st_size > LOG_LIMIT:
                self._log.replace(self._log.with_name(self._log.name + ".1"))
        output = os.open(self._log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            self._log_start = os.fstat(output).st_size
            self._popen = subprocess.Popen(
                list(argv),
                env=dict(env),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=before_exec(death, user=user, directory=directory),  # noqa: PLW1509
            )
        finally:
            os.close(output)

    @property
    def pid(self) -> int:
        """The program's process id."""
        return self._popen.pid

    def output(self) -> str:
        """Return the last of what the program wrote to its log."""
        try:
            with self._log.open("rb") as file:
                file.seek(max(self._log_start, file.seek(0, os.SEEK_END) - _TAIL))
                return file.read().decode("utf-8", "replace").strip()
        except OSError:
            return ""

    def last_line(self) -> str:
        """Return the last line of the output."""
        return self.output().rpartition("\n")[2] or "it said nothing"

    def ended(self) -> int | None:
        """Return the exit code, negative for a signal, or None while it runs."""
        return self._popen.poll()

    async def wait(self) -> int:
        """Return the exit code, once it ended."""
        # a thread of its own: as many processes are waited for as there are
        return await asyncio.get_running_loop().run_in_executor(ThreadPoolExecutor(1), self._popen.wait)

    async def stop(self, gentle: signal.Signals, within: float) -> None:
        """Ask the program to end; after `within` seconds end it. What it started is ended in any case."""
        self._signal(gentle)
        try:
            async with asyncio.timeout(within):
                await self.wait()
        except TimeoutError:
            self._signal(signal.SIGKILL)
            await self.wait()
        finally:
            self.kill()

    def kill(self) -> None:
        """End the program and all that it started, now."""
        self._signal(signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        if self.ended() is None:
            with contextlib.suppress(ProcessLookupError):
                self._popen.send_signal(number)


def before_exec(death: signal.Signals, *, user: int | None = None, directory: Path | None = None) -> Callable[[], None]:
    """Return what a child does between fork and exec: enter `directory`, become `user` for good, tie itself to this process."""
    parent = os.getpid()

    def prepare() -> None:
        if directory is not None:
            os.chdir(directory)
        if user is not None:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
        die_with_parent(death, parent)

    return prepare


class Part:
    """Something that is started again and again: a server, or a process of the service.

    Attributes:
        name: how messages and its log file call it
        gentle: the signal that asks it to end
        grace: seconds that it has to end by itself
    """

    gentle: signal.Signals = signal.SIGTERM
    grace: float

    def __init__(self, name: str, log: Path) -> None:
        self.name = name
        self.log = log
        self.process: Process | None = None

    async def start(self) -> Process:
        """Start it; return once it serves.

        Raises:
            UpError: It does not start.
        """
        raise NotImplementedError

    async def stop(self) -> None:
        """End it, also in the middle of a start."""
        if self.process is not None:
            await self.process.stop(self.gentle, self.grace)


class Child(Part):
    """One process of the service; it says by itself (readiness) when it serves."""

    grace = 15.0

    def __init__(self, name: str, argv: Sequence[str], env: Mapping[str, str], log: Path) -> None:
        super().__init__(name, log)
        self._argv, self._env = argv, env

    async def start(self) -> Process:
        """Start it."""
        self.process = Process(self._argv, self._env, self.log)
        return self.process
