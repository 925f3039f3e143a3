"""`joinery up` from the outside: a supervisor that starts, monitors and stops real and fake processes."""

import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from entrypoints.errors import UpError
from entrypoints.up.directory import read_run_file

FAKE_SERVICES = Path(__file__).with_name("fake_services.py")


class UpCommand:
    """One `joinery up`."""

    def __init__(self, data: Path, port: int = 0, kind: str = "usual", **env: str) -> None:
        self.data = data
        self.process = subprocess.Popen(
            [sys.executable, str(FAKE_SERVICES), str(data), str(port), kind],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**{name: value for name, value in os.environ.items() if not name.startswith("JOINERY_")}, **env},
            start_new_session=True,
        )
        self.lines: list[str] = []

    def wait_for_line(self, words: str) -> str:
        """Return the line with these words, once it is printed."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line)
            if words in line:
                return line
        raise AssertionError(f"never said {words!r}: {self.lines}")

    def wait_until_ready(self) -> "UpCommand":
        self.port, self.database_url, self.redis_url = self.wait_for_line("READY").split()[1:]
        return self

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Stop the process; return its exit code."""
        self.process.send_signal(number)
        return self.list_remaining_processes()

    def list_remaining_processes(self) -> int:
        out, _ = self.process.communicate(timeout=20)
        self.lines.append(out)
        return self.process.returncode

    @property
    def read_output(self) -> str:
        return "".join(self.lines)

    def list_descendants(self) -> list[int]:
        """Return the descendants of the process."""
        out = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
        pairs = [tuple(map(int, line.split())) for line in out.splitlines()]
        found = [self.process.pid]
        for parent in found:
            found += [pid for pid, ppid in pairs if ppid == parent]
        return found[1:]


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def read_command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text()
    except FileNotFoundError:
        return ""


def wait_until(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Callable[..., UpCommand]]:
    """Return a function that starts `joinery up`; processes are stopped at the end of the test."""
    started: list[UpCommand] = []

    def start(data: Path | None = None, port: int = 0, kind: str = "usual", **env: str) -> UpCommand:
        started.append(UpCommand(data or tmp_path / "data", port, kind, **env))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.process.send_signal(signal.SIGTERM)
            one.process.send_signal(signal.SIGTERM)
            one.process.communicate(timeout=20)


def test_start_stop_and_start_again(up: Callable[..., UpCommand], tmp_path: Path) -> None:
    data = tmp_path / "data"
    first = up().wait_until_ready()
    with psycopg.connect(first.database_url) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 'Kept' AS word")
        assert connection.info.server_version // 10_000 == 18
        (owner,) = connection.execute("SELECT rolsuper FROM pg_roles WHERE rolname = current_user").fetchone() or ()
        assert owner is False
    for name in ("secret", "run.json", "lock"):
        assert stat.S_IMODE((data / name).stat().st_mode) == 0o600
    env = read_run_file(data)
    assert env["JOINERY_DATABASE_URL"] == first.database_url
    assert env["JOINERY_PORT"] == first.port
    assert len(env["JOINERY_SECRET"]) == 64
    children = first.list_descendants()
    assert first.stop() == 0
    assert (data / "stopped").read_text() == "servers there"
    assert not [pid for pid in children if is_alive(pid)]
    assert not (data / "run.json").exists()
    with pytest.raises(UpError, match="is not running"):
        read_run_file(data)

    began = time.monotonic()
    second = up().wait_until_ready()
    assert time.monotonic() - began < 5
    with psycopg.connect(second.database_url) as connection:
        assert connection.execute("SELECT word FROM kept").fetchone() == ("Kept",)
    assert read_run_file(data)["JOINERY_SECRET"] == env["JOINERY_SECRET"]
    third = up()
    assert third.list_remaining_processes() == 1
    assert f"already running on {data} (process {second.process.pid})" in third.read_output
    assert second.stop(signal.SIGINT) == 0


def test_no_process_survives_a_killed_supervisor(up: Callable[..., UpCommand]) -> None:
    first = up().wait_until_ready()
    with psycopg.connect(first.database_url) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 1 AS number")
    children = first.list_descendants()
    assert len(children) >= 4
    first.process.kill()
    again = up().wait_until_ready()
    assert not [pid for pid in children if is_alive(pid)]
    with psycopg.connect(again.database_url) as connection:
        assert connection.execute("SELECT number FROM kept").fetchone() == (1,)


