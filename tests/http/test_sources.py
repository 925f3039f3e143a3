"""Sources over HTTP: creation, changes, credentials and source tests."""

import json
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
import pytest_asyncio

from domain.ingestion.ports import FetchFailed, ResponseHead
from domain.kernel.ids import is_id
from domain.secrets.ports import Vault
from domain.sources.model import Schedule, StatusReason
from domain.sources.ports import SourceStore
from tests.http.sources import FILE_SOURCE, PUSH_SOURCE, URL_SOURCE, SourceHarness, open_source_harness

pytestmark = pytest.mark.asyncio
UNKNOWN = "src_0000000000000000000000"


@pytest_asyncio.fixture(name="harness")
async def open_harness() -> AsyncIterator[SourceHarness]:
    """Run the application."""
    async with open_source_harness() as harness:
        yield harness


async def _refused(harness: SourceHarness, status: int, fields: Any) -> Any:
    response = await harness.client.post("/v1/sources", {**URL_SOURCE, **fields})
    assert response.status == status, response.body
    return response


async def test_create(harness: SourceHarness) -> None:
    response = await harness.client.post("/v1/sources", URL_SOURCE)
    source = response.json()
    assert response.status == 201
    assert response.headers["location"].endswith(f"/v1/sources/{source['id']}")
    assert response.headers["etag"].startswith('"1-')
    assert is_id("src", source["id"])
    assert source == {
        "object": "source",
        "id": source["id"],
        "catalogue": harness.application.orgs["Fjord"].catalogues[0],
        "name": "Lindgren",
        "kind": "url",
        "connector": "csv",
        "config": {"url": "https://vendor.example/feed.csv"},
        "schedule": {"adaptive": False},
        "status": "active",
        "licence_basis": "unknown",
        "first_party": False,
        "has_credentials": False,
        "freshness": {"catalogue": None, "stock": None},
        "version": 1,
        "created_at": "2026-11-20T13:08:00.000Z",
        "updated_at": "2026-11-20T13:08:00.000Z",
    }
    [entry] = await harness.list_audit_entries(source["id"])
    assert entry.change.action == "create" and entry.change.after["name"] == "Lindgren"
    assert entry.context.operation == "sources.create"


@pytest.mark.parametrize(
    ("fields", "connector"),
    [
        ({"config": {"url": "https://a.example/", "platform": "shopify"}}, "shopify"),
        ({"config": {"url": "https://a.example/", "platform": "woocommerce"}}, "csv"),
        ({"kind": "file", "config": {"format": "xlsx"}}, "csv"),
        ({"kind": "mail", "config": {"inbound": {"senders": ["a@b.example"]}}}, "csv"),
        ({"kind": "api", "config": {}}, "api"),
        ({"kind": "push", "config": {}}, "push"),
        ({"kind": "api", "config": {}, "connector": "shopify"}, "shopify"),
    ],
)
async def test_the_connector_follows_kind_and_platform(harness: SourceHarness, fields: Any, connector: str) -> None:
    assert (await harness.create_source(**fields))["connector"] == connector


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"connector": "nobody"}, ("connector", "invalid_value")),
        ({"config": {}}, ("config.url", "required")),
        ({"config": {"url": "ftp://a.example/x"}}, ("config.url", "invalid_format")),
        ({"config": {"url": "https://a.example/", "colour": 1}}, ("config.colour", "unknown_field")),
        ({"config": {"url": "https://a.example/", "pages": 0}}, ("config.pages", "too_small")),
        ({"config": {"url": "https://a.example/", "currency": "xxx"}}, ("config.currency", "invalid_value")),
        ({"kind": "push", "config": {"url": "https://a.example/"}}, ("config.url", "unknown_field")),
        (
            {"config": {"url": "https://a.example/", "media_base_url": "ftp://a.example/"}},
            ("config.media_base_url", "invalid_format"),
        ),
        (
            {"kind": "push", "config": {"media_base_url": "https://a.example/?pictures"}},
            ("config.media_base_url", "invalid_format"),
        ),
        ({"kind": "mail", "config": {}}, ("config.inbound", "required")),
        (
            {"kind": "mail", "config": {"inbound": {"senders": [7]}}},
            ("config.inbound.senders.0", "invalid_type"),
        ),
        ({"schedule": {"interval_minutes": 4}}, ("schedule.interval_minutes", "too_small")),
        ({"schedule": {"interval_minutes": 43_201}}, ("schedule.interval_minutes", "too_large")),
        ({"schedule": {"stock_interval_minutes": 1_441}}, ("schedule.stock_interval_minutes", "too_large")),
        ({"licence_basis": "maybe"}, ("licence_basis", "invalid_value")),
        ({"kind": "fax"}, ("kind", "invalid_value")),
        ({"status": "active"}, ("status", "unknown_field")),
    ],
)
async def test_invalid_fields_are_reported(harness: SourceHarness, fields: Any, fault: tuple[str, str]) -> None:
    assert fault in (await _refused(harness, 400, fields)).faults


