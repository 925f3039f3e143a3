"""Two hundred uploads to the console at a byte per second: others are served, the uploads end, and no file remains."""

import asyncio
import contextlib
import os
import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.flows.service_processes import ServiceProcesses, wait_until
from tests.flows.test_slow_connections import measure_slowest_read, read_status_line
from tests.postgres.databases import create_database
from tests.support.console_browser import COOKIE, Tab, create_session

SENDERS, ORGANISATIONS = 200, 20
PATIENCE = 45.0
"""Seconds after which a slow file is aborted: thirty, plus a reserve for a busy machine."""
HELD_UP = 5.0
PLACE = "/console/sources/new/file"


@pytest.fixture
def spooling_services(tmp_path: Path) -> Iterator[ServiceProcesses]:
    """Run an API with its own work folder, which does not exist yet."""
    work = tmp_path / "deep" / "work"
    services = ServiceProcesses(asyncio.run(create_database("slow_forms")), tmp_path, {"JOINERY_WORK_DIR": str(work)})
    try:
        services.start_api()
        yield services
    finally:
        services.stop()


def _open_upload(services: ServiceProcesses, cookie: str, token: str, size: int) -> socket.socket:
    """Open a connection and send a part of the announced file."""
    part = "--edge\r\nContent-Disposition: form-data; name="
    head = f'{part}"csrf"\r\n\r\n{token}\r\n{part}"file"; filename="a.csv"\r\n\r\n'.encode()
    line = socket.create_connection(("127.0.0.1", services.port), timeout=10)
    line.sendall(
        f"POST {PLACE} HTTP/1.1\r\nHost: 127.0.0.1:{services.port}\r\nSec-Fetch-Site: same-origin\r\nCookie: {COOKIE}={cookie}\r\n"
        f"Content-Type: multipart/form-data; boundary=edge\r\nContent-Length: {32 << 20}\r\n\r\n".encode()
        + head
    )
    with contextlib.suppress(OSError):
        line.sendall(b"x" * size)
    return line


def _list_spooled_files(pid: int) -> list[str]:
    """Return the unnamed files that the process has open."""
    found = []
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            found.append(os.readlink(entry))
    return [name for name in found if name.endswith("(deleted)") and "memfd" not in name and "/dev/" not in name]


@pytest.mark.soak
def test_slow_uploads_do_not_delay_other_requests(spooling_services: ServiceProcesses) -> None:
    services, work = spooling_services, Path(spooling_services.env["JOINERY_WORK_DIR"])
    [api] = services.processes
    tenancies = [services.create_organisation() for _ in range(ORGANISATIONS)]
    reader = services.create_organisation()
    cookies = [
        services.run_with_dependencies(lambda container, one=one: create_session(container, one.tenant))
        for one in tenancies
    ]  # type: ignore[misc]
    tokens = [
        re.findall(r'name="csrf" value="([^"]*)"', Tab(services.port, cookie).get(PLACE).text)[0] for cookie in cookies
    ]
    lines = [_open_upload(services, cookies[n % ORGANISATIONS], tokens[n % ORGANISATIONS], 10) for n in range(SENDERS)]
    began, over, longest, pages = time.monotonic(), dict[int, str](), 0.0, 0.0
    while len(over) < SENDERS and time.monotonic() < began + PATIENCE:
        for number, line in enumerate(lines):
            if number not in over and (status := read_status_line(line)) is not None:
                over[number] = status
            elif number not in over:
                with contextlib.suppress(OSError):
                    line.send(b"x")
        longest = max(longest, measure_slowest_read(reader, 5))
        started = time.perf_counter()
        assert Tab(services.port, cookies[0]).get("/console/sources").status == 200
        pages = max(pages, time.perf_counter() - started)
        time.sleep(0.5)
    for line in lines:
        line.close()
    statuses = sorted(over.values())
    print(f"slowest read {longest:.3f} s, slowest page {pages:.3f} s, all over after {time.monotonic() - began:.1f} s")
    assert len(over) == SENDERS and longest < HELD_UP and pages < HELD_UP
    assert statuses.count("HTTP/1.1 400 ") == 64, "as many are taken at a time"
    assert sum(" 429" in status or " 503" in status for status in statuses) == SENDERS - 64
    held = [_open_upload(services, cookies[n], tokens[n], 2 << 20) for n in range(8)]
    wait_until(lambda: len(_list_spooled_files(api.pid)) == 8, "large parts are on disk")
    assert all(name.startswith(str(work)) for name in _list_spooled_files(api.pid)), _list_spooled_files(api.pid)
    assert [entry for entry in work.iterdir() if entry.is_file()] == [], "under no name"
    for line in held:
        line.close()
    wait_until(lambda: not _list_spooled_files(api.pid), "files of interrupted requests are removed")
    assert Tab(services.port, cookies[0]).get("/console/sources").status == 200
