"""Processes of the supervisor: tied to its lifetime, logged, watched and stopped."""

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
"""Size in bytes from which a log is rotated (to `….1`) when its program starts."""
_TAIL = 8192


class Process:
    """A running program in its own session, so that Ctrl-C at a terminal reaches the supervisor only.

    Args:
            argv: the command line
            env: the complete environment
            log: the log file
            death: the signal that the kernel sends to the program if the supervisor dies
            user: the user and group of the program (None: those of the supervisor)
            directory: the working directory (None: that of the supervisor)

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
        """Process ID of the program."""
        return self._popen.pid

    def output(self) -> str:
        """Return the end of the program's log output."""
        try:
            with self._log.open("rb") as file:
                file.seek(max(self._log_start, file.seek(0, os.SEEK_END) - _TAIL))
                return file.read().decode("utf-8", "replace").strip()
        except OSError:
            return ""

    def last_line(self) -> str:
        """Return the last line of the output."""
        return self.output().rpartition("\n")[2] or "no output"

    def ended(self) -> int | None:
        """Return the exit code, negative for a signal, or None while the program runs."""
        return self._popen.poll()

    async def wait(self) -> int:
        """Wait for the program to end and return its exit code."""
        # a thread per process, because all are awaited at the same time
        return await asyncio.get_running_loop().run_in_executor(ThreadPoolExecutor(1), self._popen.wait)

    async def stop(self, gentle: signal.Signals, within: float) -> None:
        """Send the signal `gentle`, and kill the program after `within` seconds; its children are killed in any case."""
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
        """Kill the program and its children."""
        self._signal(signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        if self.ended() is None:
            with contextlib.suppress(ProcessLookupError):
                self._popen.send_signal(number)


def before_exec(death: signal.Signals, *, user: int | None = None, directory: Path | None = None) -> Callable[[], None]:
    """Return a function for the child between fork and exec: change to `directory` and `user`, and tie it to this process."""
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
    """A restartable component: a server, or a process of the service.

    Attributes:
            name: the name in messages and of the log file
            gentle: the signal that requests a stop
            grace: seconds until the component is killed
    """

    gentle: signal.Signals = signal.SIGTERM
    grace: float

    def __init__(self, name: str, log: Path) -> None:
        self.name = name
        self.log = log
        self.process: Process | None = None

    async def start(self) -> Process:
        """Start the component; return when it serves.

        Raises:
            UpError: The component does not start.
        """
        raise NotImplementedError

    async def stop(self) -> None:
        """Stop the component, even during its start."""
        if self.process is not None:
            await self.process.stop(self.gentle, self.grace)


class Child(Part):
    """One process of the service; it reports its readiness itself."""

    grace = 15.0

    def __init__(self, name: str, argv: Sequence[str], env: Mapping[str, str], log: Path) -> None:
        super().__init__(name, log)
        self._argv, self._env = argv, env

    async def start(self) -> Process:
        """Start the process."""
        self.process = Process(self._argv, self._env, self.log)
        return self.process
