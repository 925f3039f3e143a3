"""`joinery up`: supervisor of a database, a queue and the service's processes."""

import asyncio
import errno
import logging
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path

from entrypoints.errors import UpError
from entrypoints.up import directory, service_processes
from entrypoints.up.directory import DataDir
from entrypoints.up.process import ChildProcess, ServiceProcess, UpComponent
from entrypoints.up.servers import Postgres, Valkey
from entrypoints.up.service_processes import CommandLineBuilder

EnvironmentHook = Callable[[Mapping[str, str]], Awaitable[None]]
"""Coroutine function that is called with the environment of the service's processes."""

MAX_CRASHES = 5
"""Consecutive crashes of a process after which the start is aborted, if the service is not ready."""
CRASH_RESET_SECONDS = 30.0
"""Seconds of running after which previous crashes of a component no longer count."""
MIN_RESTART_DELAY = 0.25
"""Delay in seconds before the restart after the first crash."""
MAX_RESTART_DELAY = 30.0
"""Maximum delay in seconds before a restart."""
LOG = logging.getLogger("joinery.up")
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def _print_message(line: str) -> None:
    """Print a message for the operator on standard output."""
    print(line, flush=True)


@dataclass(frozen=True, slots=True)
class UpOptions:
    """Options of `joinery up`.

    Attributes:
        data_dir: The data directory.
        port: The port of the API; 0 for any free port.
        includes_demo: Whether JOINERY_DEMO is set to 1 for the processes.
        on_ready: Called when the service is ready. Errors are logged and printed, and the service continues.
        on_servers_ready: Called when the servers run and before the processes start. Errors abort the start.
        build_command_lines: Returns the command lines of the processes.
        environment: The environment; None for that of this process.
    """

    data_dir: Path
    port: int = 8080
    includes_demo: bool = False
    on_ready: EnvironmentHook | None = None
    on_servers_ready: EnvironmentHook | None = None
    build_command_lines: CommandLineBuilder = service_processes.build_command_lines
    environment: Mapping[str, str] | None = None


def get_default_data_dir(env: Mapping[str, str] | None = None) -> Path:
    """Return the path in JOINERY_DATA_DIR, or else `.joinery` in the current directory."""
    return Path((os.environ if env is None else env).get("JOINERY_DATA_DIR") or ".joinery")


async def run_up(options: UpOptions) -> int:
    """Run `joinery up` until SIGINT, SIGTERM or SIGHUP; return the exit code 0, or 1 if the start failed.

    Call this in the main thread.
    """
    # in the main thread, because the kernel ends child processes with the thread that started them
    supervisor = _Supervisor(options)
    loop = asyncio.get_running_loop()
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, supervisor.request_stop)
    try:
        await supervisor.run()
    except UpError as error:
        print(f"joinery: {error}", file=sys.stderr, flush=True)
        return 1
    finally:
        for number in STOP_SIGNALS:
            loop.remove_signal_handler(number)
    return 0