@pytest.mark.parametrize(
    "fields",
    [
        {"connector": "api"},
        {"connector": "push"},
        {"kind": "push", "config": {}, "connector": "csv"},
        {"kind": "file", "config": {}, "schedule": {"interval_minutes": 60}},
        {"kind": "push", "config": {}, "schedule": {"interval_minutes": 60}},
        {"connector": "reader", "schedule": {"interval_minutes": 60}},
        {"connector": "shopify", "schedule": {"stock_interval_minutes": 60}},
        {"config": {"url": "http://127.0.0.1/feed.csv"}},
        {"config": {"url": "http://localhost/feed.csv"}},
        {"config": {"url": "http://0x7f.1/feed.csv"}},
        {"config": {"url": "http://2130706433/feed.csv"}},
        {"config": {"url": "http://[::ffff:10.0.0.1]/feed.csv"}},
        {"config": {"url": "http://169.254.169.254/latest/meta-data"}},
        {"config": {"url": "https://vendor.example:8443/feed.csv"}},
        {"config": {"url": "https://anna:secret@vendor.example/feed.csv"}},
        {"config": {"url": "https://a.example/", "media_base_url": "http://169.254.169.254/latest"}},
        {"config": {"url": "https://a.example/", "media_base_url": "http://localhost/"}},
        {"config": {"url": "https://a.example/", "media_base_url": "https://anna:secret@vendor.example/"}},
        {"kind": "push", "config": {"media_base_url": "http://10.0.0.1/"}},
    ],
)
async def test_unsupported_settings_are_refused(harness: SourceHarness, fields: Any) -> None:
    response = await _refused(harness, 422, fields)
    assert response.code == "unprocessable"
    assert len(response.json()["detail"]) > 20


@pytest.mark.parametrize("url", ["http://files.internal:81/feed.csv", "http://127.0.0.1:9000/x", "http://8.8.8.8/x"])
async def test_allowed_addresses(harness: SourceHarness, url: str) -> None:
    assert (await harness.create_source(config={"url": url}))["config"]["url"] == url


async def test_a_vendors_source_is_its_own(harness: SourceHarness) -> None:
    await harness.application.create_organisation("Lind", harness.application.orgs["Fjord"].plan, kind="vendor")
    client = await harness.application.create_client("Lind", livemode=False)
    source = (await client.post("/v1/sources", URL_SOURCE)).json()
    assert source["first_party"] is True
    assert source["catalogue"] == harness.application.orgs["Lind"].catalogues[1]


async def test_only_vendors_have_sources_of_their_own(harness: SourceHarness) -> None:
    response = await harness.client.post("/v1/sources", URL_SOURCE | {"first_party": True})
    assert (response.status, response.faults) == (422, {("first_party", "invalid_value")})
    assert (await harness.create_source(first_party=False))["first_party"] is False


async def test_sources_of_others_are_not_found(harness: SourceHarness) -> None:
    source = await harness.create_source()
    path = f"/v1/sources/{source['id']}"
    for client in (
        await harness.application.create_client("Oak"),
        await harness.application.create_client(livemode=False),
    ):
        assert (await client.get("/v1/sources")).json()["data"] == []
        responses = [
            await client.get(path),
            await client.send_json("PATCH", path, {"name": "x"}, if_match="*"),
            await client.send_json("PUT", path + "/credentials", {"credentials": {"token": "t"}}),
            await client.send_json("DELETE", path + "/credentials"),
            await client.post(path + "/test"),
            await client.post(path + "/runs"),
            await client.get(path + "/runs"),
            await client.post(path + "/records", {"records": [{"product": {"external_id": "a"}}]}),
            await client.post(path + "/uploads", {"filename": "a", "content_type": "text/csv", "bytes": 1}),
        ]
        assert [response.status for response in responses] == [404] * len(responses)


