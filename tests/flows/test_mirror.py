"""`joinery mirror` during writes and crashes: finally, the copy equals the catalogue byte for byte."""

import random
import signal
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from tests.flows.feeds import build_record
from tests.flows.service_processes import ServiceProcesses, Tenancy, wait_until


class ProductId(msgspec.Struct):
    """The ID of a product."""

    id: str


class RawProductPage(msgspec.Struct):
    """Page with undecoded products."""

    data: list[msgspec.Raw]
    next_cursor: str | None


def list_catalogue(tenancy: Tenancy) -> dict[str, bytes]:
    """Return the catalogue by ID, each product as the bytes of the response."""
    found: dict[str, bytes] = {}
    after = ""
    while True:
        answer = tenancy.api.call("GET", f"/v1/products?limit=100{after}")
        page = msgspec.json.decode(answer.body, type=RawProductPage)
        found |= {msgspec.json.decode(raw, type=ProductId).id: bytes(raw) for raw in page.data}
        if page.next_cursor is None:
            return found
        after = f"&starting_after={page.next_cursor}"


def read_copy(path: Path) -> dict[str, bytes]:
    """Return the products of the copy."""
    if path.is_dir():
        return {one.stem: one.read_bytes() for one in (path / "products").glob("*.json")}
    with sqlite3.connect(path) as database:
        return {id: body.encode() for id, body in database.execute("SELECT id, body FROM products")}


def start_mirror(services: ServiceProcesses, tenancy: Tenancy, path: Path, *more: str) -> "object":
    argv = ("-m", "entrypoints.cli.main", "mirror", "--to", str(path), *more)
    environment = {"JOINERY_URL": f"http://127.0.0.1:{services.port}", "JOINERY_KEY": str(tenancy.api.secret)}
    return services.start("mirror", argv, **environment)


def mirror_once(services: ServiceProcesses, tenancy: Tenancy, path: Path) -> None:
    """Mirror once to the current end."""
    process = start_mirror(services, tenancy, path, "--once")
    assert process.wait(60) == 0, services.log_path("mirror").read_text()  # type: ignore[attr-defined]
    services.processes.remove(process)  # type: ignore[arg-type]


def mirror_during_writes(
    services: ServiceProcesses, tenancy: Tenancy, path: Path, writers: int, calls: int, kills: int
) -> None:
    sources = [tenancy.api.create_source("push", config={"currency": "usd"}) for _ in range(writers)]
    began = threading.Barrier(writers + 1)

    def write(number: int) -> list[str]:
        dice, runs = random.Random(number), []
        began.wait()
        for call in range(calls):
            some = [
                build_record(
                    f"{number}-{dice.randrange(25)}", title=f"Oak {call}", price=dice.randrange(9, 900), quantity=call
                )
                for _ in range(8)
            ]
            unique = {one["product"]["external_id"]: one for one in some}
            runs.append(tenancy.api.push(sources[number], list(unique.values()))["id"])
        return runs

    with ThreadPoolExecutor(writers) as pool:
        writing = [pool.submit(write, number) for number in range(writers)]
        began.wait()
        for _ in range(kills):
            follower = start_mirror(services, tenancy, path)
            wait_until(
                lambda: path.exists() and read_copy(path) if path.is_dir() else _has_products(path),
                "something is copied",
            )
            services.stop(follower, number=signal.SIGKILL)  # type: ignore[arg-type]
        runs = [run for written in writing for run in written.result()]
    for run in runs:
        assert tenancy.api.wait_for_end(run, within=120)["status"] == "succeeded"
    mirror_once(services, tenancy, path)
    assert read_copy(path) == list_catalogue(tenancy) and len(read_copy(path)) > 3 * writers


def _has_products(path: Path) -> bool:
    try:
        return path.exists() and bool(read_copy(path))
    except sqlite3.Error:
        return False


def test_a_mirror_file_follows_eight_writers(services: ServiceProcesses, fjord: Tenancy, tmp_path: Path) -> None:
    fjord.api.wait_for_end(
        fjord.api.push(fjord.api.create_source("push", config={"currency": "usd"}), [build_record("first")])["id"]
    )
    mirror_during_writes(services, fjord, tmp_path / "copy.sqlite", writers=8, calls=3, kills=2)


@pytest.mark.soak
@pytest.mark.parametrize("name", ["copy.sqlite", "copy"])
def test_a_long_mirror_run(services: ServiceProcesses, fjord: Tenancy, tmp_path: Path, name: str) -> None:
    fjord.api.wait_for_end(
        fjord.api.push(fjord.api.create_source("push", config={"currency": "usd"}), [build_record("first")])["id"]
    )
    mirror_during_writes(services, fjord, tmp_path / name, writers=8, calls=40, kills=12)


def test_a_folder_without_bulk_exports_and_a_cursor_that_expired(services: ServiceProcesses, tmp_path: Path) -> None:
    tenancy = services.create_organisation(plan="free")
    source = tenancy.api.create_source("push", config={"currency": "usd"})
    tenancy.api.wait_for_end(tenancy.api.push(source, [build_record("A"), build_record("B")])["id"])
    path = tmp_path / "copy"
    mirror_once(services, tenancy, path)
    assert read_copy(path) == list_catalogue(tenancy) and len(read_copy(path)) == 2
    tenancy.api.wait_for_end(tenancy.api.push(source, [build_record("A", title="Renamed"), build_record("C")])["id"])
    (path / "products" / "prod_strange.json").write_text("{}")
    mirror_once(services, tenancy, path)
    assert read_copy(path) == list_catalogue(tenancy) | {"prod_strange": b"{}"}

    services.fetch_rows(
        "UPDATE event_logs SET low = last, epoch = epoch + 1, began = last WHERE org = %(org)s", org=tenancy.tenant.org
    )
    mirror_once(services, tenancy, path)
    assert "expired" in services.log_path("mirror").read_text()
    assert read_copy(path) == list_catalogue(tenancy) and len(read_copy(path)) == 3

    process = start_mirror(services, tenancy, path, "--once", "--key", "svc_live_wrong")
    assert process.wait(30) == 1 and "401 authentication_required" in services.log_path("mirror").read_text()  # type: ignore[attr-defined]

    other = services.create_organisation()
    process = start_mirror(services, other, path, "--once")
    assert process.wait(30) == 1  # type: ignore[attr-defined]
    assert "another copy" in services.log_path("mirror").read_text() and len(read_copy(path)) == 3
