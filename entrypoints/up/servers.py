"""Embedded servers, over Unix sockets only: PostgreSQL and Valkey."""

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Final
from urllib.parse import quote

from entrypoints.errors import UpError
from entrypoints.up import binaries
from entrypoints.up.directory import socket_directory
from entrypoints.up.process import Part, Process, before_exec

SETTINGS: Final[dict[str, str]] = tomllib.loads(files(__package__).joinpath("postgres.toml").read_text("utf-8"))
_START_TIMEOUT = 60.0
_VALKEY_TIMEOUT = 20.0
_STATE_LINE = 7
"""Index of the line of postmaster.pid that contains `ready`."""
_STILL_IN_USE = ("pre-existing shared memory block", "lock file", "Address already in use", "is already in use")
NOBODY = 65534
"""User and group of the servers if the supervisor is root (PostgreSQL refuses to run as root)."""
HERE = "/proc/self/cwd"
"""Path of the data directory for a server that cannot access it by name: its working directory."""

_INITDB = (
    "--username=postgres",
    "--auth=trust",
    "--encoding=UTF8",
    "--locale-provider=builtin",
    "--locale=C.UTF-8",
    "--no-sync",
    "--no-instructions",
)
_ROLE_AND_DATABASE = b"CREATE ROLE joinery LOGIN CREATEDB CREATEROLE\nCREATE DATABASE joinery OWNER joinery\n"


class Cluster:
    """PostgreSQL data directory, and the user that its server runs as (None: this one)."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.user: int | None = None
        if os.geteuid() == 0:
            self.user = (self.path.stat().st_uid if self.path.exists() else 0) or NOBODY
        self.home = binaries.postgres_home()
        if self.user is not None:
            self.home = binaries.reachable_home(self.home)

    def argument(self, path: Path) -> str:
        """Return the path of `path`, the working directory, as an argument of the server."""
        return str(path) if self.user is None or binaries.open_to_all(path.parent) else HERE

    def program(self, name: str) -> str:
        """Return the path of a PostgreSQL program."""
        return str(self.home / "bin" / name)

    async def ensure(self) -> None:
        """Create the cluster if it does not exist.

        Raises:
            UpError: The cluster is of another version or user, or the directory contains other files.
        """
        version = self.path / "PG_VERSION"
        if version.is_file():
            self._check(version.read_text(encoding="ascii").strip())
            return
        if self.path.exists() and any(self.path.iterdir()):
            raise UpError(
                f"{self.path} is not empty and contains no database. Move its files, or choose another directory "
                "with --data-dir."
            )
        await self._create()

    def pid_lines(self) -> list[str]:
        """Return the lines of postmaster.pid."""
        try:
            return (self.path / "postmaster.pid").read_text(encoding="utf-8").split("\n")
        except OSError:
            return []

    def _check(self, major: str) -> None:
        if major != binaries.POSTGRES_MAJOR:
            raise UpError(
                f"The database in {self.path} was created by PostgreSQL {major}, but this Joinery contains PostgreSQL "
                f"{binaries.POSTGRES_MAJOR}. Dump it with pg_dump {major} and load it into a new --data-dir, or set "
                "JOINERY_DATABASE_URL to a server of that version."
            )
        owner = self.path.stat().st_uid
        if os.geteuid() not in (0, owner):
            raise UpError(
                f"The database in {self.path} belongs to another user (ID {owner}). Start Joinery as that user, or "
                "choose another directory with --data-dir."
            )

    async def _create(self) -> None:
        fresh = self.path.with_name(self.path.name + ".new")
        if fresh.exists():
            shutil.rmtree(fresh)
        fresh.mkdir(mode=0o700, parents=True)
        if self.user is not None:
            os.chown(fresh, self.user, self.user)
        directory_argument = self.argument(fresh)
        await self._run([self.program("initdb"), "--pgdata", directory_argument, *_INITDB], fresh, b"")
        await self._run(
            [self.program("postgres"), "--single", "-D", directory_argument, "postgres"], fresh, _ROLE_AND_DATABASE
        )
        if self.path.exists():
            self.path.rmdir()
        fresh.rename(self.path)

    async def _run(self, argv: Sequence[str], directory: Path, text: bytes) -> None:
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment(),
            preexec_fn=before_exec(signal.SIGKILL, user=self.user, directory=directory),
        )
        try:
            output, _ = await process.communicate(text)
        finally:
            if process.returncode is None:
                process.kill()
        if process.returncode != 0:
            raise _start_error(self.path, output.decode("utf-8", "replace"))


def environment() -> dict[str, str]:
    """Return the complete environment of PostgreSQL's programs."""
    return {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}


def _start_error(path: Path, output: str) -> UpError:
    """Summarise PostgreSQL's output in one error."""
    if "No space left on device" in output or "Disk quota exceeded" in output:
        return UpError(f"The disk of {path} is full. Free some space, or choose another disk with --data-dir.")
    lines = [line for line in output.splitlines() if line.strip()]
    complaints = [line for line in lines if "FATAL" in line or "PANIC" in line or "error:" in line]
    last = (complaints or lines or ["no output"])[-1].strip()
    return UpError(
        f"The embedded PostgreSQL did not start ({last}). See its log {path.parent / 'log' / 'postgres.log'}."
    )


