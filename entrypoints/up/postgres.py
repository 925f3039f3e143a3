"""Starts and stops the PostgreSQL server that comes with the package, over a Unix socket only."""

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import quote

from entrypoints.up.cluster import Cluster, environment, refusal
from entrypoints.up.directory import remove_if_empty, socket_directory
from entrypoints.up.process import Process, Program, length, tail

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
_STOP_TIMEOUT: Final = 30.0
_READY_LINE: Final = 7
_STILL_HELD: Final = ("pre-existing shared memory block", "lock file", "Address already in use", "is already in use")


class Postgres:
    """The server of one data directory `home`: cluster in `home`/postgres, log in `home`/log/postgres.log.

    >>> postgres = Postgres(Path("/var/lib/joinery"))
    >>> process = await postgres.start()
    >>> postgres.url()
    'postgresql://joinery@/joinery?host=%2Fvar%2Flib%2Fjoinery%2Frun%2Fpostgres'
    """

    name = "postgres"

    def __init__(self, home: Path, settings: Mapping[str, str] | None = None) -> None:
        self._home = home.absolute()
        self._settings = {**SETTINGS, **(settings or {})}
        self._log = self._home / "log" / "postgres.log"
        self._process: Process | None = None
        self._sockets: Path | None = None

    def url(self, database: str = "joinery", user: str = "joinery") -> str:
        """Where clients connect; role `joinery` owns database `joinery`, `postgres` is the superuser."""
        if self._sockets is None:
            raise RuntimeError("the server has not been started")
        return f"postgresql://{quote(user)}@/{quote(database)}?host={quote(str(self._sockets), safe='')}"

    async def start(self) -> Process:
        """Make the database when there is none, start its server, answer once it takes connections. Raises UpError."""
        self._log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        cluster = Cluster(self._home / "postgres")
        self._sockets = socket_directory(self._home, self.name, cluster.user)
        await cluster.ensure()
        await self._clear(cluster, self._sockets)
        until = time.monotonic() + _START_TIMEOUT
        while True:
            said = length(self._log)
            process = self._process = Process(self._program(cluster))
            if await self._ready(process, cluster, until):
                return process
            await process.stop(signal.SIGINT, 5.0)
            output = tail(self._log, said)
            if time.monotonic() > until or not any(words in output for words in _STILL_HELD):
                remove_if_empty(self._sockets)
                raise refusal(cluster.path, output)
            await asyncio.sleep(0.1)

    async def stop(self) -> None:
        """Shut down without waiting for clients; nothing that was committed is lost."""
        process, self._process = self._process, None
        if process is not None and process.ended() is None:
            await process.stop(signal.SIGINT, _STOP_TIMEOUT)
        if self._sockets is not None:
            remove_if_empty(self._sockets)

    def _program(self, cluster: Cluster) -> Program:
        settings = {**self._settings, "unix_socket_directories": str(self._sockets)}
        argv = [cluster.program("postgres"), "-D", cluster.argument(cluster.path)]
        for name, value in settings.items():
            argv += ["-c", f"{name}={value}"]
        return Program(
            self.name,
            argv,
            environment(),
            self._log,
            death=signal.SIGINT,
            user=cluster.user,
            directory=cluster.path,
        )

    async def _ready(self, process: Process, cluster: Cluster, until: float) -> bool:
        while process.ended() is None and time.monotonic() < until:
            lines = _pid_file(cluster)
            mine = lines[:1] == [str(process.pid)]
            if mine and len(lines) > _READY_LINE and lines[_READY_LINE].strip() == "ready":
                return True
            await asyncio.sleep(0.005)
        return False

    async def _clear(self, cluster: Cluster, sockets: Path) -> None:
        """See to what a killed supervisor left behind: the directory is locked by us, so none of it is in use."""
        first = _pid_file(cluster)[:1]
        pid = int(first[0]) if first and first[0].strip().isdigit() else 0
        if pid and _serves(pid, cluster):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGINT)
            until = time.monotonic() + _STOP_TIMEOUT
            while _serves(pid, cluster) and time.monotonic() < until:
                await asyncio.sleep(0.01)
        elif pid and _exists(pid):  # the number went to another process, which PostgreSQL would take for a server
            (cluster.path / "postmaster.pid").unlink(missing_ok=True)
            for path in sockets.glob(".s.PGSQL.*"):
                path.unlink(missing_ok=True)


def _pid_file(cluster: Cluster) -> list[str]:
    try:
        return (cluster.path / "postmaster.pid").read_text(encoding="utf-8").split("\n")
    except OSError:
        return []


def _serves(pid: int, cluster: Cluster) -> bool:
    """Whether the process is a server of this very directory (its number may have gone to another by now)."""
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
