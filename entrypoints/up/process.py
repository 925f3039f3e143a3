"""Child processes of the supervisor, which end when the supervisor ends."""

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from adapters.processes.fork_server import die_with_parent

LOG_ROTATION_BYTES = 16 * 2**20
"""Size in bytes above which a log file is renamed to `….1` when its program starts."""
_OUTPUT_BYTES = 8192


class ChildProcess:
    """Running program in a separate session, so that Ctrl-C at a terminal reaches the supervisor only.

    Args:
        argv: The command line.
        env: The complete environment.
        log_path: The path of the log file.
        parent_death_signal: The signal that the kernel sends to the program if the supervisor dies.
        user_id: The ID of the user and group of the program; None for those of the supervisor.
        directory: The working directory; None for that of the supervisor.
    """

    def __init__(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        log_path: Path,
        *,
        parent_death_signal: signal.Signals = signal.SIGKILL,
        user_id: int | None = None,
        directory: Path | None = None,
    ) -> None:
        self._log = log_path
        with contextlib.suppress(OSError):
            if self._log.stat().st_size > LOG_ROTATION_BYTES:
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
                preexec_fn=create_child_setup(parent_death_signal, user_id=user_id, directory=directory),  # noqa: PLW1509
            )
        finally:
            os.close(output)

    @property
    def pid(self) -> int:
        """Process ID of the program."""
        return self._popen.pid

    def read_output(self) -> str:
        """Return the last 8 KiB that the program has written to its log since its start."""
        try:
            with self._log.open("rb") as file:
                file.seek(max(self._log_start, file.seek(0, os.SEEK_END) - _OUTPUT_BYTES))
                return file.read().decode("utf-8", "replace").strip()
        except OSError:
            return ""

    def read_last_line(self) -> str:
        """Return the last line that the program has written, or `no output`."""
        return self.read_output().rpartition("\n")[2] or "no output"

    def get_exit_code(self) -> int | None:
        """Return the program's exit code (the negative number of a signal that killed it); None while the program runs."""
        return self._popen.poll()

    async def wait(self) -> int:
        """Wait until the program ends, and return its exit code."""
        # a thread per process, because all are awaited at the same time
        return await asyncio.get_running_loop().run_in_executor(ThreadPoolExecutor(1), self._popen.wait)

    async def stop(self, stop_signal: signal.Signals, kill_after_seconds: float) -> None:
        """Stop the program, and kill the child processes that it leaves.

        Args:
            stop_signal: The signal that requests the stop.
            kill_after_seconds: Seconds after which a program that still runs is killed.
        """
        self._send_signal(stop_signal)
        try:
            async with asyncio.timeout(kill_after_seconds):
                await self.wait()
        except TimeoutError:
            self._send_signal(signal.SIGKILL)
            await self.wait()
        finally:
            self.kill()

    def kill(self) -> None:
        """Kill the program and its child processes."""
        self._send_signal(signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def _send_signal(self, number: signal.Signals) -> None:
        if self.get_exit_code() is None:
            with contextlib.suppress(ProcessLookupError):
                self._popen.send_signal(number)


def create_child_setup(
    parent_death_signal: signal.Signals, *, user_id: int | None = None, directory: Path | None = None
) -> Callable[[], None]:
    """Return a function that prepares a child process between fork and exec.

    Args:
        parent_death_signal: The signal that the kernel sends to the child when this process ends.
        user_id: The ID of the user and group to which the child changes; None for no change.
        directory: The working directory to which the child changes; None for no change.
    """
    parent = os.getpid()

    def prepare() -> None:
        if directory is not None:
            os.chdir(directory)
        if user_id is not None:
            os.setgroups([])
            os.setgid(user_id)
            os.setuid(user_id)
        die_with_parent(parent_death_signal, parent)

    return prepare


class UpComponent:
    """Component that the supervisor can restart: a server, or a process of the service.

    Attributes:
        name: The name in messages and of the log file.
        log_path: The path of the log file.
        process: The running program; None before the first start.
        stop_signal: The signal that requests a stop.
        stop_seconds: Seconds after the stop signal until the program is killed.
    """

    stop_signal: signal.Signals = signal.SIGTERM
    stop_seconds: float

    def __init__(self, name: str, log_path: Path) -> None:
        self.name = name
        self.log_path = log_path
        self.process: ChildProcess | None = None

    async def start(self) -> ChildProcess:
        """Start the component; return the running program when the component is ready.

        Raises:
            UpError: The component does not start.
        """
        raise NotImplementedError

    async def stop(self) -> None:
        """Stop the component, even if it is still starting."""
        if self.process is not None:
            await self.process.stop(self.stop_signal, self.stop_seconds)


class ServiceProcess(UpComponent):
    """Process of the service, such as the API or a worker."""

    stop_seconds = 15.0

    def __init__(self, name: str, argv: Sequence[str], env: Mapping[str, str], log_path: Path) -> None:
        super().__init__(name, log_path)
        self._argv, self._env = argv, env

    async def start(self) -> ChildProcess:
        """Start the process; return at once, not when the process is ready."""
        self.process = ChildProcess(self._argv, self._env, self.log_path)
        return self.process
