"""Events of the runs of a source: types, versions and fields, in order for each subject."""

import json
from typing import Any

import pytest

from domain.events.model import TYPES
from tests.flows.feeds import build_catalogue, build_record, build_stock_sheet
from tests.flows.service_processes import ServiceProcesses, Tenancy

ENVELOPE = {
    "id", "type", "spec_version", "source", "subject", "time", "tenant_id", "version", "schema_version", "livemode",
    "data", "correlation_id", "causation_id",
}  # fmt: skip


def fetch_events(services: ServiceProcesses, tenancy: Tenancy) -> list[dict[str, Any]]:
    """Return every event of the tenant in the order of the log."""
    rows = services.fetch_rows(
        "SELECT convert_from(body, 'UTF8'), type, subject, version FROM events WHERE org = %(org)s "
        "AND type NOT LIKE 'proposal.%%' ORDER BY position",
        org=tenancy.tenant.org,
    )
    events = []
    for body, kind, subject, version in rows:
        event = json.loads(body)
        assert (event["type"], event["subject"], event["version"]) == (kind, subject, version)
        events.append(event)
    return events


@pytest.fixture
def history(services: ServiceProcesses, fjord: Tenancy) -> tuple[list[str], list[dict[str, Any]]]:
    """Run a source whose feed changes prices and stock, shrinks and recovers; return runs and events."""
    api = fjord.api
    source = api.create_source("file", config={"currency": "usd"})
    files = [
        build_catalogue(6),
        build_catalogue(6, price=110),
        build_stock_sheet(6, quantity=0),
        build_catalogue(4, price=110),
        build_catalogue(6, price=110),
    ]
    runs = [api.import_file(source, content) for content in files]
    assert {run["status"] for run in runs} == {"succeeded"}
    return [run["id"] for run in runs], fetch_events(services, fjord)


def test_the_envelope(fjord: Tenancy, history: tuple[list[str], list[dict[str, Any]]]) -> None:
    runs, events = history
    assert len({event["id"] for event in events}) == len(events)
    for event in events:
        assert set(event) == ENVELOPE and event["type"] in TYPES
        assert (event["spec_version"], event["tenant_id"], event["livemode"]) == ("1.0", fjord.tenant.org, True)
        assert (
            event["source"] == "service/catalog" and event["correlation_id"] in runs and event["causation_id"] is None
        )
        assert event["data"]["id"] == event["subject"] and event["data"]["version"] == event["version"]
        assert (
            event["subject"].partition("_")[0]
            == {"product": "prod", "variant": "var", "offer": "ofr"}[event["type"].partition(".")[0]]
        )


def test_versions_rise_by_one_from_creation(history: tuple[list[str], list[dict[str, Any]]]) -> None:
    seen: dict[str, int] = {}
    for event in history[1]:
        assert event["version"] == seen.get(event["subject"], 0) + 1
        assert event["type"].endswith(".created") is (event["version"] == 1)
        seen[event["subject"]] = event["version"]
    assert len(seen) == 6 + 12 + 12


def test_product_events_precede_variant_events_and_these_precede_offer_events(
    history: tuple[list[str], list[dict[str, Any]]],
) -> None:
    known: set[str] = set()
    for event in history[1]:
        if event["type"] == "variant.created":
            assert event["data"]["product"] in known
        if event["type"] == "offer.created":
            assert {event["data"]["product"], event["data"]["variant"]} <= known
        known.add(event["subject"])


def test_old_values_continue_the_previous_new_values(history: tuple[list[str], list[dict[str, Any]]]) -> None:
    """The changes of a subject, applied in order, give its current values."""
    values: dict[tuple[str, str], Any] = {}
    for event in history[1]:
        for field in event["data"]["fields"]:
            place = (event["subject"], field["path"])
            assert field["old"] == values.get(place), (event["type"], field)
            assert field["old"] != field["new"]
            assert field["provenance"]["method"] == "mapped" and field["provenance"]["source"].startswith("src_")
            values[place] = field["new"]


def test_applied_changes_equal_the_catalogue(fjord: Tenancy, history: tuple[list[str], list[dict[str, Any]]]) -> None:
    values: dict[str, dict[str, Any]] = {}
    for event in history[1]:
        changed = {field["path"]: field["new"] for field in event["data"]["fields"]}
        values.setdefault(event["subject"], {}).update(changed)
    for offer in fjord.api.list_all("/v1/offers"):
        stated = {name: value for name, value in values[offer["id"]].items() if value is not None}
        assert {name: offer[name] for name in stated} == stated
        assert "withdrawn_at" not in offer
    for product in fjord.api.list_all("/v1/products"):
        stated = {path.removeprefix("data."): value for path, value in values[product["id"]].items()}
        assert product["data"] == stated


def test_the_events_of_each_run(history: tuple[list[str], list[dict[str, Any]]]) -> None:
    runs, events = history
    by_run = [
        sorted({(e["type"], *e["data"].get("facets", ())) for e in events if e["correlation_id"] == run})
        for run in runs
    ]
    assert by_run[0] == [("offer.created",), ("product.created",), ("variant.created",)]
    assert by_run[1] == [("offer.changed", "price")]
    assert by_run[2] == [("offer.changed", "stock", "availability")]
    assert all(kind == "offer.changed" for kind, *_ in by_run[3] + by_run[4])


def test_test_mode_publishes_test_events(services: ServiceProcesses) -> None:
    sandbox = services.create_organisation(livemode=False)
    source = sandbox.api.create_source("push", config={"currency": "usd"})
    sandbox.api.wait_for_end(sandbox.api.push(source, [build_record("A")])["id"])
    events = fetch_events(services, sandbox)
    assert len(events) == 3 and {event["livemode"] for event in events} == {False}


def test_a_dry_run_publishes_no_events(services: ServiceProcesses, fjord: Tenancy) -> None:
    source = fjord.api.create_source("push", config={"currency": "usd"})
    before = services.fetch_value("SELECT coalesce(sum(last), 0) FROM event_logs")
    answer = fjord.api.call(
        "POST", f"/v1/sources/{source}/records", {"records": [build_record("A")]}, Service_Dry_Run="true"
    )
    assert answer.status == 202 and answer.headers["service-dry-run"] == "true"
    assert fjord.api.list_all(f"/v1/sources/{source}/runs") == [] and fetch_events(services, fjord) == []
    assert services.fetch_value("SELECT coalesce(sum(last), 0) FROM event_logs") == before
