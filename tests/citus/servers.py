"""Servers of the cluster as local processes that are killed and restarted."""

import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from tests.support.citus import build_address


@dataclass(frozen=True)
class ClusterServer:
    """Server of the cluster with its data directory and its `pg_ctl` program."""

    host: str
    port: int
    data_directory: Path
    pg_ctl: Path

    @property
    def name(self) -> str:
        """Name of the node: host and port."""
        return f"{self.host}:{self.port}"

    def kill(self) -> None:
        """Kill all processes of the server, as a crash does."""
        pid = int((self.data_directory / "postmaster.pid").read_text().splitlines()[0])
        os.kill(pid, signal.SIGKILL)
        until = time.monotonic() + 20
        while Path(f"/proc/{pid}").exists() or _has_backends(pid):
            assert time.monotonic() < until, "it does not die"
            time.sleep(0.05)

    def start(self) -> None:
        """Start the server and wait until it accepts connections."""
        (self.data_directory / "postmaster.pid").unlink(missing_ok=True)
        owner = self.data_directory.stat().st_uid
        log = self.data_directory.parent / f"{self.port}.log"
        subprocess.run(
            [self.pg_ctl, "-D", self.data_directory, "-l", log, "-w", "-t", "60", "start"],
            check=True, user=owner, cwd=self.data_directory, stdout=subprocess.DEVNULL, env={"LC_ALL": "C", "PATH": os.environ["PATH"]},
        )  # fmt: skip


def _has_backends(pid: int) -> bool:
    """Return whether processes still use the shared memory, which prevents a restart."""
    return subprocess.run(["pgrep", "-P", str(pid)], stdout=subprocess.DEVNULL, check=False).returncode == 0


def find_server(host: str, port: int) -> ClusterServer:
    """Return the server at that address; skip the test if it is not local."""
    with psycopg.connect(build_address(host, port), autocommit=True) as connection:
        row = connection.execute("SELECT current_setting('data_directory'), pg_backend_pid()").fetchone()
        assert row is not None
        home, pid = Path(row[0]), row[1]
        if not (home / "postmaster.pid").exists() or not Path(f"/proc/{pid}/exe").exists():
            pytest.skip("the cluster is not of this machine")
        return ClusterServer(host, port, home, Path(os.readlink(f"/proc/{pid}/exe")).parent / "pg_ctl")
