"""Event loops stay responsive during hostile input: their longest pause is compared with an idle loop.

Both are monitored at the same time, so that other load of the machine affects both.
"""

import asyncio
import json
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.connectors.test_hostile_workbooks import HEAD, build_sheet, build_workbook
from tests.flows.feeds import FeedServer, serve_feeds
from tests.flows.service_processes import ServiceProcesses, Tenancy, wait_until
from tests.postgres.databases import create_database
from tests.support.pauses import monitor_pauses

PAUSE, TIMES = 0.6, 10
"""Permitted pause in seconds, or as a multiple of the idle loop's pause if longer."""
MONITORED_WORKER = ("-m", "tests.faults.monitored_worker")
HEADER = b"SKU,Title,Qty,Price,Color,Category\n"
ROWS = (
    b"".join(b"A%d,Chair,3,9.50,Oak,Chairs\n" % number for number in range(20))
    + ",Söta fåtölj i massiv ek,1,1.299.00,Oak,Chairs > Armchairs\n".encode() * 330_000
)
LARGE_CSV = HEADER + ROWS
"""20 MB with few keys: slow to read, quick to store."""
COLUMNS = [chr(66 + n) for n in range(24)]
KEYED = '<row r="2"><c r="A2" t="inlineStr"><is><t>A1</t></is></c></row>'
MANY_CELLS = build_workbook(
    build_sheet(
        HEAD + KEYED + "".join(
            f'<row r="{row}">' + "".join(f'<c r="{column}{row}"><v>{row}</v></c>' for column in COLUMNS) + "</row>"
            for row in range(3, 12_000)
        )
    )
)  # fmt: skip
"""288,000 cells without a key."""


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcesses]:
    """Run an API on a separate database."""
    processes = ServiceProcesses(asyncio.run(create_database("loops")), tmp_path_factory.mktemp("loops"))
    try:
        processes.start_api()
        yield processes
    finally:
        processes.stop()


def is_responsive(longest: float, idle: float) -> bool:
    """Return whether a loop was about as responsive as an idle one."""
    return longest < max(PAUSE, TIMES * idle)


@contextmanager
def monitor_worker(services: ServiceProcesses, what: str) -> Iterator[Callable[[], tuple[float, float]]]:
    """Run a worker of the kind and an idle loop; yield a function that returns the longest pauses of both."""
    reports = {name: services.home / f"{name}-{what}.pauses" for name in ("worker", "idle")}
    kinds = {"worker": what, "idle": "idle"}
    processes = [
        services.start(f"watched-{name}", (*MONITORED_WORKER, kinds[name], str(report)))
        for name, report in reports.items()
    ]
    try:
        for report in reports.values():
            wait_until(report.exists, "the monitor is running")
        yield lambda: tuple(float(report.read_text() or 0) for report in reports.values())  # type: ignore[return-value]
    finally:
        services.stop(*processes)


def reset_monitors(services: ServiceProcesses, tenancy: Tenancy) -> None:
    """Import a small file to start all components, then reset the monitors."""
    source = tenancy.api.create_source("file", config={"currency": "usd"})
    assert tenancy.api.import_file(source, b"SKU,Title\nA,Chair\n")["status"] == "succeeded"
    for process in services.processes[-2:]:
        process.send_signal(signal.SIGUSR1)


def import_file(tenancy: Tenancy, content: bytes, filename: str = "feed.csv") -> None:
    """Import a file and wait for the end of its run."""
    source = tenancy.api.create_source("file", config={"currency": "usd"})
    run = tenancy.api.wait_for_end(tenancy.api.upload_file(source, content, filename), within=180)
    assert run["status"] == "succeeded", run["error"]


def test_a_workers_event_loop_stays_responsive(services: ServiceProcesses) -> None:
    tenancy = services.create_organisation()
    with monitor_worker(services, "worker") as pauses:
        reset_monitors(services, tenancy)
        import_file(tenancy, LARGE_CSV)
        import_file(tenancy, MANY_CELLS, "feed.xlsx")
        longest, idle = pauses()
    assert is_responsive(longest, idle), (longest, idle)