class _Server(Part):
    """A server of the data directory `home`, with its own socket folder and its log in `home`/log."""

    sockets: Path
    """The socket folder; set by `start`."""

    def __init__(self, name: str, home: Path) -> None:
        self.home = home.absolute()
        super().__init__(name, self.home / "log" / f"{name}.log")

    def make_sockets(self, user: int | None = None) -> None:
        """Create the folders of the log and of the socket, which `user` can access."""
        self.log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.sockets = socket_directory(self.home, self.name, user)

    async def stop(self) -> None:
        """Stop the server and remove its empty socket folder."""
        await super().stop()
        if hasattr(self, "sockets"):
            with contextlib.suppress(OSError):
                self.sockets.rmdir()


async def _wait_until_serving(process: Process, serves: Callable[[], Awaitable[bool]], until: float) -> bool:
    """Wait until the server accepts connections; return False if it ends or the time is up."""
    while process.ended() is None and time.monotonic() < until:
        if await serves():
            return True
        await asyncio.sleep(0.005)
    return False


class Postgres(_Server):
    """PostgreSQL server of the data directory `home`: cluster in `home`/postgres, log in `home`/log/postgres.log.

    >>> postgres = Postgres(Path("/var/lib/joinery"))
    >>> process = await postgres.start()
    >>> postgres.url()
    'postgresql://joinery@/joinery?host=%2Fvar%2Flib%2Fjoinery%2Frun%2Fpostgres'
    """

    gentle = signal.SIGINT
    grace = 30.0

    def __init__(self, home: Path, settings: Mapping[str, str] | None = None) -> None:
        super().__init__("postgres", home)
        self._settings = {**SETTINGS, **(settings or {})}

    def url(self, database: str = "joinery", user: str = "joinery") -> str:
        """Return the connection URL; role `joinery` owns database `joinery`, `postgres` is the superuser."""
        return f"postgresql://{quote(user)}@/{quote(database)}?host={quote(str(self.sockets), safe='')}"

    async def start(self) -> Process:
        """Create the database if needed and start its server; return when it accepts connections."""
        cluster = Cluster(self.home / "postgres")
        self.make_sockets(cluster.user)
        await cluster.ensure()
        await _remove_leftovers(cluster, self.sockets)
        argv = [cluster.program("postgres"), "-D", cluster.argument(cluster.path)]
        for name, value in {**self._settings, "unix_socket_directories": str(self.sockets)}.items():
            argv += ["-c", f"{name}={value}"]
        until = time.monotonic() + _START_TIMEOUT
        while True:
            process = self.process = Process(
                argv, environment(), self.log, death=signal.SIGINT, user=cluster.user, directory=cluster.path
            )

            async def serves(pid: str = str(process.pid)) -> bool:
                lines = cluster.pid_lines()
                return lines[:1] == [pid] and [line.strip() for line in lines[_STATE_LINE:]][:1] == ["ready"]

            if await _wait_until_serving(process, serves, until):
                return process
            await process.stop(signal.SIGINT, 5.0)
            output = process.output()
            if time.monotonic() > until or not any(words in output for words in _STILL_IN_USE):
                await self.stop()
                raise _start_error(cluster.path, output)
            await asyncio.sleep(0.1)


async def _remove_leftovers(cluster: Cluster, sockets: Path) -> None:
    """Remove remains of a killed supervisor; the directory is locked by this process, so they are not in use."""
    first = "".join(cluster.pid_lines()[:1]).strip()
    pid = int(first) if first.isdigit() else 0
    if pid and _is_server_of(pid, cluster):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGINT)
        until = time.monotonic() + Postgres.grace
        while _is_server_of(pid, cluster) and time.monotonic() < until:
            await asyncio.sleep(0.01)
    elif pid and _exists(pid):  # another process has this ID, and PostgreSQL would take it for a server
        (cluster.path / "postmaster.pid").unlink(missing_ok=True)
        for path in sockets.glob(".s.PGSQL.*"):
            path.unlink(missing_ok=True)


def _is_server_of(pid: int, cluster: Cluster) -> bool:
    """Return whether the process is a server of this directory (its ID may have been reused)."""
    if sys.platform == "linux":
        try:
            return Path(f"/proc/{pid}/cwd").samefile(cluster.path)
        except OSError:
            return False
    return _exists(pid)


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


class Valkey(_Server):
    """Valkey server of a data directory; contains no data that is not in the database."""

    grace = 5.0

    def __init__(self, home: Path) -> None:
        super().__init__("valkey", home)

    def url(self) -> str:
        """Return the connection URL (`unix://…`)."""
        return f"unix://{self.sockets / 'valkey.sock'}"

    async def start(self) -> Process:
        """Start the server without data; return when it accepts connections."""
        self.make_sockets()
        socket = self.sockets / "valkey.sock"
        socket.unlink(missing_ok=True)
        options = {
            "--port": "0",
            "--unixsocket": str(socket),
            "--unixsocketperm": "700",
            "--save": "",
            "--appendonly": "no",
            "--daemonize": "no",
            "--dir": str(self.home),
            "--loglevel": "warning",
            "--logfile": "",
        }
        argv = [str(binaries.valkey_program()), *(word for pair in options.items() for word in pair)]
        env = {"PATH": os.defpath, "LC_ALL": "C"}
        process = self.process = Process(argv, env, self.log, death=signal.SIGTERM)
        if await _wait_until_serving(process, lambda: _responds(socket), time.monotonic() + _VALKEY_TIMEOUT):
            return process
        await self.stop()
        raise UpError(f"The embedded Valkey did not start ({process.last_line()}). See {self.log}.")


async def _responds(socket: Path) -> bool:
    try:
        reader, writer = await asyncio.open_unix_connection(str(socket))
    except OSError:
        return False
    try:
        writer.write(b"PING\r\n")
        return (await reader.readline()).startswith(b"+PONG")
    except OSError:
        return False
    finally:
        writer.close()
