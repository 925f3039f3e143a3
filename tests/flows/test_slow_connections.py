"""Slow and hostile connections of one tenant on a real server do not affect other tenants."""

import contextlib
import socket
import time
from collections.abc import Iterator

import pytest

from tests.flows.service_processes import ServiceProcesses, Tenancy, wait_until

HELD_UP = 20.0
"""Seconds: a read blocked by slow bodies takes at least half a minute; a busy machine needs some seconds."""


@pytest.fixture
def connections() -> Iterator[list[socket.socket]]:
    """Connections, which are closed at the end."""
    made: list[socket.socket] = []
    yield made
    for line in made:
        line.close()


def open_connection(services: ServiceProcesses, head: str) -> socket.socket:
    """Open a connection and send the bytes."""
    line = socket.create_connection(("127.0.0.1", services.port), timeout=10)
    line.sendall(head.replace("\n", "\r\n").encode())
    return line


def build_post_head(tenancy: Tenancy, path: str, length: int, number: int = 0) -> str:
    """Return the head of a POST without its body."""
    return (
        f"POST {path} HTTP/1.1\nHost: x\nAuthorization: Bearer {tenancy.api.secret}\nContent-Type: application/json\n"
        f"Idempotency-Key: k{number}-{time.time_ns()}\nContent-Length: {length}\n\n"
    )


def read_status_line(line: socket.socket, within: float = 0.0) -> str | None:
    """Return the status line, if received."""
    line.settimeout(within or 0.001)
    try:
        return line.recv(4096).decode("latin-1").partition("\r\n")[0] or "closed"
    except TimeoutError:
        return None
    except OSError:
        return "closed"


def measure_slowest_read(tenancy: Tenancy, count: int = 40) -> float:
    """Return the duration of the slowest of `count` successful reads."""
    longest = 0.0
    for _ in range(count):
        began = time.perf_counter()
        tenancy.api.get("/v1/sources", limit=5)
        longest = max(longest, time.perf_counter() - began)
    return longest


def send_slowly(lines: list[socket.socket]) -> None:
    for line in lines:
        with contextlib.suppress(OSError):
            line.send(b" ")


def test_slow_bodies_of_one_tenant_do_not_affect_others(
    services: ServiceProcesses, connections: list[socket.socket]
) -> None:
    slow, reader, writer = (
        services.create_organisation(),
        services.create_organisation(plan="standard"),
        services.create_organisation(),
    )
    for number in range(500):
        connections.append(open_connection(services, build_post_head(slow, "/v1/sources", 1000, number)))
        if number % 100 == 0:
            send_slowly(connections)
    time.sleep(0.5)
    for _ in range(3):
        send_slowly(connections)
        assert measure_slowest_read(reader) < HELD_UP
        assert measure_slowest_read(slow) < HELD_UP, "its own reads go on as well"
        assert writer.api.create_source("push")
    statuses = [read_status_line(line) for line in connections]
    refused = [status for status in statuses if status is not None]
    assert len(statuses) - len(refused) <= 64, "only so many of one organisation may be open"
    assert set(refused) <= {"HTTP/1.1 429 ", "closed"}


def test_slow_bodies_are_ended(services: ServiceProcesses, connections: list[socket.socket]) -> None:
    """A slow or missing body gets a response, and the connection ends."""
    slow = services.create_organisation()
    connections += [
        open_connection(services, build_post_head(slow, "/v1/sources", 100_000, number)) for number in range(10)
    ]
    first: dict[int, str] = {}

    def over() -> bool:
        send_slowly(connections[:5])
        for index, line in enumerate(connections):
            if index not in first and (status := read_status_line(line)):
                first[index] = status
        return len(first) == len(connections)

    wait_until(over, "every body is given up", within=30, every=0.5)
    assert set(first.values()) == {"HTTP/1.1 400 "}


def test_anonymous_connections_do_not_affect_others(
    services: ServiceProcesses, fjord: Tenancy, connections: list[socket.socket]
) -> None:
    """Endless heads and bodies without a credential do not affect other readers."""
    for number in range(150):
        connections.append(open_connection(services, "GET /v1/products HTTP/1.1\nHost: x\n"))
        connections.append(
            open_connection(services, f"POST /v1/sources HTTP/1.1\nHost: x\nContent-Length: 1000{number}\n\nx")
        )
        connections.append(open_connection(services, "POST /docs HTTP/1.1\nHost: x\nTransfer-Encoding: chunked\n\n"))
    assert measure_slowest_read(fjord) < HELD_UP
    wait_until(
        lambda: all(read_status_line(line) for line in connections) or None, "all are ended", within=30, every=0.5
    )
    assert measure_slowest_read(fjord) < HELD_UP


def test_interrupted_uploads_leave_no_file(
    services: ServiceProcesses, fjord: Tenancy, connections: list[socket.socket]
) -> None:
    """If a sender disconnects or stops, its file is removed; a slow upload continues."""
    source = fjord.api.create_source("file", config={"format": "csv", "currency": "usd"})
    heads = []
    for name in ("gone", "slow"):
        announcement = {"filename": f"{name}.csv", "content_type": "text/csv", "bytes": 2 << 30}
        target = fjord.api.post(f"/v1/sources/{source}/uploads", announcement)["target"]
        path = target["url"].partition("/objects/")[2]
        heads.append(f"PUT /objects/{path} HTTP/1.1\nHost: x\nContent-Type: text/csv\nContent-Length: {2 << 30}\n\n")
    connections += [open_connection(services, head) for head in heads]
    fresh = services.home / "objects" / ".fresh"

    def in_hand() -> int:
        return len(list(fresh.glob("*")))

    for line in connections:
        line.sendall(b"sku,title\n")
    wait_until(lambda: in_hand() == 2 or None, "both are being written")
    connections[0].close()
    wait_until(lambda: in_hand() == 1 or None, "interrupted uploads are removed")
    for _ in range(6):
        time.sleep(0.5)
        connections[1].sendall(b"x" * 3_000)
    assert in_hand() == 1 and read_status_line(connections[1]) is None


def test_uploads_of_one_organisation_are_bounded(
    services: ServiceProcesses, fjord: Tenancy, connections: list[socket.socket]
) -> None:
    source = fjord.api.create_source("file", config={"format": "csv", "currency": "usd"})
    announcement = {"filename": "a.csv", "content_type": "text/csv", "bytes": 1000}
    target = fjord.api.post(f"/v1/sources/{source}/uploads", announcement)["target"]
    path = target["url"].partition("/objects/")[2]
    head = f"PUT /objects/{path} HTTP/1.1\nHost: x\nContent-Type: text/csv\nContent-Length: 1000\n\n"
    connections += [open_connection(services, head) for _ in range(70)]
    time.sleep(0.5)
    statuses = [status for status in map(read_status_line, connections) if status]
    assert len(statuses) == 69 and set(statuses) <= {"HTTP/1.1 409 ", "HTTP/1.1 429 "}, "one at a time for each upload"
    assert services.create_organisation().api.create_source("push"), "another organisation is not in the way"
