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
from entrypoints.up import children, directory
from entrypoints.up.children import Children
from entrypoints.up.directory import DataDir
from entrypoints.up.process import Child, Part, Process
from entrypoints.up.servers import Postgres, Valkey

Hook = Callable[[Mapping[str, str]], Awaitable[None]]
"""Called with the processes' environment."""

MAX_CRASHES = 5
"""Consecutive crashes before the service is ready, after which the start is aborted."""
STEADY = 30.0
"""Seconds after which a component counts as stable again."""
FIRST_PAUSE = 0.25
LONGEST_PAUSE = 30.0
LOG = logging.getLogger("joinery.up")
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def _print_message(line: str) -> None:
    """Print a message for the operator on standard output."""
    print(line, flush=True)


@dataclass(frozen=True, slots=True)
class UpOptions:
    """Options of `joinery up`.

    Attributes:
            port: port of the API; 0 for a free one
            prepare: called after the servers and before the processes start (migrations); its errors abort the start
            on_ready: called when the API responds (the demo); its errors are logged and printed, and the service continues
            environment: replaces the inherited variables, by default this process's own
    """

    data_dir: Path
    port: int = 8080
    demo: bool = False
    on_ready: Hook | None = None
    prepare: Hook | None = None
    children: Children = children.service
    environment: Mapping[str, str] | None = None


def default_data_dir(env: Mapping[str, str] | None = None) -> Path:
    """Return `$JOINERY_DATA_DIR`, or `.joinery` in the current directory."""
    return Path((os.environ if env is None else env).get("JOINERY_DATA_DIR") or ".joinery")


async def run(options: UpOptions) -> int:
    """Run until SIGINT, SIGTERM or SIGHUP; return 0 after a clean stop, 1 if the start failed.

    Must be called in the main thread, because children are tied to the thread that starts them.
    """
    supervisor = _Supervisor(options)
    loop = asyncio.get_running_loop()
    for number in SIGNALS:
        loop.add_signal_handler(number, supervisor.ask_to_stop)
    try:
        await supervisor.run()
    except UpError as error:
        print(f"joinery: {error}", file=sys.stderr, flush=True)
        return 1
    finally:
        for number in SIGNALS:
            loop.remove_signal_handler(number)
    return 0


class _Supervisor:
    def __init__(self, options: UpOptions) -> None:
        self._options = options
        self._env = os.environ if options.environment is None else options.environment
        self._stop = asyncio.Event()
        self._ready = False
        self._servers: list[Part] = []
        self._children: list[Part] = []

    def ask_to_stop(self) -> None:
        """Request a clean stop; the second call kills the processes."""
        if self._stop.is_set():
            for child in self._children:
                if child.process is not None:
                    child.process.kill()
        self._stop.set()

    async def run(self) -> None:
        """Start the components, watch and stop them."""
        with ExitStack() as exit_stack:
            data = directory.prepare(self._options.data_dir)
            exit_stack.callback(os.close, directory.lock(data))
            directory.refuse_half_restored(data)
            exit_stack.callback(data.run_file.unlink, missing_ok=True)
            port = claim_port(self._options.port)
            main_task = asyncio.create_task(self._run_all(data, port))
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

    async def _run_all(self, data: DataDir, port: int) -> None:
        postgres, valkey = Postgres(data.path), Valkey(data.path)
        database_url, redis_url = self._env.get("JOINERY_DATABASE_URL"), self._env.get("JOINERY_REDIS_URL")
        embedded: list[tuple[str | None, Part]] = [(database_url, postgres), (redis_url, valkey)]
        self._servers = [server for url, server in embedded if not url]
        processes: dict[Part, Process] = {}
        started = await asyncio.gather(*(server.start() for server in self._servers), return_exceptions=True)
        for server, result in zip(self._servers, started, strict=True):
            if isinstance(result, BaseException):
                raise result
            processes[server] = result
        env = children.environment(
            data,
            port,
            database_url=database_url or postgres.url(),
            redis_url=redis_url or valkey.url(),
            demo=self._options.demo,
            given=self._env,
        )
        if self._options.prepare is not None:
            await self._options.prepare(env)
        directory.announce(data, env)
        for name, argv in self._options.children(env).items():
            child = Child(name, argv, env, data.log / f"{name}.log")
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
            await self._follow_up(env)
            await asyncio.gather(*watch_tasks)
        finally:
            for task in (ready, *watch_tasks):
                task.cancel()
            await asyncio.gather(ready, *watch_tasks, return_exceptions=True)

    async def _keep_running(self, part: Part, process: Process | None) -> None:
        """Restart a component with back-off whenever it ends, and print a message.

        Raises:
            UpError: The component crashed repeatedly before the service was ready.
        """
        clock, crashes = asyncio.get_running_loop().time, 0
        while True:
            if process is not None:
                since = clock()
                code = await process.wait()
                crashes = 1 if clock() - since > STEADY else crashes + 1
                _print_message(f"{part.name} {describe(code)} and is restarted; see its log {part.log}")
                if part in self._children and crashes >= MAX_CRASHES and not self._ready:
                    raise UpError(f"{part.name} does not start ({process.last_line()}). See its log {part.log}.")
            await asyncio.sleep(pause(crashes))
            try:
                process = await part.start()
            except (UpError, OSError) as error:
                process = None
                crashes += 1
                _print_message(f"{part.name} could not be restarted: {error}")

    async def _follow_up(self, env: Mapping[str, str]) -> None:
        if self._options.on_ready is None:
            return
        try:
            await self._options.on_ready(env)
        except Exception as error:  # an error of the follow-up must not stop the service
            LOG.exception("follow-up of the start failed")
            _print_message(f"Joinery is running, but the follow-up of its start failed: {error}")

    async def _stop_all(self) -> None:
        """Stop the processes together, then the servers in reverse order."""
        if self._children:
            _print_message("Stopping. Press Ctrl-C again to stop immediately")
        await asyncio.gather(*(child.stop() for child in self._children))
        for server in reversed(self._servers):
            await server.stop()


def pause(crashes: int) -> float:
    """Return the seconds to wait before the start after `crashes` consecutive crashes."""
    return min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(max(0, crashes - 1), 16))


def describe(code: int) -> str:
    """Describe how a process ended."""
    if code >= 0:
        return f"ended (exit code {code})"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"


def claim_port(port: int) -> int:
    """Return the port if it is free on the loopback address; a free one for 0.

    Raises:
        UpError: The port is not usable.
    """
    try:
        return children.bind(port)
    except (OSError, OverflowError) as error:
        reason = f"is not usable ({error}). Choose another one"
        if isinstance(error, PermissionError):
            reason = "requires special rights. Choose one above 1023"
        elif isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
            reason = "is used by another program. Choose another one"
        raise UpError(f"Port {port} {reason} with --port.") from error


async def _wait_until_ready(port: int) -> None:
    """Return when `GET /readyz` on the loopback port responds with 200."""
    while not await asyncio.to_thread(_is_ready, port):
        await asyncio.sleep(0.025)


def _is_ready(port: int) -> bool:
    connection = HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()
