"""The PostgreSQL server that comes with the package, over a Unix socket only: its files, its start, its stop."""

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import quote

from entrypoints.errors import UpError
from entrypoints.up import binaries
from entrypoints.up.directory import remove_if_empty, socket_directory
from entrypoints.up.process import Part, Process, Program, before_exec

SETTINGS: Final[Mapping[str, str]] = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "max_connections": "100",
    "shared_buffers": "256MB",
    "effective_cache_size": "1GB",
    "work_mem": "16MB",
    "maintenance_work_mem": "128MB",
    "jit": "off",
    "fsync": "on",
    "random_page_cost": "1.1",
    "wal_compression": "on",
    "wal_buffers": "16MB",
    "min_wal_size": "256MB",
    "max_wal_size": "2GB",
    "checkpoint_timeout": "15min",
    "autovacuum_naptime": "15s",
    "autovacuum_analyze_scale_factor": "0.05",
    "log_checkpoints": "off",
    "log_line_prefix": "%m [%p] %q%a ",
    "log_lock_waits": "on",
    "timezone": "UTC",
}

_START_TIMEOUT: Final = 60.0
_STATE_LINE: Final = 7
"""The line of postmaster.pid that says `ready`, from 0."""
_STILL_HELD: Final = ("pre-existing shared memory block", "lock file", "Address already in use", "is already in use")
NOBODY: Final = 65534
"""The user and group that servers run as when the supervisor is root (PostgreSQL refuses to be root)."""
HERE: Final = "/proc/self/cwd"
"""The data directory as its server names it when it may not walk there: the directory it was started in."""

_INITDB: Final = (
    "--username=postgres",
    "--auth=trust",
    "--encoding=UTF8",
    "--locale-provider=builtin",
    "--locale=C.UTF-8",
    "--no-sync",
    "--no-instructions",
)
_ROLE_AND_DATABASE: Final = b"CREATE ROLE joinery LOGIN CREATEDB CREATEROLE\nCREATE DATABASE joinery OWNER joinery\n"


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


class Postgres(Part):
    """The server of one data directory `home`: cluster in `home`/postgres, log in `home`/log/postgres.log.

    >>> postgres = Postgres(Path("/var/lib/joinery"))
    >>> process = await postgres.start()
    >>> postgres.url()
    'postgresql://joinery@/joinery?host=%2Fvar%2Flib%2Fjoinery%2Frun%2Fpostgres'
    """

    gentle = signal.SIGINT
    grace = 30.0

    def __init__(self, home: Path, settings: Mapping[str, str] | None = None) -> None:
        self._home = home.absolute()
        super().__init__("postgres", self._home / "log" / "postgres.log")
        self._settings = {**SETTINGS, **(settings or {})}
        self._sockets: Path | None = None

    def url(self, database: str = "joinery", user: str = "joinery") -> str:
        """Return where clients connect; role `joinery` owns database `joinery`, `postgres` is the superuser."""
        if self._sockets is None:
            raise RuntimeError("the server has not been started")
        return f"postgresql://{quote(user)}@/{quote(database)}?host={quote(str(self._sockets), safe='')}"

    async def start(self) -> Process:
        """Make the database when there is none, start its server, return once it takes connections."""
        self.log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        cluster = Cluster(self._home / "postgres")
        self._sockets = socket_directory(self._home, self.name, cluster.user)
        await cluster.ensure()
        await _clear(cluster, self._sockets)
        argv = [cluster.program("postgres"), "-D", cluster.argument(cluster.path)]
        for name, value in {**self._settings, "unix_socket_directories": str(self._sockets)}.items():
            argv += ["-c", f"{name}={value}"]
        program = Program(
            self.name, argv, environment(), self.log, death=signal.SIGINT, user=cluster.user, directory=cluster.path
        )
        until = time.monotonic() + _START_TIMEOUT
        while True:
            process = self.process = Process(program)
            if await _ready(process, cluster, until):
                return process
            await process.stop(signal.SIGINT, 5.0)
            output = process.output()
            if time.monotonic() > until or not any(words in output for words in _STILL_HELD):
                remove_if_empty(self._sockets)
                raise _refusal(cluster.path, output)
            await asyncio.sleep(0.1)

    async def stop(self) -> None:
        """Shut down without waiting for clients; nothing that was committed is lost."""
        await super().stop()
        if self._sockets is not None:
            remove_if_empty(self._sockets)


async def _ready(process: Process, cluster: Cluster, until: float) -> bool:
    while process.ended() is None and time.monotonic() < until:
        lines = cluster.pid_lines()
        if lines[:1] == [str(process.pid)] and [line.strip() for line in lines[_STATE_LINE:]][:1] == ["ready"]:
            return True
        await asyncio.sleep(0.005)
    return False


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
