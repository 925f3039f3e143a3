"""Events of every type match their closed schemas, in the feed and in thin and fat payloads."""

from collections.abc import Iterator
from typing import Any

import pytest

from adapters.api_json.event_schemas import EVENT_SCHEMAS
from benchmarks.receiver_client import ReceiverClient
from domain.webhooks.samples import TYPES_WITH_SAMPLE
from entrypoints.operations.validation import Validator
from tests.flows.feeds import build_catalogue, build_stock_sheet
from tests.flows.service_processes import ServiceProcesses, Tenancy
from tests.support.closed_schemas import close_schema
from tests.support.webhook_endpoints import create_endpoint, run_receiver

SCHEMAS = {type: Validator(close_schema(dict(schema))) for type, schema in EVENT_SCHEMAS.items()}


def find_schema_errors(event: Any) -> list[str]:
    return [f"{event['type']} {one.field}: {one.detail}" for one in SCHEMAS[event["type"]].find_field_errors(event)]


@pytest.fixture(scope="module")
def receiver(services: ServiceProcesses) -> Iterator[ReceiverClient]:
    with run_receiver(services) as client:
        yield client


ELSEWHERE = {
    *("usage.threshold_reached", "credits.low", "credits.exhausted", "credits.expiring", "credits.purchased"),
    *("proposal.created", "proposal.applied"),
}
"""Types that are not caused here; the tests of their areas check their schemas."""


@pytest.fixture
def sandbox(services: ServiceProcesses) -> Tenancy:
    return services.create_organisation(livemode=False)


def test_events_of_runs_match_their_schemas(sandbox: Tenancy, receiver: ReceiverClient) -> None:
    thin, fat = (
        create_endpoint(sandbox.api, receiver, ("*",)),
        create_endpoint(sandbox.api, receiver, ("*",), payload="fat"),
    )
    source = sandbox.api.create_source("file", config={"currency": "usd"})
    for content in (
        build_catalogue(3),
        build_catalogue(3, price=110),
        build_stock_sheet(3, quantity=0),
        build_catalogue(2, price=110),
    ):
        assert sandbox.api.import_file(source, content)["status"] == "succeeded"
    feed = sandbox.api.get("/v1/changes", limit=1000)["data"]
    assert {event["type"] for event in feed} >= {"product.created", "variant.created", "offer.created", "offer.changed"}
    received = [one.event for one in [*thin.wait_for_received(len(feed)), *fat.wait_for_received(len(feed))]]
    assert [fault for event in [*feed, *received] for fault in find_schema_errors(event)] == []
    assert any("object" in event["data"] for event in received)


def test_samples_and_endpoint_events_match_their_schemas(sandbox: Tenancy, receiver: ReceiverClient) -> None:
    thin, fat = (
        create_endpoint(sandbox.api, receiver, ("*",)),
        create_endpoint(sandbox.api, receiver, ("*",), payload="fat"),
    )
    gone = create_endpoint(sandbox.api, receiver, ("product.created",), does={"status": 410})
    for type in TYPES_WITH_SAMPLE:
        sandbox.api.post("/v1/test/events", {"type": type})
    thin.send_test_event()
    sandbox.api.post("/v1/exports", {"kind": "organisation"})
    wanted = {*TYPES_WITH_SAMPLE, "delivery.disabled", "export.completed"}
    assert (
        {one.type for one in thin.wait_for_received(len(wanted) + 1)}
        == wanted | {"webhook.test"}
        == set(EVENT_SCHEMAS) - ELSEWHERE
    )
    assert {one.type for one in fat.wait_for_received(len(wanted))} == wanted
    assert gone.get_endpoint()["status"] == "disabled"
    assert [
        fault for one in [*thin.list_received(), *fat.list_received()] for fault in find_schema_errors(one.event)
    ] == []
