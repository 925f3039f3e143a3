"""Service for organisations on two nodes: feeds, lists, search, changes, stream, webhooks."""

from collections import Counter
from collections.abc import Iterator

import pytest

from benchmarks.receiver_client import ReceiverClient
from tests.citus.placements import count_rows, find_node
from tests.flows.feeds import build_catalogue, build_record, build_stock_sheet
from tests.flows.service_processes import ServiceProcesses, Tenancy
from tests.support.webhook_endpoints import create_endpoint, run_receiver

PRODUCTS, VARIANTS = 30, 2
OFFERS = PRODUCTS * VARIANTS

Tenants = dict[str, list[Tenancy]]


@pytest.fixture(scope="module")
def at(services: ServiceProcesses) -> Iterator[ReceiverClient]:
    """Run a receiver; each endpoint has its own path."""
    with run_receiver(services) as client:
        yield client


def test_a_feed_is_imported_read_followed_and_delivered(
    services: ServiceProcesses, tenants: Tenants, at: ReceiverClient
) -> None:
    every = [tenancy for there in tenants.values() for tenancy in there]
    assert len(tenants) >= 2 and len(every) >= 4
    hooks = {tenancy.tenant.org: create_endpoint(tenancy.api, at, ("product.created",)) for tenancy in every}
    for tenancy in every:
        api = tenancy.api
        source = api.create_source("file", config={"currency": "usd"})
        for content in (
            build_catalogue(PRODUCTS, VARIANTS),
            build_catalogue(PRODUCTS, VARIANTS, price=110),
            build_stock_sheet(PRODUCTS, VARIANTS),
        ):
            assert api.import_file(source, content)["status"] == "succeeded"
        assert len(api.list_all("/v1/products")) == PRODUCTS and len(api.list_all("/v1/offers")) == OFFERS
        assert len(api.list_all("/v1/products", q="walnut")) == sum(n % 4 == 1 for n in range(PRODUCTS))
        assert len(api.list_all("/v1/products", brand="fermob", source=source)) == PRODUCTS // 3
        count_by_type = Counter(event["type"] for event in read_changes(tenancy))
        assert count_by_type["product.created"] == PRODUCTS and count_by_type["offer.created"] == OFFERS
        assert count_by_type["offer.changed"] >= 2 * OFFERS
    for tenancy in every:
        node = find_node(services, tenancy.tenant.org)
        for name in tenants:
            rows = count_rows(services, name, "products", tenancy.tenant.org)
            assert rows == (PRODUCTS if name == node else 0), "each node holds its own tenants alone"
    for org, one in hooks.items():
        got = one.wait_for_received(PRODUCTS, within=60)
        assert len(got) == PRODUCTS and {each.event["tenant_id"] for each in got} == {org}


def read_changes(tenancy: Tenancy) -> list[dict[str, str]]:
    """Read all events of the tenant, page by page."""
    found: list[dict[str, str]] = []
    query: dict[str, str] = {"limit": "200"}
    while True:
        page = tenancy.api.get("/v1/changes", **query)
        found += page["data"]
        if page["caught_up"]:
            return found
        query["cursor"] = page["next_cursor"]


def test_a_pushed_record_is_readable(tenants: Tenants) -> None:
    for there in tenants.values():
        api = there[1].api
        source = api.create_source("push", config={"currency": "usd"})
        assert api.wait_for_end(api.push(source, [build_record("a"), build_record("b")])["id"])["status"] == "succeeded"
        assert len(api.list_all("/v1/products", source=source)) == 2


def test_no_node_reads_tenants_of_another(tenants: Tenants) -> None:
    (one, *_), (other, *_) = list(tenants.values())[:2]
    product = one.api.create_source("push", config={"currency": "usd"})
    assert other.api.call("GET", f"/v1/sources/{product}").status == 404
    assert one.api.call("GET", f"/v1/sources/{product}").status == 200
