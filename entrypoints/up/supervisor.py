"""`joinery up`: the parent of a database, a queue and the service's processes, from the first start to a clean stop."""

import asyncio
import errno
import logging
import os
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from entrypoints.up import attach, children, directory
from entrypoints.up.children import Child, Children
from entrypoints.up.directory import DataDir
from entrypoints.up.errors import UpError
from entrypoints.up.keeper import Keeper, Part, Say
from entrypoints.up.postgres import Postgres
from entrypoints.up.process import tail
from entrypoints.up.valkey import Valkey

Hook = Callable[[Mapping[str, str]], Awaitable[None]]
"""Given the children's environment."""

GIVE_UP_AFTER: Final = 5
"""Crashes in a row before the service was ever ready, after which starting is given up."""

LOG: Final = logging.getLogger("joinery.up")
PATH: Final = "/readyz"
_PAUSE: Final = 0.025
_TIMEOUT: Final = 5.0


def say(line: str) -> None:
    """Tell the operator, on standard output."""
    print(line, flush=True)


@dataclass(frozen=True, slots=True)
class UpOptions:
    """What `joinery up` is given. `port` 0 takes a free one.

    `prepare` runs once the servers are up and before any process starts (migrations); what it raises stops the start.
    `on_ready` runs once the API answers (the demo); what it raises is logged and printed, and the service goes on.
    `environment` replaces the variables that are handed on, this process's own by default.
    """

    data_dir: Path
    port: int = 8080
    demo: bool = False
    on_ready: Hook | None = None
    prepare: Hook | None = None
    children: Children = children.service
    environment: Mapping[str, str] | None = None
    say: Say = field(default=say)


def default_data_dir(env: Mapping[str, str] | None = None) -> Path:
    """`$JOINERY_DATA_DIR`, or `.joinery` in the current directory."""
    env = os.environ if env is None else env
    return Path(env.get("JOINERY_DATA_DIR") or ".joinery")


async def run(options: UpOptions) -> int:
    """Run until SIGINT, SIGTERM or SIGHUP; the exit code: 0 after a clean stop, 1 when starting was not possible.

    Must be called in the main thread: children are tied to the thread that starts them.
    """
    supervisor = _Supervisor(options)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, supervisor.ask_to_stop)
    try:
        await supervisor.run()
    except UpError as error:
        print(f"joinery: {error}", file=sys.stderr, flush=True)
        return 1
    finally:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.remove_signal_handler(number)
    return 0


