"""PostgreSQL server that can be killed, backed up while it runs, and restored."""

import asyncio
import contextlib
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import psycopg

from entrypoints.up.process import ChildProcess
from entrypoints.up.servers import Postgres, PostgresCluster, build_postgres_environment
from tests.flows.service_processes import wait_until
from tests.support.processes import list_descendants

_SETTINGS = {"shared_buffers": "64MB", "max_connections": "120", "checkpoint_timeout": "30s"}
_CLIENTS = """
SELECT pid FROM pg_stat_activity
WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() AND datname = current_database()
"""
UNFLUSHED = ("commit_delay = 100000", "commit_siblings = 0")
"""A commit waits for a tenth of a second before it is written: a backend killed meanwhile has not committed."""
FLUSHED = ("synchronous_standby_names = 'nobody'",)
"""A commit is written and then waits for a missing standby: a backend killed meanwhile has committed."""
_COMMITTING = {
    UNFLUSHED: _CLIENTS + " AND state = 'active' AND query = 'COMMIT' AND wait_event IS DISTINCT FROM 'SyncRep'",
    FLUSHED: _CLIENTS + " AND state = 'active' AND query = 'COMMIT' AND wait_event = 'SyncRep'",
}


class PostgresServer:
    """One data directory and its server."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._postgres = Postgres(home, _SETTINGS)
        self._process: ChildProcess | None = None

    @property
    def url(self) -> str:
        """The URL for the service."""
        return self._postgres.build_url()

    def start(self) -> None:
        """Start the server, which recovers from a crash first."""
        self._process = asyncio.run(self._postgres.start())

    def stop(self) -> None:
        """Stop the server."""
        asyncio.run(self._postgres.stop())

    def kill(self, *, whole: bool = True) -> None:
        """SIGKILL the postmaster and its children, or the postmaster only."""
        assert self._process is not None
        pids = [*list_descendants(self._process.pid)] if whole else []
        self._process._popen.kill()
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        wait_until(lambda: self._process is None or self._process.get_exit_code() is not None, "the server has ended")

    def fetch_rows(self, statement: str, **values: Any) -> list[tuple[Any, ...]]:
        """Return rows of the database, read as superuser."""
        with psycopg.connect(self._postgres.build_url(role="postgres"), autocommit=True) as connection:
            cursor = connection.execute(statement.encode(), values)
            return cursor.fetchall() if cursor.description else []

    def kill_backend(self, dice: random.Random) -> bool:
        """SIGKILL a backend with a client; return whether there was one."""
        pids = [pid for (pid,) in self.fetch_rows(_CLIENTS)]
        if pids:
            os.kill(dice.choice(pids), signal.SIGKILL)
        return bool(pids)

    def pause_commit(self, place: Sequence[str]) -> int | None:
        """Pause a commit before or after its write; return the backend's process ID."""
        self.change_settings(*place)
        until = time.monotonic() + 10
        while time.monotonic() < until:
            found = self.fetch_rows(_COMMITTING[tuple(place)])
            if found:
                return int(found[0][0])
        return None

    def change_settings(self, *settings: str) -> None:
        """Change settings of the running server; without arguments, reset all."""
        for setting in settings or ("",):
            self.fetch_rows(f"ALTER SYSTEM SET {setting}" if setting else "ALTER SYSTEM RESET ALL")
        self.fetch_rows("SELECT pg_reload_conf()")

    def reset_settings(self) -> None:
        """Wait until the server responds, and reset all settings."""

        def answers() -> bool:
            try:
                self.change_settings()
            except psycopg.OperationalError:
                return False
            return True

        wait_until(answers, "the server answers", within=60, every=0.05)

    def back_up(self, path: Path) -> None:
        """Create a base backup of the running server."""
        cluster = PostgresCluster(self.home / "postgres")
        sockets = parse_qs(urlsplit(self.url).query)["host"][0]
        command = [
            cluster.get_program_path("pg_basebackup"),
            "-h",
            sockets,
            "-U",
            "postgres",
            "-D",
            str(path),
            "-c",
            "fast",
        ]
        subprocess.run(command, check=True, env=build_postgres_environment(), capture_output=True, timeout=120)

    def restore(self, path: Path, *, recovering: bool) -> None:
        """Replace the files of the killed server by the backup. `recovering`: as from an archive, on a new timeline."""
        data = self.home / "postgres"
        owner = data.stat()
        shutil.rmtree(data)
        shutil.copytree(path, data)
        if recovering:
            (data / "recovery.signal").touch()
            with (data / "postgresql.auto.conf").open("a") as conf:
                conf.write("restore_command = 'false'\nrecovery_target_action = 'promote'\n")
        for entry in (data, *data.rglob("*")):
            os.chown(entry, owner.st_uid, owner.st_gid, follow_symlinks=False)

    def kill_process(self, pid: int) -> None:
        """SIGKILL a process of the server."""
        os.kill(pid, signal.SIGKILL)