def test_the_monitor_detects_reading_on_the_event_loop(services: ServiceProcesses) -> None:
    tenancy = services.create_organisation()
    with monitor_worker(services, "in-loop") as pauses:
        reset_monitors(services, tenancy)
        import_file(tenancy, HEADER + ROWS * 3)
        longest, idle = pauses()
    assert not is_responsive(longest, idle), (longest, idle)


BODIES = (
    b'{"name":"A","kind":"push","config":{"a":[' + b"0," * 78_000 + b"0]}}",
    b'{"name":"A","kind":"push","config":[' + b",".join([b'{"a":[]}'] * 26_000) + b"]}",
    b"{" + b",".join(b'"%d":%d' % (number, number) for number in range(70_000)) + b"}",
    b"{" + b",".join(b'"%d":"%s"' % (number, b"x" * 90) for number in range(9_900)) + b"}",
    b"[" * (1 << 20),
    b'{"a":' * 150_000 + b"1" + b"}" * 150_000,
    b'{"name":"' + b"\\u00e9" * 170_000 + b'","kind":"push"}',
    b'{"name":"A","name":"A"' + b',"name":"A"' * 9_000 + b"}",
    b'{"name":' + b"9" * 1_000_000 + b"}",
)
PUSHES = (
    json.dumps({"records": [{"product": {"external_id": str(n), "tags": ["a"] * 190}} for n in range(1000)]}).encode(),
    json.dumps({"records": [{"product": {"external_id": str(n), "x": [{}] * 190}} for n in range(1000)]}).encode(),
    b'{"records":[' + b"{}," * 390_000 + b"{}]}",
)


def _create_clients(tenancy: Tenancy, feeds: FeedServer, errors: list[Exception]) -> list[threading.Thread]:
    """Return threads that send hostile bodies and test large sources."""
    api = tenancy.api
    push = api.create_source("push", config={"currency": "usd"})
    sources = [
        api.create_source("url", config={"url": feeds.serve("/large.csv", LARGE_CSV)}),
        api.create_source("url", config={"url": feeds.serve("/cells.xlsx", MANY_CELLS)}),
        api.create_source("url", config={"url": feeds.serve("/deep.json", b'[{"a":' * 200_000)}),
    ]
    workloads = [
        [("/v1/sources", body) for body in BODIES],
        [(f"/v1/sources/{push}/records", body) for body in PUSHES],
        [(f"/v1/sources/{source}/test", None) for source in sources],
    ]

    def send(requests: list[tuple[str, bytes | None]]) -> None:
        try:
            for number in range(2 * len(requests)):
                path, body = requests[number % len(requests)]
                typed = {"Content_Type": "application/json"} if body else {}
                keyed = {} if path.endswith("/test") else {"Idempotency_Key": f"k{path[-5:]}{number}"}
                answer = api.send("POST", path, body, **typed, **keyed)
                assert answer.status < 500, (path, (body or b"")[:60], answer.body)
        except Exception as error:  # reported by the test
            errors.append(error)

    return [threading.Thread(target=send, args=(requests,)) for requests in workloads]


def test_the_event_loop_of_the_api_stays_responsive(services: ServiceProcesses) -> None:
    (services.home / "idle").mkdir(exist_ok=True)
    idle = ServiceProcesses(services.database_url, Path(services.home, "idle"))
    tenancy, errors = services.create_organisation(), list[Exception]()
    try:
        idle.start_api()
        with serve_feeds() as feeds, monitor_pauses(services.port, idle.port) as pulse:
            threads = _create_clients(tenancy, feeds, errors)
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            longest = pulse.longest()
    finally:
        idle.stop()
    assert not errors, errors
    assert is_responsive(longest[services.port], longest[idle.port]), longest
