"""`joinery up --demo` from the outside: first and second start, the printed commands, a clean stop."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.flows.api_client import ApiClient
from tests.flows.service_processes import wait_until

LAST = 'curl -sS -H "Authorization: Bearer $KEY" "$API/v1/products?source=$SOURCE"'
PUBLISHED = "Lindgren & Falk, a vendor, has published 120 products."
needs_curl = pytest.mark.skipif(shutil.which("curl") is None or shutil.which("bash") is None, reason="needs curl, bash")


class Demo:
    """One `joinery up --demo`; `output` is its start-up output until the line that contains `last`."""

    def __init__(self, data: Path, last: str = LAST) -> None:
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-P",
                "-m",
                "entrypoints.cli.main",
                "up",
                "--demo",
                "--data-dir",
                str(data),
                "--port",
                "0",
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={name: value for name, value in os.environ.items() if not name.startswith("JOINERY_")},
            start_new_session=True,
        )
        self.output: list[str] = []
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.output.append(line.rstrip("\n"))
            if last in line or "could not be completed" in line:
                return
        raise AssertionError("\n".join(self.output))

    def find_line(self, words: str) -> str:
        """Return the line that contains the words."""
        return next(line for line in self.output if words in line)

    @property
    def read_key(self) -> str:
        """Return the secret of the API key."""
        return self.find_line("API key").split()[-1]

    def kill(self) -> None:
        """Kill the process and all processes that it started."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate(timeout=30)

    def stop(self) -> int:
        """Press Ctrl-C; return the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        self.process.communicate(timeout=30)
        return self.process.returncode


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo") / "data"


@pytest.fixture(scope="module")
def first_start(data: Path) -> Iterator[Demo]:
    demo = Demo(data)
    yield demo
    demo.stop()


def run_shell(command: str, folder: Path) -> list[dict[str, Any]]:
    """Return the JSON documents that a command prints."""
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True, cwd=folder, timeout=60)
    decoder, text, found = json.JSONDecoder(), done.stdout.strip(), []
    while text:
        document, end = decoder.raw_decode(text)
        found.append(document)
        text = text[end:].strip()
    return found


def test_the_first_start_imports_both_vendors(first_start: Demo) -> None:
    output = "\n".join(first_start.output)
    assert "could not be completed" not in output
    assert "Traceback" not in output
    assert "457 products, 1,407 variants" in first_start.find_line("Lindgren & Falk          457 products, ")
    assert "329 products, 1,009 variants, 1,009 offers" in output
    assert "bad check digit" in output
    assert "offers from" in first_start.find_line("stock of")
    assert first_start.find_line(PUBLISHED)


@needs_curl
def test_printed_commands_work(first_start: Demo, tmp_path: Path) -> None:
    lines = [line for line in first_start.output if line.startswith("curl") and first_start.read_key in line]
    wait_until(lambda: run_shell(lines[4], tmp_path)[0]["data"], "products are merged", within=30)
    beds, one, offers, run, merges, pairs, published = (run_shell(line, tmp_path)[0] for line in lines)
    assert [product["data"]["title"].endswith("Panel Bed") for product in beds["data"]] == [True] * 3
    assert one["object"] == "product"
    assert len(one["variants"]) > 1
    assert {offer["availability"] for offer in offers["data"]} == {"in_stock"}
    assert (run["status"], run["stats"]["problems"]) == ("succeeded", len(run["problems"]))
    assert {(merge["kind"], merge["status"], merge["decided_by"]) for merge in merges["data"]} == {
        ("product", "applied", "rules")
    }
    assert {pair["status"] for pair in pairs["data"]} <= {"open"}
    assert len(published["data"]) == 3
    assert any("quantity" in offer for product in published["data"] for offer in list_offers(product))
    assert not {product["catalogue"] for product in published["data"]} & {one["catalogue"]}


def list_offers(product: dict[str, Any]) -> list[dict[str, Any]]:
    return [offer for variant in product["variants"] for offer in variant["offers"]]


def open_api(demo: Demo, data: Path, state_file: str = "demo.json") -> ApiClient:
    """Return a client with the API key of an organisation of the demo."""
    port = int(demo.find_line("API=").split()[0].rpartition(":")[2])
    return ApiClient(port, json.loads((data / state_file).read_bytes())["secret"])


def test_the_vendor_decides_what_the_retailer_reads(first_start: Demo, data: Path) -> None:
    retailer, vendor = open_api(first_start, data), open_api(first_start, data, "demo-vendor.json")
    profile, catalogue = vendor.get("/v1/brand"), vendor.get("/v1/catalogue")
    assert (profile["verified"], profile["brands"]) == (True, ["Lindgren & Falk"])
    assert (catalogue["products"], catalogue["listed"]) == (120, 120)
    [product] = retailer.get("/v1/products", catalogue=catalogue["id"], limit="1")["data"]
    change = {"products": [product["id"]], "visibility": "hidden"}
    assert vendor.post("/v1/catalogue/visibility", change)["changed"] == 1
    assert retailer.call("GET", f"/v1/products/{product['id']}").status == 404
    vendor.post("/v1/catalogue/visibility", change | {"visibility": "listed"})
    assert retailer.get(f"/v1/products/{product['id']}")["id"] == product["id"]


def test_the_retailer_follows_the_published_catalogue(first_start: Demo, data: Path) -> None:
    # A run begins five times the duration of the previous one after it, and five minutes after it at most.
    within = 330
    retailer, vendor = open_api(first_start, data), open_api(first_start, data, "demo-vendor.json")
    catalogue = vendor.get("/v1/catalogue")["id"]
    [source] = [one["id"] for one in retailer.get("/v1/sources")["data"] if one["connector"] == "network"]
    wait_until(lambda: list_copies(retailer, source), "copies are merged with own products", within=within)
    [product] = retailer.get("/v1/products", catalogue=catalogue, limit="1")["data"]
    vendor.post("/v1/catalogue/visibility", {"products": [product["id"]], "visibility": "hidden"})
    sku = product["variants"][0]["data"]["sku"]

    def is_withdrawn() -> bool:
        offers = [offer for own in retailer.get("/v1/products", sku=sku)["data"] for offer in list_offers(own)]
        return {"withdrawn_at" in offer for offer in offers if offer["source"] == source} == {True}

    wait_until(is_withdrawn, "the copy follows", within=within)
    vendor.post("/v1/catalogue/visibility", {"products": [product["id"]], "visibility": "listed"})
    wait_until(lambda: not is_withdrawn(), "the copy returns", within=within)


def list_copies(retailer: ApiClient, source: str) -> list[Any]:
    """Return the products that have offers of the source and of another one."""
    products = retailer.get("/v1/products", source=source, limit="100")["data"]
    return [product for product in products if len({offer["source"] for offer in list_offers(product)}) > 1]


@needs_curl
def test_both_owners_can_sign_in(first_start: Demo) -> None:
    for words in ("Console ", "Vendor "):
        link = first_start.find_line(words).split()[-1]
        page = subprocess.run(["curl", "-fsS", link], capture_output=True, text=True, check=True, timeout=30).stdout
        assert "Sign in" in page


@needs_curl
def test_a_feed_of_the_user_is_imported(first_start: Demo, tmp_path: Path) -> None:
    lines = first_start.output[next(at for at, line in enumerate(first_start.output) if line.startswith("API=")) :]
    (listed,) = run_shell("\n".join(lines), tmp_path)
    (product,) = listed["data"]
    assert product["data"]["title"] == "Oak stool"
    assert product["variants"][0]["offers"][0]["price"] == 7900


@pytest.mark.soak
def test_the_second_start_keeps_the_data(first_start: Demo, data: Path) -> None:
    assert first_start.stop() == 0
    kept = [(data / name).read_bytes() for name in ("demo.json", "demo-vendor.json")]
    second = Demo(data)
    try:
        assert second.read_key == first_start.read_key
        assert [(data / name).read_bytes() for name in ("demo.json", "demo-vendor.json")] == kept
        assert second.find_line(PUBLISHED)
        assert not any("Importing the feeds" in line for line in second.output)
        assert second.find_line("Lindgren & Falk          457 products, ")
    finally:
        assert second.stop() == 0


@pytest.mark.soak
@pytest.mark.parametrize("last", ["Importing the feeds", "(vendor) succeeded", "of 120 products published"])
def test_a_start_completes_a_killed_one(tmp_path: Path, last: str) -> None:
    killed = Demo(tmp_path / "data", last)
    killed.kill()
    second = Demo(tmp_path / "data")
    try:
        assert second.find_line(PUBLISHED)
        assert second.find_line("Lindgren & Falk          457 products, ")
        vendor = open_api(second, tmp_path / "data", "demo-vendor.json")
        assert len(vendor.get("/v1/brand/claims")["data"]) == 1
        assert len(vendor.get("/v1/sources")["data"]) == 1
        assert len(vendor.get("/v1/catalogue/publication-runs")["data"]) == 1
    finally:
        assert second.stop() == 0