def test_crashed_processes_are_restarted(up: Callable[..., UpCommand], tmp_path: Path) -> None:
    one = up().wait_until_ready()
    with psycopg.connect(one.database_url) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 1 AS number")
    marker = tmp_path / "data" / "worker.pid"
    wait_until(marker.exists)
    worker = int(marker.read_text())
    os.kill(worker, signal.SIGKILL)
    assert "worker was killed by SIGKILL and is being restarted" in one.wait_for_line("worker")
    wait_until(lambda: marker.read_text() not in ("", str(worker)))

    postmaster = int((tmp_path / "data" / "postgres" / "postmaster.pid").read_text().split()[0])
    os.kill(postmaster, signal.SIGKILL)
    assert "postgres was killed by SIGKILL and is being restarted" in one.wait_for_line("postgres")

    def kept() -> bool:
        try:
            with psycopg.connect(one.database_url) as connection:
                return connection.execute("SELECT number FROM kept").fetchone() == (1,)
        except psycopg.OperationalError:
            return False

    wait_until(kept)
    (valkey,) = [pid for pid in one.list_descendants() if read_command_line(pid).startswith("valkey")]
    os.kill(valkey, signal.SIGTERM)
    assert "valkey ended (exit code 0) and is being restarted" in one.wait_for_line("valkey")

    def answers() -> bool:
        with socket.socket(socket.AF_UNIX) as client:
            return client.connect_ex(one.redis_url.removeprefix("unix://")) == 0

    wait_until(answers)
    assert one.stop() == 0


def test_a_process_that_cannot_start_is_not_restarted(up: Callable[..., UpCommand]) -> None:
    one = up(kind="broken")
    assert one.list_remaining_processes() == 1
    assert one.read_output.splitlines()[-1].startswith(
        "joinery: api does not start (JOINERY_X is wrong: set it right.)"
    )
    assert "Traceback" not in one.read_output


def test_stopping_twice_does_not_wait(up: Callable[..., UpCommand]) -> None:
    one = up(kind="stubborn").wait_until_ready()
    one.process.send_signal(signal.SIGINT)
    one.wait_for_line("Stopping")
    began = time.monotonic()
    assert one.stop(signal.SIGINT) == 0
    assert time.monotonic() - began < 5


def test_servers_of_the_environment_replace_the_embedded_ones(up: Callable[..., UpCommand], tmp_path: Path) -> None:
    one = up(
        JOINERY_DATABASE_URL="postgresql://db.example/joinery?host=/nowhere", JOINERY_REDIS_URL="redis://cache.example"
    ).wait_until_ready()
    assert one.database_url.startswith("postgresql://db.example/")
    assert one.redis_url == "redis://cache.example"
    assert not (tmp_path / "data" / "postgres").exists()
    assert len(one.list_descendants()) == 2


def test_a_path_too_long_for_sockets(up: Callable[..., UpCommand], tmp_path: Path) -> None:
    one = up(data=tmp_path / ("long" * 25)).wait_until_ready()
    assert len(one.redis_url) < 110
    with psycopg.connect(one.database_url) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_a_taken_port(up: Callable[..., UpCommand], tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
        one = up(port=port)
        assert one.list_remaining_processes() == 1
    assert one.read_output == f"joinery: Port {port} is in use by another program. Choose another port with --port.\n"
    assert not (tmp_path / "data" / "postgres").exists()


def test_a_read_only_directory(up: Callable[..., UpCommand], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    one = up(data=tmp_path / "file" / "data")
    assert one.list_remaining_processes() == 1
    assert "is not writable (Not a directory)" in one.read_output
    assert "Traceback" not in one.read_output


def test_a_database_of_another_version(up: Callable[..., UpCommand], tmp_path: Path) -> None:
    cluster = tmp_path / "data" / "postgres"
    cluster.mkdir(parents=True)
    (cluster / "PG_VERSION").write_text("16\n")
    one = up()
    assert one.list_remaining_processes() == 1
    assert one.read_output.startswith(
        f"joinery: The database in {cluster} was created by PostgreSQL 16, but this Joinery contains "
    )
    assert "pg_dump 16" in one.read_output
    assert "Traceback" not in one.read_output


def test_a_directory_with_foreign_files(up: Callable[..., UpCommand], tmp_path: Path) -> None:
    cluster = tmp_path / "data" / "postgres"
    cluster.mkdir(parents=True)
    (cluster / "letter.txt").write_text("Dear")
    one = up()
    assert one.list_remaining_processes() == 1
    assert "is not empty and contains no database" in one.read_output
    assert (cluster / "letter.txt").read_text() == "Dear"