async def test_list_and_read(harness: SourceHarness) -> None:
    sources = [await harness.create_source(name=str(number)) for number in range(3)]
    expected = sorted(sources, key=lambda source: source["id"], reverse=True)
    first = (await harness.client.get("/v1/sources?limit=2")).json()
    assert first["data"] == expected[:2] and first["has_more"] is True
    second = (await harness.client.get(f"/v1/sources?limit=2&starting_after={first['next_cursor']}")).json()
    assert second["data"] == expected[2:] and second["next_cursor"] is None
    response = await harness.client.get(f"/v1/sources/{sources[0]['id']}")
    assert response.json() == sources[0]
    assert response.headers["etag"].startswith('"1-')


async def test_freshness(harness: SourceHarness) -> None:
    source = await harness.create_source(schedule={"interval_minutes": 60, "stock_interval_minutes": 10})
    now = harness.application.clock.now()
    await harness.change_source(
        source["id"], catalogue_at=now - timedelta(minutes=91), stock_at=now - timedelta(minutes=31)
    )
    fresh = (await harness.client.get(f"/v1/sources/{source['id']}")).json()["freshness"]
    assert fresh["catalogue"] == {"observed_at": "2026-11-20T11:37:00.000Z", "age_seconds": 5460, "state": "late"}
    assert fresh["stock"]["state"] == "stale"
    stretched = {"schedule": Schedule(60, 10, adaptive=True), "interval_factor": {"catalogue": 4.0, "stock": 2.0}}
    await harness.change_source(source["id"], **stretched)
    fresh = (await harness.client.get(f"/v1/sources/{source['id']}")).json()["freshness"]
    assert [fresh[stream]["state"] for stream in ("catalogue", "stock")] == ["fresh", "late"]


@pytest.mark.parametrize("suffix", ["/{id}", "", "?limit=5"], ids=["one", "list", "page"])
async def test_the_age_of_a_stream_does_not_change_the_etag(harness: SourceHarness, suffix: str) -> None:
    source = await harness.create_source(schedule={"interval_minutes": 60})
    await harness.change_source(source["id"], catalogue_at=harness.application.clock.now() - timedelta(minutes=80))
    path = "/v1/sources" + suffix.format(id=source["id"])
    first = await harness.client.get(path)
    harness.application.clock.advance(timedelta(minutes=9))
    assert (await harness.client.get(path, if_none_match=first.headers["etag"])).status == 304
    harness.application.clock.advance(timedelta(minutes=2))
    later = await harness.client.get(path, if_none_match=first.headers["etag"])
    assert (later.status, later.headers["etag"] != first.headers["etag"]) == (200, True), "it is late by now"


@pytest.mark.parametrize("kind", ["url", "file", "push"])
async def test_the_base_url_of_pictures(harness: SourceHarness, kind: str) -> None:
    config = {"media_base_url": "https://cdn.vendor.example/pictures/"} | (
        {"url": "https://vendor.example/feed.csv"} if kind == "url" else {}
    )
    assert (await harness.create_source(kind=kind, config=config))["config"] == config


async def test_update(harness: SourceHarness) -> None:
    source = await harness.create_source()
    harness.application.clock.advance(timedelta(seconds=1))
    response = await harness.update_source(source, name="Renamed", licence_basis="vendor_agreement")
    changed = response.json()
    assert response.status == 200 and response.headers["etag"].startswith('"2-')
    assert (changed["name"], changed["licence_basis"], changed["version"]) == ("Renamed", "vendor_agreement", 2)
    assert changed["updated_at"] == "2026-11-20T13:08:01.000Z"
    assert (await harness.list_audit_entries(source["id"]))[-1].change.before == {
        "name": "Lindgren",
        "licence_basis": "unknown",
    }
    assert (await harness.list_audit_entries(source["id"]))[-1].change.after == {
        "name": "Renamed",
        "licence_basis": "vendor_agreement",
    }


async def test_update_requires_the_version(harness: SourceHarness) -> None:
    source = await harness.create_source()
    path = f"/v1/sources/{source['id']}"
    assert (await harness.update_source(source, name="first")).status == 200
    stale = await harness.update_source(source, name="second")
    assert (stale.status, stale.code) == (412, "precondition_failed")
    assert "version 2" in stale.json()["detail"]
    missing = await harness.client.send_json("PATCH", path, {"name": "x"})
    assert (missing.status, missing.code) == (428, "precondition_required")
    assert (await harness.client.send_json("PATCH", path, {"name": "third"}, if_match="*")).status == 200


