"""How long `joinery up` takes to its first good answer, and what it costs to do nothing (`make bench-start`)."""

import argparse
import contextlib
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import redis

PORT = 18_997
STARTS = 5


def line(name: str, figure: str) -> None:
    """One figure."""
    print(f"{name:<50} {figure}", flush=True)


@contextlib.contextmanager
def up(data: Path) -> Iterator[tuple["subprocess.Popen[bytes]", float]]:
    """`joinery up`, ready, and the seconds that this took; stopped afterwards."""
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "entrypoints.cli.main", "up", "--data-dir", str(data), "--port", str(PORT)],
        stdout=subprocess.DEVNULL,
        env={name: value for name, value in os.environ.items() if not name.startswith("JOINERY_")},
    )
    try:
        while not _answers():
            if process.poll() is not None or time.perf_counter() - began > 60:
                raise RuntimeError("it does not start")
            time.sleep(0.005)
        yield process, time.perf_counter() - began
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(40)
        except subprocess.TimeoutExpired:
            process.kill()


def _answers() -> bool:
    """Whether /readyz answers 200."""
    try:
        with socket.create_connection(("127.0.0.1", PORT), timeout=5) as connection:
            connection.sendall(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            return connection.recv(15).startswith(b"HTTP/1.1 200")
    except OSError:
        return False


def idle(data: Path, seconds: float) -> None:
    """Statements and transactions of the database, and commands of Valkey, a second, while nobody asks for anything."""
    told = json.loads((data / "run.json").read_text("utf-8"))["environment"]
    owner = told["JOINERY_DATABASE_URL"].replace("joinery@", "postgres@", 1)
    log, valkey = data / "log" / "postgres.log", redis.Redis(unix_socket_path=told["JOINERY_REDIS_URL"][7:])
    with psycopg.connect(owner, autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET log_statement = 'all'")
        connection.execute("SELECT pg_reload_conf()")
        time.sleep(2)
        size, transactions, commands = log.stat().st_size, _transactions(connection), _commands(valkey)
        time.sleep(seconds)
        with log.open("rb") as file:
            file.seek(size)
            logged = file.read().splitlines()
        spent, asked = _transactions(connection) - transactions, _commands(valkey) - commands
        connection.execute("ALTER SYSTEM RESET log_statement")
        connection.execute("SELECT pg_reload_conf()")
    ours = [entry for entry in logged if b"pg_stat_database" not in entry and b"pg_stat_clear" not in entry]
    count = sum(1 for entry in ours if b"LOG:  statement:" in entry or b"LOG:  execute " in entry)
    line("idle: statements a second (log_statement = all)", f"{count / seconds:8.2f}")
    line(
        "idle: transactions a second (pg_stat_database)", f"{spent / seconds:8.2f}   autovacuum and this look included"
    )
    line("idle: Valkey commands a second (INFO stats)", f"{(asked - 1) / seconds:8.2f}")


def _transactions(connection: psycopg.Connection[tuple[object, ...]]) -> int:
    connection.execute("SELECT pg_stat_clear_snapshot()")
    row = connection.execute(
        "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()"
    ).fetchone()
    return int(str(row[0])) if row else 0


def _commands(valkey: "redis.Redis") -> int:
    found = valkey.info("stats")
    assert isinstance(found, dict)
    return int(found["total_commands_processed"])


def memory(root: int) -> None:
    """The memory of each part: its proportional share (PSS) in MiB."""
    parts: dict[str, float] = {}
    for pid in _family(root):
        name = _name(pid, root)
        parts[name] = parts.get(name, 0.0) + _pss(pid)
    for name, mebibytes in sorted(parts.items()):
        line(f"memory: {name} (PSS)", f"{mebibytes:8.1f} MiB")
    line("memory: all parts (PSS)", f"{sum(parts.values()):8.1f} MiB")


def _family(root: int) -> list[int]:
    """The process and everything below it."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                fields = (entry / "stat").read_text("ascii", errors="replace").rpartition(")")[2].split()
                parents.setdefault(int(fields[1]), []).append(int(entry.name))
    family = [root]
    for pid in family:
        family += parents.get(pid, [])
    return family


def _name(pid: int, root: int) -> str:
    words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    if pid == root:
        return "supervisor"
    if words[0].startswith(b"postgres") or words[0].endswith(b"/postgres"):
        return "postgres"
    return "valkey" if b"valkey" in words[0] else words[-2].decode()


def _pss(pid: int) -> float:
    with contextlib.suppress(OSError):
        for entry in Path(f"/proc/{pid}/smaps_rollup").read_text("ascii").splitlines():
            if entry.startswith("Pss:"):
                return int(entry.split()[1]) / 1024
    return 0.0


def main(seconds: float) -> None:
    """Every figure of the command."""
    with tempfile.TemporaryDirectory(prefix="jb") as name:
        data = Path(name)
        data.chmod(0o755)
        with up(data) as (_, took):
            line("the first start, making everything", f"{took:8.2f} s")
        times = []
        for _ in range(STARTS):
            with up(data) as (_, took):
                times.append(took)
        line(
            f"start on data that is there, {STARTS} times",
            f"best {min(times):.2f} s   median {statistics.median(times):.2f} s",
        )
        with up(data) as (process, _):
            time.sleep(6)
            memory(process.pid)
            idle(data, seconds)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=20.0, help="of idling (default: 20)")
    main(options.parse_args().seconds)
