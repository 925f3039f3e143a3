"""A worker crashes during a website check; another repeats it after the lease, and it ends once."""

import json
import signal
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler

import pytest

from tests.faults.conftest import FaultServices
from tests.flows.feeds import FeedServer, serve_feeds
from tests.flows.service_processes import Tenancy, wait_until


@pytest.fixture
def shop_server() -> Iterator[FeedServer]:
    """Run a separate server."""
    with serve_feeds() as served:
        yield served


def _wait_for_probe(tenancy: Tenancy, probe: str) -> dict[str, object]:
    def look() -> dict[str, object] | None:
        found: dict[str, object] = tenancy.api.get(f"/v1/source-probes/{probe}")
        return found if found["status"] in ("succeeded", "failed") else None

    return wait_until(look, "the probe has ended", within=40)


def _serve_shop(shop: FeedServer) -> None:
    listed = {"products": [{"id": 1, "title": "Oak", "variants": [{"sku": "A", "price": "1.00"}]}]}
    shop.serve("/robots.txt", b"User-agent: *\nAllow: /\n", content_type="text/plain")
    shop.serve("/", b"<html><script src='//cdn.shopify.com/a.js'></script></html>", content_type="text/html")
    shop.serve("/products.json", json.dumps(listed).encode(), content_type="application/json")


def test_a_killed_probe_is_repeated_and_ends_once(fault_services: FaultServices, shop_server: FeedServer) -> None:
    _serve_shop(shop_server)
    tenancy, reached, lives = fault_services.create_organisation(), threading.Event(), threading.Event()
    listed = shop_server.pages["/products.json"]

    def stuck(request: BaseHTTPRequestHandler) -> None:
        reached.set()
        lives.wait(20)

    shop_server.raw["/products.json"] = stuck
    with fault_services.start_crashing_worker("none") as worker:
        probe = tenancy.api.post("/v1/source-probes", {"url": shop_server.url("/")}, expect=202)["id"]
        assert reached.wait(20)
        assert tenancy.api.get(f"/v1/source-probes/{probe}")["status"] == "running"
        fault_services.services.stop(worker, number=signal.SIGKILL)
        del shop_server.raw["/products.json"]
        shop_server.pages["/products.json"] = listed
        lives.set()
    ended = _wait_for_probe(tenancy, probe)
    assert ended["status"] == "succeeded" and ended["report"]["platform"] == "shopify"
    assert [seen.path for seen in shop_server.requests].count("/robots.txt") == 2
    rows = fault_services.services.fetch_rows("SELECT deaths FROM source_probes WHERE id = %(id)s", id=probe)
    event_count = fault_services.services.fetch_value(
        "SELECT count(*) FROM audit_entries WHERE org = %(org)s AND target_id = %(id)s",
        org=tenancy.tenant.org,
        id=probe,
    )
    assert rows == [(1,)] and event_count == 2
    assert (
        fault_services.services.fetch_value(
            "SELECT count(*) FROM jobs WHERE lane LIKE 'probe:%%' AND org = %(org)s", org=tenancy.tenant.org
        )
        == 0
    )