async def test_an_update_that_changes_nothing_leaves_the_version(harness: SourceHarness) -> None:
    source = await harness.create_source()
    same = await harness.update_source(source, name=source["name"], config=source["config"], status="active")
    assert same.json() == source
    assert len(await harness.list_audit_entries(source["id"])) == 1


async def test_update_checks_as_create_does(harness: SourceHarness) -> None:
    source = await harness.create_source()
    assert (await harness.update_source(source, connector="nobody")).faults == {("connector", "invalid_value")}
    assert (await harness.update_source(source, connector="api")).status == 422
    assert (await harness.update_source(source, config={})).faults == {("config.url", "required")}
    assert (await harness.update_source(source, config={"url": "http://10.1.2.3/"})).status == 422
    assert (await harness.update_source(source, kind="file")).faults == {("kind", "unknown_field")}
    assert (await harness.update_source(source, status="blocked")).faults == {("status", "invalid_value")}
    assert (await harness.load_source(source["id"])).version == 1


async def test_a_dry_update_changes_nothing(harness: SourceHarness) -> None:
    source = await harness.create_source()
    path = f"/v1/sources/{source['id']}"
    response = await harness.client.send_json("PATCH", path, {"name": "x"}, if_match="*", service_dry_run="true")
    assert response.json()["name"] == "x"
    response = await harness.client.send_json("PATCH", path, {"name": "x"}, if_match="*", service_dry_run="explain")
    [change] = response.json()["changes"]
    assert change["fields"] == [{"path": "name", "old": "Lindgren", "new": "x"}]
    assert (await harness.client.get(path)).json() == source


async def test_a_schedule_states_when_to_pull(harness: SourceHarness) -> None:
    source = await harness.create_source(schedule={"interval_minutes": 60})
    now = harness.application.clock.now()
    assert (await harness.load_source(source["id"])).next_pull == now
    await harness.change_source(source["id"], catalogue_at=now)
    source = (await harness.client.get(f"/v1/sources/{source['id']}")).json()
    await harness.update_source(
        source, schedule={"interval_minutes": 90, "stock_interval_minutes": 15, "adaptive": True}
    )
    stored = await harness.load_source(source["id"])
    assert (stored.next_pull, stored.next_stock_pull) == (now + timedelta(minutes=90), now)
    source = (await harness.client.get(f"/v1/sources/{source['id']}")).json()
    assert source["schedule"] == {"interval_minutes": 90, "stock_interval_minutes": 15, "adaptive": True}
    paused = (await harness.update_source(source, status="paused")).json()
    assert (await harness.load_source(source["id"])).next_pull is None
    await harness.update_source(paused, status="active")
    assert (await harness.load_source(source["id"])).next_pull == now + timedelta(minutes=90)


async def test_a_blocked_source_is_set_active(harness: SourceHarness) -> None:
    source = await harness.create_source()
    reason = StatusReason("fetch_refused", "The address is not public.")
    await harness.change_source(source["id"], status="blocked", status_reason=reason, failures=10)
    blocked = (await harness.client.get(f"/v1/sources/{source['id']}")).json()
    assert blocked["status_reason"] == {"code": "fetch_refused", "message": reason.message}
    active = (await harness.update_source(blocked, status="active")).json()
    assert active["status"] == "active" and "status_reason" not in active
    assert (await harness.load_source(source["id"])).failures == 0


async def test_a_disabled_source_remains_disabled(harness: SourceHarness) -> None:
    source = await harness.create_source()
    await harness.change_source(source["id"], status="disabled")
    source = (await harness.client.get(f"/v1/sources/{source['id']}")).json()
    for status in ("active", "paused"):
        assert (await harness.update_source(source, status=status)).code == "conflict"
    assert (await harness.update_source(source, name="still nameable")).status == 200


async def test_inbound_addresses_are_added_and_removed(harness: SourceHarness) -> None:
    inbound = {"senders": ["orders@vendor.example"]}
    source = await harness.create_source(kind="mail", config={"inbound": inbound})
    local, _, domain = source["inbound_address"].partition("@")
    assert len(local) == 20 and domain == "in.joinery.test"
    kept = (await harness.update_source(source, config={"inbound": inbound, "currency": "eur"})).json()
    assert kept["inbound_address"] == source["inbound_address"]
    other = await harness.create_source(kind="mail", config={"inbound": inbound})
    assert other["inbound_address"] != source["inbound_address"]
    file = await harness.create_source(**FILE_SOURCE, config={"inbound": inbound})
    assert "inbound_address" not in (await harness.update_source(file, config={})).json()