class _Supervisor:
    """Supervisor of the servers and the service's processes."""

    def __init__(self, options: UpOptions) -> None:
        self._options = options
        self._env = os.environ if options.environment is None else options.environment
        self._stop = asyncio.Event()
        self._ready = False
        self._servers: list[UpComponent] = []
        self._children: list[UpComponent] = []

    def request_stop(self) -> None:
        """Request a clean stop; a second call kills the processes of the service."""
        if self._stop.is_set():
            for child in self._children:
                if child.process is not None:
                    child.process.kill()
        self._stop.set()

    async def run(self) -> None:
        """Start the components, restart those that end, and stop all after `request_stop`. Raises UpError if the start fails."""
        with ExitStack() as exit_stack:
            data = directory.prepare_directory(self._options.data_dir)
            exit_stack.callback(os.close, directory.lock_directory(data))
            directory.check_restore_completed(data)
            exit_stack.callback(data.run_file.unlink, missing_ok=True)
            port = resolve_port(self._options.port)
            main_task = asyncio.create_task(self._run_components(data, port))
            stopped = asyncio.create_task(self._stop.wait())
            try:
                await asyncio.wait((main_task, stopped), return_when=asyncio.FIRST_COMPLETED)
            finally:
                main_task.cancel()
                stopped.cancel()
                await asyncio.wait((main_task, stopped))
                await self._stop_all()
        if not main_task.cancelled():
            main_task.result()

    async def _run_components(self, data: DataDir, port: int) -> None:
        """Start servers and processes, call the hooks, and restart components that end. Raises UpError."""
        postgres, valkey = Postgres(data.path), Valkey(data.path)
        database_url, redis_url = self._env.get("JOINERY_DATABASE_URL"), self._env.get("JOINERY_REDIS_URL")
        embedded: list[tuple[str | None, UpComponent]] = [(database_url, postgres), (redis_url, valkey)]
        self._servers = [server for url, server in embedded if not url]
        processes: dict[UpComponent, ChildProcess] = {}
        started = await asyncio.gather(*(server.start() for server in self._servers), return_exceptions=True)
        for server, result in zip(self._servers, started, strict=True):
            if isinstance(result, BaseException):
                raise result
            processes[server] = result
        env = service_processes.build_environment(
            data,
            port,
            database_url=database_url or postgres.build_url(),
            redis_url=redis_url or valkey.build_url(),
            includes_demo=self._options.includes_demo,
            base_environment=self._env,
        )
        if self._options.on_servers_ready is not None:
            await self._options.on_servers_ready(env)
        directory.write_run_file(data, env)
        for name, argv in self._options.build_command_lines(env).items():
            child = ServiceProcess(name, argv, env, data.log / f"{name}.log")
            self._children.append(child)
            processes[child] = await child.start()
        watch_tasks = [asyncio.create_task(self._keep_running(part, process)) for part, process in processes.items()]
        ready = asyncio.create_task(_wait_until_ready(port))
        try:
            await asyncio.wait((ready, *watch_tasks), return_when=asyncio.FIRST_COMPLETED)
            for task in (ready, *watch_tasks):
                if task.done():
                    task.result()
            self._ready = True
            _print_message(f"Joinery is ready at {env['JOINERY_BASE_URL']} (data in {data.path}; stop with Ctrl-C)")
            if env["JOINERY_OPERATORS_PORT"] != "0":
                _print_message(f"The operators' page is at http://127.0.0.1:{env['JOINERY_OPERATORS_PORT']}")
            _print_message(f"Mail for sources is received on {env['JOINERY_MAIL_HOST']}:{env['JOINERY_MAIL_PORT']}")
            await self._run_ready_hook(env)
            await asyncio.gather(*watch_tasks)
        finally:
            for task in (ready, *watch_tasks):
                task.cancel()
            await asyncio.gather(ready, *watch_tasks, return_exceptions=True)

    async def _keep_running(self, component: UpComponent, process: ChildProcess | None) -> None:
        """Restart the component whenever its program ends, with increasing delays, and print a message each time.

        Raises:
            UpError: The component crashed repeatedly before the service was ready.
        """
        clock, crashes = asyncio.get_running_loop().time, 0
        while True:
            if process is not None:
                started_at = clock()
                code = await process.wait()
                crashes = 1 if clock() - started_at > CRASH_RESET_SECONDS else crashes + 1
                _print_message(
                    f"{component.name} {describe_exit(code)} and is being restarted; see its log {component.log_path}"
                )
                if component in self._children and crashes >= MAX_CRASHES and not self._ready:
                    raise UpError(
                        f"{component.name} does not start ({process.read_last_line()}). See its log {component.log_path}."
                    )
            await asyncio.sleep(compute_restart_delay(crashes))
            try:
                process = await component.start()
            except (UpError, OSError) as error:
                process = None
                crashes += 1
                _print_message(f"{component.name} could not be restarted; another attempt follows: {error}")

    async def _run_ready_hook(self, env: Mapping[str, str]) -> None:
        """Call the option `on_ready`; log and print any error."""
        if self._options.on_ready is None:
            return
        try:
            await self._options.on_ready(env)
        except Exception as error:  # an error of the hook must not stop the service
            LOG.exception("task after the start failed")
            _print_message(
                f"Joinery is running, but a task after its start failed ({error}). Restart Joinery to retry."
            )

    async def _stop_all(self) -> None:
        """Stop the processes concurrently, then the servers in reverse order of their start."""
        if self._children:
            _print_message("Stopping. Press Ctrl-C again to stop immediately")
        await asyncio.gather(*(child.stop() for child in self._children))
        for server in reversed(self._servers):
            await server.stop()


def compute_restart_delay(crashes: int) -> float:
    """Return the delay in seconds before the next start of a component that crashed `crashes` times in a row."""
    return min(MAX_RESTART_DELAY, MIN_RESTART_DELAY * 2.0 ** min(max(0, crashes - 1), 16))


def describe_exit(code: int) -> str:
    """Describe how a process ended: with an exit code, or killed by a signal (negative code)."""
    if code >= 0:
        return f"ended (exit code {code})"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"


def resolve_port(port: int) -> int:
    """Return `port` if it is free on the loopback address, or any free port for 0.

    Raises:
        UpError: The port is not free; the message names the reason and the remedy.
    """
    try:
        return service_processes.require_free_port(port)
    except (OSError, OverflowError) as error:
        message = f"Port {port} is not usable ({error}). Choose another port with --port."
        if isinstance(error, PermissionError):
            message = f"Port {port} requires special privileges. Choose a port above 1023 with --port."
        elif isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
            message = f"Port {port} is in use by another program. Choose another port with --port."
        raise UpError(message) from error


async def _wait_until_ready(port: int) -> None:
    """Wait until the API on the loopback port is ready."""
    while not await asyncio.to_thread(_is_ready, port):
        await asyncio.sleep(0.025)


def _is_ready(port: int) -> bool:
    """Return whether `GET /readyz` on the loopback port responds with 200."""
    connection = HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()
