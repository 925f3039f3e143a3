"""`joinery up`: the parent of a database, a queue and the service's processes, from the first start to a clean stop."""

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
"""Called with the children's environment."""

MAX_CRASHES = 5
"""Crashes in a row before the service was ever ready, after which starting is given up."""
STEADY = 30.0
"""Seconds after which a part counts as running well again."""
FIRST_PAUSE = 0.25
LONGEST_PAUSE = 30.0
LOG = logging.getLogger("joinery.up")
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def _say(line: str) -> None:
    """Tell the operator, on standard output."""
    print(line, flush=True)


@dataclass(frozen=True, slots=True)
class UpOptions:
    """What `joinery up` is given.

    Attributes:
        port: where the API listens; 0 takes a free one
        prepare: runs once the servers are up and before any process starts (migrations); what it raises stops the start
        on_ready: runs once the API answers (the demo); what it raises is logged and printed, and the service goes on
        environment: replaces the variables that are handed on, this process's own by default
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
    """Run until SIGINT, SIGTERM or SIGHUP; return the exit code: 0 after a clean stop, 1 when starting was not possible.

    Must be called in the main thread: children are tied to the thread that starts them.
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
        """Stop cleanly the first time; the second time, do not wait for the children."""
        if self._stop.is_set():
            for child in self._children:
                if child.process is not None:
                    child.process.kill()
        self._stop.set()

    async def run(self) -> None:
        """Start, watch, stop."""
        with ExitStack() as claims:
            data = directory.prepare(self._options.data_dir)
            claims.callback(os.close, directory.lock(data))
            directory.refuse_half_restored(data)
            claims.callback(data.run_file.unlink, missing_ok=True)
            port = claim_port(self._options.port)
            work = asyncio.create_task(self._work(data, port))
            stopped = asyncio.create_task(self._stop.wait())
            try:
                await asyncio.wait((work, stopped), return_when=asyncio.FIRST_COMPLETED)
            finally:
                work.cancel()
                stopped.cancel()
                await asyncio.wait((work, stopped))
                await self._stop_all()
        if not work.cancelled():
            work.result()

    async def _work(self, data: DataDir, port: int) -> None:
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
        watching = [asyncio.create_task(self._keep(part, process)) for part, process in processes.items()]
        ready = asyncio.create_task(_answering(port))
        try:
            await asyncio.wait((ready, *watching), return_when=asyncio.FIRST_COMPLETED)
            for task in (ready, *watching):
                if task.done():
                    task.result()
            self._ready = True
            _say(f"Joinery is ready at {env['JOINERY_BASE_URL']} (data in {data.path}; Ctrl-C stops it)")
            if env["JOINERY_OPERATORS_PORT"] != "0":
                _say(f"The operators' page is at http://127.0.0.1:{env['JOINERY_OPERATORS_PORT']}")
            _say(f"Mail for sources is taken on {env['JOINERY_MAIL_HOST']}:{env['JOINERY_MAIL_PORT']}")
            await self._follow_up(env)
            await asyncio.gather(*watching)
        finally:
            for task in (ready, *watching):
                task.cancel()
            await asyncio.gather(ready, *watching, return_exceptions=True)

    async def _keep(self, part: Part, process: Process | None) -> None:
        """Start a part again with back-off whenever it ends by itself, and say so in one line.

        Raises:
            UpError: The part has crashed again and again before the service was ever ready.
        """
        clock, crashes = asyncio.get_running_loop().time, 0
        while True:
            if process is not None:
                since = clock()
                code = await process.wait()
                crashes = 1 if clock() - since > STEADY else crashes + 1
                _say(f"{part.name} {describe(code)} and is started again; its log is {part.log}")
                if part in self._children and crashes >= MAX_CRASHES and not self._ready:
                    raise UpError(f"{part.name} does not start ({process.last_line()}); its log is {part.log}.")
            await asyncio.sleep(pause(crashes))
            try:
                process = await part.start()
            except (UpError, OSError) as error:
                process = None
                crashes += 1
                _say(f"{part.name} could not be started again: {error}")

    async def _follow_up(self, env: Mapping[str, str]) -> None:
        if self._options.on_ready is None:
            return
        try:
            await self._options.on_ready(env)
        except Exception as error:  # the service runs: what comes on top of it must not end it
            LOG.exception("after the start")
            _say(f"Joinery runs, but what was to follow its start failed: {error}")

    async def _stop_all(self) -> None:
        """Stop the children together, then the servers, the last one first."""
        if self._children:
            _say("Stopping; Ctrl-C again ends it without waiting")
        await asyncio.gather(*(child.stop() for child in self._children))
        for server in reversed(self._servers):
            await server.stop()


def pause(crashes: int) -> float:
    """Return the seconds to wait before the start after so many crashes in a row."""
    return min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(max(0, crashes - 1), 16))


def describe(code: int) -> str:
    """Say how a process ended."""
    if code >= 0:
        return f"stopped by itself (exit code {code})"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"


def claim_port(port: int) -> int:
    """Return the port if it is free on the loopback address; a free one for 0.

    Raises:
        UpError: The port cannot be used.
    """
    try:
        return children.bind(port)
    except (OSError, OverflowError) as error:
        reason = f"cannot be used ({error}); choose another"
        if isinstance(error, PermissionError):
            reason = "needs special rights; choose one above 1023"
        elif isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
            reason = "is taken by another program; choose another"
        raise UpError(f"Port {port} {reason} with --port.") from error


async def _answering(port: int) -> None:
    """Return once `GET /readyz` on the loopback port answers 200."""
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