async def test_credentials_are_encrypted_and_never_shown(harness: SourceHarness) -> None:
    source = await harness.create_source(kind="api", config={}, schedule={"interval_minutes": 60})
    path = f"/v1/sources/{source['id']}/credentials"
    assert (await harness.load_source(source["id"])).next_pull is None
    response = await harness.client.send_json("PUT", path, {"credentials": {"token": "shpat_Geheim"}})
    assert response.status == 200 and response.json()["has_credentials"] is True and response.json()["version"] == 2
    assert (await harness.load_source(source["id"])).next_pull == harness.application.clock.now()
    async with harness.application.uow.begin_reading(harness.tenant) as tx:
        sealed = await tx[SourceStore].load_encrypted_credentials(source["id"])
    assert b"Geheim" not in sealed
    assert harness.application.dependencies[Vault].decrypt(
        sealed, source["id"], harness.services.connectors.find_connector("api").describe_credential_destination({})
    ) == {"token": "shpat_Geheim"}
    explained = await harness.client.send_json(
        "PUT", path, {"credentials": {"token": "Geheim2"}}, service_dry_run="explain"
    )
    outputs = [response.body, explained.body, repr(await harness.list_audit_entries(source["id"])).encode()]
    assert not any(b"Geheim" in text for text in outputs)
    gone = await harness.client.send_json("DELETE", path)
    assert gone.json()["has_credentials"] is False and gone.json()["version"] == 3
    assert (await harness.client.send_json("DELETE", path)).json()["version"] == 3
    async with harness.application.uow.begin_reading(harness.tenant) as tx:
        assert await tx[SourceStore].load_encrypted_credentials(source["id"]) is None


async def test_changing_an_undeclared_setting_deletes_credentials(harness: SourceHarness) -> None:
    """A third-party connector may send credentials to an address in any of its settings."""
    source = await harness.create_source(kind="api", config={"pages": 2, "currency": "usd"})
    path = f"/v1/sources/{source['id']}"
    source = (await harness.client.send_json("PUT", path + "/credentials", {"credentials": {"token": "t"}})).json()
    for kept in (
        {"name": "Renamed"},
        {"schedule": {"interval_minutes": 60}},
        {"config": {"currency": "usd", "pages": 2}},
    ):
        source = (await harness.update_source(source, **kept)).json()
        assert source["has_credentials"] is True
    planned = (await harness.load_source(source["id"])).next_pull
    source = (await harness.update_source(source, config={"pages": 3, "currency": "usd"})).json()
    assert source["has_credentials"] is False
    assert planned is not None and (await harness.load_source(source["id"])).next_pull == planned
    change = (await harness.list_audit_entries(source["id"]))[-1].change
    assert (change.before["has_credentials"], change.after["has_credentials"]) == (True, False)
    async with harness.application.uow.begin_reading(harness.tenant) as tx:
        assert await tx[SourceStore].load_encrypted_credentials(source["id"]) is None
    again = (await harness.client.send_json("PUT", path + "/credentials", {"credentials": {"token": "t"}})).json()
    assert (await harness.update_source(again, connector="shopify")).json()["has_credentials"] is False


async def test_credentials_are_checked_by_the_connector(harness: SourceHarness) -> None:
    source = await harness.create_source(kind="api", config={})
    path = f"/v1/sources/{source['id']}/credentials"
    wrong = await harness.client.send_json("PUT", path, {"credentials": {"token": "", "pin": "Geheim"}})
    assert wrong.faults == {("credentials.token", "too_short"), ("credentials.pin", "unknown_field")}
    assert b"Geheim" not in wrong.body
    for fields in ({"connector": "open"}, PUSH_SOURCE):
        other = await harness.create_source(**fields)
        response = await harness.client.send_json(
            "PUT", f"/v1/sources/{other['id']}/credentials", {"credentials": {"token": "t"}}
        )
        assert response.code == "unprocessable"


