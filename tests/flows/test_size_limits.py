"""The largest rows and pushes with fifty followers: the memory of the API is bounded, and omissions are reported."""

import http.client
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from domain.kernel.bounds import EVENT_BYTES, MAX_IMPORTED_VARIANTS, MAX_LIST_ENTRIES, MAX_STORED_VARIANTS
from tests.flows.service_processes import ServiceProcesses, Tenancy, wait_until

FOLLOWERS = 50
GROWTH = 50 << 20


class Follower(threading.Thread):
    """Reader of one event stream; `largest` is the longest line."""

    def __init__(self, port: int, secret: str) -> None:
        super().__init__(daemon=True)
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self.connection.request("GET", "/v1/stream", None, {"Authorization": f"Bearer {secret}"})
        self.socket = self.connection.sock
        self.answer = self.connection.getresponse()
        assert self.answer.status == 200, self.answer.read()
        self.events = self.largest = 0
        self.start()

    def run(self) -> None:
        """Read until the end."""
        try:
            for line in self.answer:
                if line.startswith(b"data: "):
                    json.loads(line[6:])
                    self.events += 1
                    self.largest = max(self.largest, len(line))
        except (OSError, ValueError, AttributeError, http.client.HTTPException):
            return


class MemoryMonitor(threading.Thread):
    """Monitor of the peak memory of a process."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.pid, self.stopped = pid, threading.Event()
        self.before = self.peak = self.measure()
        self.start()

    def measure(self) -> int:
        """Return the memory of the process in bytes."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * 4096

    def run(self) -> None:
        """Measure every few milliseconds."""
        while not self.stopped.wait(0.005):
            self.peak = max(self.peak, self.measure())


@contextmanager
def follow_streams(services: ServiceProcesses, tenancy: Tenancy) -> Iterator[tuple[MemoryMonitor, list[Follower]]]:
    """Open fifty streams of the tenant, and monitor the API's memory."""
    assert tenancy.api.secret is not None
    followers = [Follower(services.port, tenancy.api.secret) for _ in range(FOLLOWERS)]
    watch = MemoryMonitor(next(process for process in services.processes if process.args[-1] == "api").pid)
    try:
        yield watch, followers
    finally:
        watch.stopped.set()
        for follower in followers:
            follower.socket.shutdown(socket.SHUT_RDWR)


def _build_hostile_rows(shift: int) -> bytes:
    """Return JSON rows whose cells are lists of the maximum length."""
    wide = {
        "tags": [f"tag{number + shift}" for number in range(4_900)],
        "features": [f"feature {number + shift}" for number in range(4_900)],
        "images": [f"https://a.example/{number + shift}.jpg" for number in range(4_900)],
    }
    rows: list[dict[str, object]] = [{"product_id": "wide", "title": "Wide", "sku": "w-1", "price": "1.00", **wide}]
    long = ["x" * 1_500 + str(number + shift) for number in range(100)]
    for number in range(100):
        rows.append({"product_id": f"long-{number}", "title": "Long", "sku": f"l-{number}", "features": long})
    rows += [
        {"product_id": "deep", "title": "Deep", "sku": f"d-{number}", "price": "1.00"}
        for number in range(2 * MAX_IMPORTED_VARIANTS)
    ]
    return json.dumps(rows).encode()


def test_hostile_rows_are_truncated_and_reported(services: ServiceProcesses, fjord: Tenancy) -> None:
    api = fjord.api
    source = api.create_source("file", config={"format": "json", "currency": "usd"})
    with follow_streams(services, fjord) as (watch, followers):
        first = api.wait_for_end(
            api.upload_file(source, _build_hostile_rows(0), "feed.json", "application/json"), within=180
        )
        second = api.wait_for_end(
            api.upload_file(source, _build_hostile_rows(7), "feed.json", "application/json"), within=180
        )
        # proposals of agents are sent to webhook endpoints only
        statement = "SELECT count(*) FROM events WHERE org = %(org)s AND type NOT LIKE 'proposal.%%'"
        written = services.fetch_value(statement, org=fjord.tenant.org)
        wait_until(lambda: all(one.events >= written or not one.is_alive() for one in followers), "all is told", 60)
        growth = watch.peak - watch.before
    print(f"the API grew by {growth / 2**20:.1f} MiB over {written} events")
    assert (first["status"], second["status"]) == ("succeeded", "succeeded"), (first, second)
    assert growth < GROWTH
    assert max(one.largest for one in followers) <= EVENT_BYTES + len(b"data: \n")
    sizes = "SELECT max(octet_length(body)) FROM events WHERE org = %(org)s"
    assert services.fetch_value(sizes, org=fjord.tenant.org) <= EVENT_BYTES
    reported = sorted((problem["field"], problem.get("column")) for problem in second["problems"])
    expected = [
        ("axes", None),
        ("tags", "tags"),
        ("media", "images"),
        ("variants", None),
        *[("features", "features")] * 101,
    ]
    assert reported == sorted(expected, key=str), (
        "truncated and indistinguishable variants are also reported for unchanged rows"
    )
    assert "variants" in {problem["field"] for problem in first["problems"]}
    products = api.list_all("/v1/products")
    assert len({one["id"] for one in products}) == len(products) == 102
    assert len(api.get("/v1/products", limit=100)["data"]) < 100
    wide, deep = (next(one for one in products if one["data"]["title"] == title) for title in ("Wide", "Deep"))
    assert api.get(f"/v1/products/{wide['id']}")["data"]["features"][0] == "feature 7"
    assert [len(wide["data"][name]) for name in ("tags", "features", "media")] == [MAX_LIST_ENTRIES] * 3
    assert len(deep["variants"]) == MAX_IMPORTED_VARIANTS
    (offer,) = api.get("/v1/offers", product=wide["id"])["data"]
    assert (offer["product_title"], offer["variant_sku"]) == ("Wide", "w-1")
    again = api.wait_for_end(
        api.upload_file(source, _build_hostile_rows(7), "feed.json", "application/json"), within=180
    )
    assert again["stats"].get("unchanged_feed") or not again["stats"].get("products_changed")
    assert services.fetch_value(statement, org=fjord.tenant.org) == written


@pytest.mark.soak
def test_successive_pushes_are_truncated(services: ServiceProcesses, fjord: Tenancy) -> None:
    api = fjord.api
    source = api.create_source("push")
    texts = ["x" * 400 + str(number) for number in range(200)]
    with follow_streams(services, fjord) as (watch, _):
        for push in range(7):
            variants = [{"external_id": f"v-{push}-{number}"} for number in range(1_000)]
            product = {"external_id": "p-1", "title": "Many", "features": texts, "tags": [*texts, str(push)][1:]}
            run = api.wait_for_end(api.push(source, [{"product": product, "variants": variants}])["id"], within=120)
            assert run["status"] == "succeeded"
        growth = watch.peak - watch.before
    print(f"the API grew by {growth / 2**20:.1f} MiB")
    assert growth < GROWTH
    (product,) = api.list_all("/v1/products")
    assert len(product["variants"]) == MAX_STORED_VARIANTS
    assert [problem["field"] for problem in run["problems"]] == ["variants"]
    assert "1,000 variants" in run["problems"][0]["detail"]
