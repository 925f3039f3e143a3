"""Time from `joinery up` to the first successful response, memory, and load without requests (`make bench-start`)."""

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


def print_figure(name: str, figure: str) -> None:
    """Print one measurement."""
    print(f"{name:<50} {figure}", flush=True)


@contextlib.contextmanager
def running_service(data_dir: Path) -> Iterator[tuple["subprocess.Popen[bytes]", float]]:
    """Run `joinery up`; yield the process and the seconds until it was ready."""
    started = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "entrypoints.cli.main", "up", "--data-dir", str(data_dir), "--port", str(PORT)],
        stdout=subprocess.DEVNULL,
        env={name: value for name, value in os.environ.items() if not name.startswith("JOINERY_")},
    )
    try:
        while not _is_ready():
            if process.poll() is not None or time.perf_counter() - started > 60:
                raise RuntimeError("`joinery up` did not become ready")
            time.sleep(0.005)
        yield process, time.perf_counter() - started
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(40)
        except subprocess.TimeoutExpired:
            process.kill()


def _is_ready() -> bool:
    """Return whether GET /readyz responds with 200."""
    try:
        with socket.create_connection(("127.0.0.1", PORT), timeout=5) as connection:
            connection.sendall(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            return connection.recv(15).startswith(b"HTTP/1.1 200")
    except OSError:
        return False


def measure_idle_load(data_dir: Path, seconds: float) -> None:
    """Print the statements and transactions of the database and the commands of Valkey a second, without requests."""
    environment = json.loads((data_dir / "run.json").read_text("utf-8"))["environment"]
    owner_url = environment["JOINERY_DATABASE_URL"].replace("joinery@", "postgres@", 1)
    log, valkey = data_dir / "log" / "postgres.log", redis.Redis(unix_socket_path=environment["JOINERY_REDIS_URL"][7:])
    with psycopg.connect(owner_url, autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET log_statement = 'all'")
        connection.execute("SELECT pg_reload_conf()")
        time.sleep(2)
        log_size, transactions_before, commands_before = (
            log.stat().st_size,
            _count_transactions(connection),
            _count_commands(valkey),
        )
        time.sleep(seconds)
        with log.open("rb") as file:
            file.seek(log_size)
            logged = file.read().splitlines()
        transaction_count, command_count = (
            _count_transactions(connection) - transactions_before,
            _count_commands(valkey) - commands_before,
        )
        connection.execute("ALTER SYSTEM RESET log_statement")
        connection.execute("SELECT pg_reload_conf()")
    service_statements = [
        entry for entry in logged if b"pg_stat_database" not in entry and b"pg_stat_clear" not in entry
    ]
    count = sum(1 for entry in service_statements if b"LOG:  statement:" in entry or b"LOG:  execute " in entry)
    print_figure("idle: statements a second (log_statement = all)", f"{count / seconds:8.2f}")
    print_figure(
        "idle: transactions a second (pg_stat_database)",
        f"{transaction_count / seconds:8.2f}   includes autovacuum and this measurement",
    )
    print_figure("idle: Valkey commands a second (INFO stats)", f"{(command_count - 1) / seconds:8.2f}")


def _count_transactions(connection: psycopg.Connection[tuple[object, ...]]) -> int:
    connection.execute("SELECT pg_stat_clear_snapshot()")
    row = connection.execute(
        "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()"
    ).fetchone()
    return int(str(row[0])) if row else 0


def _count_commands(valkey: "redis.Redis") -> int:
    statistics_section = valkey.info("stats")
    assert isinstance(statistics_section, dict)
    return int(statistics_section["total_commands_processed"])


def print_memory(root: int) -> None:
    """Print the memory of each component: its proportional set size (PSS) in MiB."""
    memory_by_component: dict[str, float] = {}
    for pid in _find_process_tree(root):
        component = _find_component(pid, root)
        memory_by_component[component] = memory_by_component.get(component, 0.0) + _read_pss(pid)
    for component, mebibytes in sorted(memory_by_component.items()):
        print_figure(f"memory: {component} (PSS)", f"{mebibytes:8.1f} MiB")
    print_figure("memory: all components (PSS)", f"{sum(memory_by_component.values()):8.1f} MiB")


def _find_process_tree(root: int) -> list[int]:
    """Return the process and all its descendants."""
    children_by_parent: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                fields = (entry / "stat").read_text("ascii", errors="replace").rpartition(")")[2].split()
                children_by_parent.setdefault(int(fields[1]), []).append(int(entry.name))
    process_tree = [root]
    for pid in process_tree:
        process_tree += children_by_parent.get(pid, [])
    return process_tree


def _find_component(pid: int, root: int) -> str:
    words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    if pid == root:
        return "supervisor"
    if words[0].startswith(b"postgres") or words[0].endswith(b"/postgres"):
        return "postgres"
    return "valkey" if b"valkey" in words[0] else words[-2].decode()


def _read_pss(pid: int) -> float:
    with contextlib.suppress(OSError):
        for entry in Path(f"/proc/{pid}/smaps_rollup").read_text("ascii").splitlines():
            if entry.startswith("Pss:"):
                return int(entry.split()[1]) / 1024
    return 0.0


def main(seconds: float) -> None:
    """Run all measurements."""
    with tempfile.TemporaryDirectory(prefix="jb") as folder:
        data_dir = Path(folder)
        data_dir.chmod(0o755)
        with running_service(data_dir) as (_, seconds_to_ready):
            print_figure("first start, with a new database", f"{seconds_to_ready:8.2f} s")
        times = []
        for _ in range(STARTS):
            with running_service(data_dir) as (_, seconds_to_ready):
                times.append(seconds_to_ready)
        print_figure(
            f"start with existing data, {STARTS} times",
            f"minimum {min(times):.2f} s   median {statistics.median(times):.2f} s",
        )
        with running_service(data_dir) as (process, _):
            time.sleep(6)
            print_memory(process.pid)
            measure_idle_load(data_dir, seconds)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=20.0, help="seconds without requests (default: 20)")
    main(options.parse_args().seconds)