async def test_a_source_is_tested(harness: SourceHarness) -> None:
    source = await harness.create_source()
    path = f"/v1/sources/{source['id']}"
    await harness.client.send_json("PUT", path + "/credentials", {"credentials": {"token": "t"}})
    lines = b"SKU,Title,Price\n" + b"".join(b"A-%d,Table %d,\n" % (n, n) for n in range(9))
    harness.services.connectors.feed = [lines[:20], lines[20:]]
    response = await harness.client.send_json("POST", path + "/test")
    assert response.status == 200
    report = response.json()
    assert report.pop("duration_ms") >= 0
    assert report.pop("sample") == [{"SKU": f"A-{n}", "Title": f"Table {n}", "Price": ""} for n in range(5)]
    mapping = report.pop("mapping")
    assert {("SKU", "sku"), ("Title", "title")} <= {
        (column["column"], column["field"]) for column in mapping["columns"]
    }
    assert (mapping["missing"], report.pop("problems")) == ([], [])
    assert report == {
        "object": "source_test",
        "ok": True,
        "status": 200,
        "served_by": None,
        "final_url": "https://vendor.example/feed.csv",
        "content_type": "text/csv",
        "bytes_read": len(lines),
    }
    [job] = harness.services.connectors.tasks
    assert job.credentials == {"token": "t"} and job.stream == "catalogue"
    assert harness.list_jobs() == [] and (await harness.load_source(source["id"])).version == 2


async def test_a_test_reads_only_the_first_records(harness: SourceHarness) -> None:
    source = await harness.create_source()
    harness.services.connectors.feed = [b"SKU\nA-1\n?\n", b"x" * 3 * 1024 * 1024, b"never"]
    report = (await harness.client.send_json("POST", f"/v1/sources/{source['id']}/test")).json()
    assert report["ok"] is True and report["bytes_read"] == 2 * 1024 * 1024
    assert report["sample"] == [{"SKU": "A-1"}]


@pytest.mark.parametrize(
    ("feed", "code"),
    [
        (FetchFailed("fetch_failed", "The server answered 503."), "fetch_failed"),
        (FetchFailed("credentials_refused", "The server answered 401."), "credentials_refused"),
        ([b"SKU\n?\n"], "parse_failed"),
        ([], "parse_failed"),
    ],
)
async def test_a_failed_test_states_the_reason(harness: SourceHarness, feed: Any, code: str) -> None:
    source = await harness.create_source()
    harness.services.connectors.feed = feed
    response = await harness.client.send_json("POST", f"/v1/sources/{source['id']}/test")
    assert response.status == 200
    assert response.json()["ok"] is False and response.json()["failure"]["code"] == code
    assert (await harness.load_source(source["id"])).status == "active"


async def test_a_failed_test_reports_the_response(harness: SourceHarness) -> None:
    source = await harness.create_source()
    failure = FetchFailed("fetch_failed", "The source answered HTTP 404.")
    failure.response = ResponseHead(404, "https://vendor.example/gone.csv", "text/html")
    harness.services.connectors.feed = failure
    found = (await harness.client.send_json("POST", f"/v1/sources/{source['id']}/test")).json()
    assert (found["status"], found["final_url"], found["content_type"]) == (
        404,
        "https://vendor.example/gone.csv",
        "text/html",
    )


async def test_sources_without_pulling_cannot_be_tested(harness: SourceHarness) -> None:
    inbound = {"inbound": {"senders": ["a@b.example"]}}
    mail = {"kind": "mail", "config": inbound}
    others: list[dict[str, Any]] = [FILE_SOURCE | {"config": {}}, PUSH_SOURCE, mail, {"connector": "reader"}]
    for fields in others:
        source = await harness.create_source(**fields)
        assert (await harness.client.send_json("POST", f"/v1/sources/{source['id']}/test")).code == "unprocessable"


async def test_a_dry_test_sends_no_request(harness: SourceHarness) -> None:
    source = await harness.create_source()
    path = f"/v1/sources/{source['id']}/test"
    assert (await harness.client.send_json("POST", path, service_dry_run="true")).json()["failure"]["code"] == "dry_run"
    explained = await harness.client.send_json("POST", path, service_dry_run="explain")
    assert explained.json()["warnings"] == [
        "A dry run does not call the source. To test the source, omit Service-Dry-Run."
    ]
    assert harness.services.connectors.tasks == []


async def test_operations_on_an_unknown_source_return_404(harness: SourceHarness) -> None:
    assert (await harness.client.get(f"/v1/sources/{UNKNOWN}")).code == "not_found"
    assert json.loads((await harness.client.get("/v1/sources/src_short")).body)["code"] == "not_found"