class _Supervisor:
    def __init__(self, options: UpOptions) -> None:
        self._options = options
        self._say = options.say
        self._env = os.environ if options.environment is None else options.environment
        self._stop = asyncio.Event()
        self._servers: list[Keeper] = []
        self._children: list[Keeper] = []

    def ask_to_stop(self) -> None:
        """The first time: stop cleanly; the second time: do not wait for the children."""
        if self._stop.is_set():
            for keeper in self._children:
                if isinstance(keeper.part, Child):
                    keeper.part.kill()
        self._stop.set()

    async def run(self) -> None:
        """Start, watch, stop. Raises UpError."""
        with ExitStack() as claims:
            data = directory.prepare(self._options.data_dir)
            claims.callback(os.close, directory.lock(data))
            directory.refuse_half_restored(data)
            claims.callback(attach.withdraw, data)
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
        if not work.cancelled() and (error := work.exception()) is not None:
            raise error

    async def _work(self, data: DataDir, port: int) -> None:
        env = await self._start_servers(data, port)
        if self._options.prepare is not None:
            await self._options.prepare(env)
        attach.announce(data, env)
        failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        for spec in self._options.children(env):
            keeper = self._keeper(Child(spec, env, data.log / f"{spec.name}.log"), data)
            keeper.on_crash = lambda crashes, keeper=keeper: _give_up(failed, keeper, crashes)  # type: ignore[misc]
            self._children.append(keeper)
            await keeper.start()
        watching = [asyncio.create_task(keeper.keep()) for keeper in (*self._servers, *self._children)]
        try:
            await self._until_ready(port, failed)
            self._say(f"Joinery is ready at {env['JOINERY_BASE_URL']} (data in {data.path}; Ctrl-C stops it)")
            if env["JOINERY_OPERATORS_PORT"] != "0":
                self._say(f"The operators' page is at http://127.0.0.1:{env['JOINERY_OPERATORS_PORT']}")
            self._say(f"Mail for sources is taken on {env['JOINERY_MAIL_HOST']}:{env['JOINERY_MAIL_PORT']}")
            await self._announce(env)
            await asyncio.gather(*watching)
        finally:
            for task in watching:
                task.cancel()
            await asyncio.gather(*watching, return_exceptions=True)

    async def _start_servers(self, data: DataDir, port: int) -> dict[str, str]:
        database_url, redis_url = self._env.get("JOINERY_DATABASE_URL"), self._env.get("JOINERY_REDIS_URL")
        postgres, valkey = Postgres(data.path), Valkey(data.path)
        if not database_url:
            self._servers.append(self._keeper(postgres, data))
        if not redis_url:
            self._servers.append(self._keeper(valkey, data))
        for result in await asyncio.gather(*(server.start() for server in self._servers), return_exceptions=True):
            if isinstance(result, BaseException):
                raise result
        return children.environment(
            data,
            port,
            database_url=database_url or postgres.url(),
            redis_url=redis_url or valkey.url(),
            demo=self._options.demo,
            given=self._env,
        )

    def _keeper(self, part: Part, data: DataDir) -> Keeper:
        return Keeper(part, data.log / f"{part.name}.log", self._say)

    async def _until_ready(self, port: int, failed: "asyncio.Future[None]") -> None:
        ready = asyncio.ensure_future(answering(port))
        try:
            await asyncio.wait((ready, failed), return_when=asyncio.FIRST_COMPLETED)
            if failed.done():
                failed.result()
            await ready
        finally:
            ready.cancel()
            failed.cancel()

    async def _announce(self, env: Mapping[str, str]) -> None:
        if self._options.on_ready is None:
            return
        try:
            await self._options.on_ready(env)
        except Exception as error:  # the service runs: what comes on top of it must not end it
            LOG.exception("after the start")
            self._say(f"Joinery runs, but what was to follow its start failed: {error}")

    async def _stop_all(self) -> None:
        """Children together, then the servers, the last one started first."""
        if self._children:
            self._say("Stopping; Ctrl-C again ends it without waiting")
        await asyncio.gather(*(keeper.part.stop() for keeper in self._children))
        for keeper in reversed(self._servers):
            await keeper.part.stop()


def _give_up(failed: "asyncio.Future[None]", keeper: Keeper, crashes: int) -> None:
    if crashes >= GIVE_UP_AFTER and not failed.done():
        lines = tail(keeper.log).strip().splitlines()
        last = lines[-1] if lines else "it said nothing"
        failed.set_exception(UpError(f"{keeper.part.name} does not start ({last}); its log is {keeper.log}."))


def claim_port(port: int) -> int:
    """The port if it is free on the loopback address; a free one for 0. Raises UpError."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except PermissionError as error:
            raise UpError(f"Port {port} needs special rights; choose one above 1023 with --port.") from error
        except (OSError, OverflowError) as error:
            if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
                raise UpError(f"Port {port} is taken by another program; choose another with --port.") from error
            raise UpError(f"Port {port} cannot be used ({error}); choose another with --port.") from error
        return int(probe.getsockname()[1])


async def answering(port: int) -> None:
    """Return once `GET /readyz` on the loopback port answers 200."""
    while not await _answers(port):
        await asyncio.sleep(_PAUSE)


async def _answers(port: int) -> bool:
    try:
        async with asyncio.timeout(_TIMEOUT):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                writer.write(f"GET {PATH} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n".encode())
                status = (await reader.readline()).split()
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return False
    return len(status) > 1 and status[1] == b"200"
