"""The servers that come with the package, over Unix sockets only: PostgreSQL, its files, its start and its stop, and Valkey."""

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
"""The line of postmaster.pid that says `ready`, from 0."""
_STILL_HELD = ("pre-existing shared memory block", "lock file", "Address already in use", "is already in use")
NOBODY = 65534
"""The user and group that servers run as when the supervisor is root (PostgreSQL refuses to be root)."""
HERE = "/proc/self/cwd"
"""The data directory as its server names it when it may not walk there: the directory it was started in."""

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
    """A data directory of PostgreSQL and the user that its server runs as (None: this one)."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.user: int | None = None
        if os.geteuid() == 0:
            self.user = (self.path.stat().st_uid if self.path.exists() else 0) or NOBODY
        self.home = binaries.postgres_home()
        if self.user is not None:
            self.home = binaries.reachable_home(self.home)

    def argument(self, path: Path) -> str:
        """Return how the server is given the directory `path`, which it is started in."""
        return str(path) if self.user is None or binaries.open_to_all(path.parent) else HERE

    def program(self, name: str) -> str:
        """Return the path of one of PostgreSQL's programs."""
        return str(self.home / "bin" / name)

    async def ensure(self) -> None:
        """Make the cluster when there is none.

        Raises:
            UpError: There is another one, or something else.
        """
        version = self.path / "PG_VERSION"
        if version.is_file():
            self._check(version.read_text(encoding="ascii").strip())
            return
        if self.path.exists() and any(self.path.iterdir()):
            raise UpError(
                f"{self.path} is not empty and holds no database; move its files away, or choose another directory "
                "with --data-dir."
            )
        await self._make()

    def pid_lines(self) -> list[str]:
        """Return the lines of postmaster.pid."""
        try:
            return (self.path / "postmaster.pid").read_text(encoding="utf-8").split("\n")
        except OSError:
            return []

    def _check(self, major: str) -> None:
        if major != binaries.POSTGRES_MAJOR:
            raise UpError(
                f"The database in {self.path} was made by PostgreSQL {major}, and this Joinery brings PostgreSQL "
                f"{binaries.POSTGRES_MAJOR}; dump it with pg_dump {major} and load it into a fresh --data-dir, or set "
                "JOINERY_DATABASE_URL to a server of that version."
            )
        owner = self.path.stat().st_uid
        if os.geteuid() not in (0, owner):
            raise UpError(
                f"The database in {self.path} belongs to another user (id {owner}); start Joinery as that user, or "
                "choose another directory with --data-dir."
            )

    async def _make(self) -> None:
        fresh = self.path.with_name(self.path.name + ".new")
        if fresh.exists():
            shutil.rmtree(fresh)
        fresh.mkdir(mode=0o700, parents=True)
        if self.user is not None:
            os.chown(fresh, self.user, self.user)
        where = self.argument(fresh)
        await self._run([self.program("initdb"), "--pgdata", where, *_INITDB], fresh, b"")
        await self._run([self.program("postgres"), "--single", "-D", where, "postgres"], fresh, _ROLE_AND_DATABASE)
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
            raise _refusal(self.path, output.decode("utf-8", "replace"))


def environment() -> dict[str, str]:
    """Return all that PostgreSQL's programs see of the environment."""
    return {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}


def _refusal(path: Path, output: str) -> UpError:
    """Put what PostgreSQL said on its way out into one sentence."""
    if "No space left on device" in output or "Disk quota exceeded" in output:
        return UpError(f"The disk of {path} is full; free some room, or choose another disk with --data-dir.")
    lines = [line for line in output.splitlines() if line.strip()]
    complaints = [line for line in lines if "FATAL" in line or "PANIC" in line or "error:" in line]
    last = (complaints or lines or ["it said nothing"])[-1].strip()
    return UpError(
        f"The embedded PostgreSQL did not start ({last}); its log is {path.parent / 'log' / 'postgres.log'}."
    )


class _Server(Part):
    """A server of one data directory `home`: socket in a folder of its own, log in `home`/log."""

    sockets: Path
    """The folder; set by `start`."""

    def __init__(self, name: str, home: Path) -> None:
        self.home = home.absolute()
        super().__init__(name, self.home / "log" / f"{name}.log")

    def make_sockets(self, user: int | None = None) -> None:
        """Make the folders of the log and of the socket, which `user` may enter."""
        self.log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.sockets = socket_directory(self.home, self.name, user)

    async def stop(self) -> None:
        """Shut down, and leave no empty folder behind."""
        await super().stop()
        if hasattr(self, "sockets"):
            with contextlib.suppress(OSError):
                self.sockets.rmdir()


async def _serves_by(process: Process, serves: Callable[[], Awaitable[bool]], until: float) -> bool:
    """Wait until a server takes connections; return False if it ends or the time is over before."""
    while process.ended() is None and time.monotonic() < until:
        if await serves():
            return True
        await asyncio.sleep(0.005)
    return False


class Postgres(_Server):
    """The server of one data directory `home`: cluster in `home`/postgres, log in `home`/log/postgres.log.

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
        """Return where clients connect; role `joinery` owns database `joinery`, `postgres` is the superuser."""
        return f"postgresql://{quote(user)}@/{quote(database)}?host={quote(str(self.sockets), safe='')}"

    async def start(self) -> Process:
        """Make the database when there is none, start its server, return once it takes connections."""
        cluster = Cluster(self.home / "postgres")
        self.make_sockets(cluster.user)
        await cluster.ensure()
        await _clear(cluster, self.sockets)
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

            if await _serves_by(process, serves, until):
                return process
            await process.stop(signal.SIGINT, 5.0)
            output = process.output()
            if time.monotonic() > until or not any(words in output for words in _STILL_HELD):
                await self.stop()
                raise _refusal(cluster.path, output)
            await asyncio.sleep(0.1)


async def _clear(cluster: Cluster, sockets: Path) -> None:
    """Remove what a killed supervisor left behind: the directory is locked by us, so none of it is in use."""
    first = "".join(cluster.pid_lines()[:1]).strip()
    pid = int(first) if first.isdigit() else 0
    if pid and _serves(pid, cluster):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGINT)
        until = time.monotonic() + Postgres.grace
        while _serves(pid, cluster) and time.monotonic() < until:
            await asyncio.sleep(0.01)
    elif pid and _exists(pid):  # the number went to another process, which PostgreSQL would take for a server
        (cluster.path / "postmaster.pid").unlink(missing_ok=True)
        for path in sockets.glob(".s.PGSQL.*"):
            path.unlink(missing_ok=True)


def _serves(pid: int, cluster: Cluster) -> bool:
    """Return whether the process is a server of this very directory (its number may have gone to another by now)."""
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
    """The Valkey server of one data directory; it holds nothing that the database does not."""

    grace = 5.0

    def __init__(self, home: Path) -> None:
        super().__init__("valkey", home)

    def url(self) -> str:
        """Return where clients connect (`unix://…`)."""
        return f"unix://{self.sockets / 'valkey.sock'}"

    async def start(self) -> Process:
        """Start the server, empty; return once it takes connections."""
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
        if await _serves_by(process, lambda: _answers(socket), time.monotonic() + _VALKEY_TIMEOUT):
            return process
        await self.stop()
        raise UpError(f"The embedded Valkey did not start ({process.last_line()}); see {self.log}.")


async def _answers(socket: Path) -> bool:
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
