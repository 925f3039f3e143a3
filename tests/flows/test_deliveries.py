"""Webhooks with a real worker, receivers of every kind, and the records of their deliveries."""

import json
import shutil
import socket
import subprocess
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from benchmarks.delivery_reconciliation import reconcile
from benchmarks.receiver_client import ReceiverClient, find_free_port
from tests.flows.feeds import build_record
from tests.flows.service_processes import FEEDS, ServiceProcesses, Tenancy, wait_until
from tests.support.webhook_endpoints import EndpointClient, create_endpoint, run_receiver

JS = Path(__file__).parents[1] / "support" / "js"
SECOND = timedelta(seconds=1)


@pytest.fixture(scope="module")
def receiver(services: ServiceProcesses) -> Iterator[ReceiverClient]:
    """Run one receiver for the module; each endpoint has its own path."""
    with run_receiver(services) as client:
        yield client


@pytest.fixture
def sandbox(services: ServiceProcesses) -> Tenancy:
    """Create an organisation in test mode, whose endpoints can use plain HTTP on any port."""
    return services.create_organisation(livemode=False)


@pytest.fixture
def source(sandbox: Tenancy) -> str:
    """Create a push source."""
    return create_push_source(sandbox)


def create_push_source(tenancy: Tenancy) -> str:
    return tenancy.api.create_source("push", config={"currency": "usd"})


def push_products(tenancy: Tenancy, source: str, *names: str, price: object = "10.50", quantity: int = 4) -> None:
    """Push the products with the price, and wait for the end of the run."""
    records = [build_record(name, price=price, quantity=quantity) for name in names]
    assert tenancy.api.wait_for_end(tenancy.api.push(source, records)["id"])["status"] == "succeeded"


def parse_time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def has_attempts(times: int) -> Any:
    return lambda delivery: len(delivery["attempts"]) >= times and delivery["status"] != "sending"


def publish_sample(tenancy: Tenancy, type: str = "offer.changed") -> Any:
    return tenancy.api.post("/v1/test/events", {"type": type})["event"]


@pytest.mark.soak
def test_the_result_of_each_kind_of_receiver(sandbox: Tenancy, receiver: ReceiverClient) -> None:
    """All endpoints are tested at once, because slow ones take fifteen seconds."""
    closed = f"http://{FEEDS}:{find_free_port(FEEDS)}/"
    private = socket.gethostname()
    kinds: dict[str, dict[str, Any]] = {
        "ok": {},
        "created": {"does": {"status": 201, "text": "made"}},
        "error": {"does": {"status": 500, "text": "out of order"}},
        "refuses": {"url": closed},
        "closes": {"does": {"do": "close"}},
        "redirects": {"does": {"status": 302, "location": receiver.url("/trap")}},
        "tls": {"url": receiver.url("/tls", tls=True)},
        "dns": {"url": "http://nowhere.invalid/"},
        "hangs": {"does": {"do": "hang"}},
        "drips": {"does": {"do": "drip_headers"}},
        "drips its body": {"does": {"do": "drip_body"}},
        "slow": {"does": {"after": 14}},
        "aborts": {"does": {"status": 503, "abort": "yes"}},
        "big": {"does": {"status": 500, "big": 100_000}},
    }
    if socket.gethostbyname(private).startswith("127."):
        kinds["private"] = {"url": f"http://{private}:{receiver.port}/private"}
    endpoints = {name: create_endpoint(sandbox.api, receiver, **settings) for name, settings in kinds.items()}
    sent = {name: one.send_test_event() for name, one in endpoints.items()}
    ended = {name: one.wait_for_delivery(has_attempts(1), 40) for name, one in endpoints.items()}
    first = {
        name: (found["status"], found["attempts"][0].get("failure"), found["attempts"][0].get("response_status"))
        for name, found in ended.items()
    }
    assert first == {
        "ok": ("succeeded", None, 204),
        "created": ("succeeded", None, 201),
        "error": ("pending", "http_status", 500),
        "refuses": ("pending", "connect", None),
        "closes": ("pending", "connect", None),
        "redirects": ("pending", "redirect", 302),
        "tls": ("pending", "tls", None),
        "dns": ("pending", "dns", None),
        "hangs": ("pending", "timeout", None),
        "drips": ("pending", "timeout", None),
        "drips its body": ("succeeded", None, 200),
        "slow": ("succeeded", None, 204),
        "aborts": ("failed", "aborted", 503),
        "big": ("pending", "http_status", 500),
        **({"private": ("pending", "refused_address", None)} if "private" in kinds else {}),
    }
    assert not receiver.deliveries("/trap") and not receiver.deliveries("/private") and not receiver.deliveries("/tls")
    assert ended["created"]["attempts"][0]["response_body"] == "made"
    assert ended["error"]["attempts"][0]["response_body"] == "out of order"
    assert ended["big"]["attempts"][0]["response_body"] == "x" * 1024
    assert 13_900 <= ended["slow"]["attempts"][0]["duration_ms"] < 15_000
    assert ended["hangs"]["attempts"][0]["duration_ms"] >= 14_900
    for name, delivery in ended.items():
        assert (delivery["id"], delivery["event"]) == (sent[name]["id"], sent[name]["event"])
        _assert_retry_schedule(delivery)
        for got in endpoints[name].list_received():
            assert got.verified == [0] and got.id == delivery["event"] and got.body == delivery["body"]
    assert len(endpoints["aborts"].list_received()) == 1


def _assert_retry_schedule(delivery: Any) -> None:
    """Check that the time of the next attempt fits the last one."""
    if delivery["status"] != "pending":
        assert "next_attempt_at" not in delivery and parse_time(delivery["completed_at"]) >= parse_time(
            delivery["created_at"]
        )
        return
    attempts = delivery["attempts"]
    ended = parse_time(attempts[-1]["at"]) + timedelta(milliseconds=attempts[-1]["duration_ms"])
    wait = parse_time(delivery["next_attempt_at"]) - ended
    assert abs(wait - {1: 5 * SECOND, 2: timedelta(minutes=5)}[len(attempts)]) < 2 * SECOND


def test_a_failed_delivery_is_retried_after_five_seconds(sandbox: Tenancy, receiver: ReceiverClient) -> None:
    twice, always = (
        create_endpoint(sandbox.api, receiver, does={"status": 500, "times": 1}),
        create_endpoint(sandbox.api, receiver, does={"status": 500}),
    )
    event = publish_sample(sandbox)
    done, waiting = twice.wait_for_delivery(has_attempts(2)), always.wait_for_delivery(has_attempts(2))
    assert (done["status"], [attempt["status"] for attempt in done["attempts"]]) == (
        "succeeded",
        ["failed", "succeeded"],
    )
    assert waiting["status"] == "pending"
    _assert_retry_schedule(waiting)
    first, again = twice.wait_for_received(2)
    assert first.id == again.id == event["id"] and first.body == again.body
    assert 4.5 <= again.received - first.received <= 20
    assert first.headers and again.headers
    assert int(again.headers["webhook-timestamp"]) - int(first.headers["webhook-timestamp"]) >= 4
    assert parse_time(always.get_endpoint()["failing_since"]) - parse_time(waiting["attempts"][0]["at"]) < 2 * SECOND
    assert "failing_since" not in twice.get_endpoint() and "last_success_at" in twice.get_endpoint()


@pytest.mark.parametrize(("status", "date"), [(429, "no"), (502, "yes"), (504, "no")])
def test_retry_after_is_obeyed(sandbox: Tenancy, receiver: ReceiverClient, status: int, date: str) -> None:
    one = create_endpoint(sandbox.api, receiver, does={"status": status, "retry_after": 9, "date": date, "times": 1})
    one.send_test_event()
    delivery = one.wait_for_delivery(has_attempts(1))
    wait = parse_time(delivery["next_attempt_at"]) - parse_time(delivery["attempts"][0]["at"])
    assert 7 * SECOND < wait < 11 * SECOND
    first, again = one.wait_for_received(2)
    assert again.received - first.received > 7
    assert one.wait_for_delivery(has_attempts(2))["status"] == "succeeded"


def test_retry_after_of_other_statuses_is_ignored(sandbox: Tenancy, receiver: ReceiverClient) -> None:
    one = create_endpoint(sandbox.api, receiver, does={"status": 503, "retry_after": 3600})
    one.send_test_event()
    delivery = one.wait_for_delivery(has_attempts(1))
    _assert_retry_schedule(delivery)


def test_an_endpoint_that_is_gone_is_disabled_at_once(sandbox: Tenancy, receiver: ReceiverClient, source: str) -> None:
    witness = create_endpoint(sandbox.api, receiver, ("delivery.disabled",))
    gone = create_endpoint(sandbox.api, receiver, ("product.created",), does={"status": 410})
    push_products(sandbox, source, "A", "B", "C")
    notice = witness.wait_for_received(1)[0]
    record = gone.get_endpoint()
    assert (record["status"], record["status_reason"]) == ("disabled", {"code": "gone"})
    assert notice.type == "delivery.disabled" and notice.event["data"]["id"] == gone.id
    assert notice.event["data"]["status_reason"] == {"code": "gone"} and "secret" not in notice.event["data"]
    assert {delivery["status"] for delivery in gone.list_deliveries()} == {"failed"}
    received = len(gone.list_received())
    push_products(sandbox, source, "D")
    assert sandbox.api.call("POST", gone.target + "/test").status == 409
    assert len(gone.list_received()) == received and len(witness.list_received()) == 1
    gone.receiver.set_behaviour(gone.path, status=204)
    assert gone.patch_endpoint(status="enabled")["status"] == "enabled"
    push_products(sandbox, source, "E")
    wait_until(lambda: len(gone.list_received()) > received, "the endpoint receives again")
    assert gone.list_received()[-1].verified == [0]


def test_the_other_mode_and_other_organisations_receive_no_events(
    services: ServiceProcesses, sandbox: Tenancy, receiver: ReceiverClient
) -> None:
    mine = create_endpoint(sandbox.api, receiver)
    theirs = create_endpoint(services.create_organisation(livemode=False).api, receiver)
    event = publish_sample(sandbox)
    assert mine.wait_for_received(1)[0].id == event["id"]
    assert not theirs.list_received() and not theirs.list_deliveries()


def test_rotation_signs_with_both_secrets(sandbox: Tenancy, receiver: ReceiverClient) -> None:
    one = create_endpoint(sandbox.api, receiver)
    one.send_test_event()
    one.wait_for_received(1)
    one.rotate_secret(overlap_hours=1)
    one.send_test_event()
    one.wait_for_received(2)
    one.rotate_secret(overlap_hours=0)
    one.send_test_event()
    assert [got.verified for got in one.wait_for_received(3)] == [[0], [0, 1], [2]]
    assert one.list_received()[1].headers and one.list_received()[1].headers["webhook-signature"].count("v1,") == 2


def test_resend_and_recover(sandbox: Tenancy, receiver: ReceiverClient, source: str) -> None:
    one = create_endpoint(
        sandbox.api, receiver, ("offer.created", "offer.changed"), does={"status": 500, "abort": "yes"}
    )
    push_products(sandbox, source, "A", "B")
    for price in (11, 12):
        push_products(sandbox, source, "A", "B", price=price)
    refused = one.wait_for_received(6)
    wait_until(lambda: len(one.list_deliveries(status="failed")) == 6, "all failed")
    one.receiver.set_behaviour(one.path, status=204)
    oldest = one.list_deliveries()[-1]
    again = sandbox.api.post(f"{one.target}/deliveries/{oldest['id']}/resend")
    assert again["status"] == "pending"
    resent = one.wait_for_received(7)[-1]
    assert (resent.id, resent.body, resent.verified) == (oldest["event"], oldest["body"], [0])
    wait_until(lambda: len(one.list_deliveries(status="succeeded")) == 1, "the delivery succeeded")
    since = min(delivery["created_at"] for delivery in one.list_deliveries())
    assert sandbox.api.post(one.target + "/recover", {"since": since})["requeued"] == 5
    recovered = one.wait_for_received(12)[7:]
    assert {got.id for got in recovered} == {got.id for got in refused} - {resent.id}
    for subject in {got.subject for got in recovered}:
        versions = [got.version for got in recovered if got.subject == subject]
        assert versions == sorted(versions)
    wait_until(lambda: len(one.list_deliveries(status="succeeded")) == 6, "all succeeded")
    assert all(len(delivery["attempts"]) == 2 for delivery in one.list_deliveries())


def test_samples_reach_subscribed_endpoints(sandbox: Tenancy, receiver: ReceiverClient) -> None:
    all_of_them, products = (
        create_endpoint(sandbox.api, receiver),
        create_endpoint(sandbox.api, receiver, ("product.updated", "product.merged")),
    )
    events = [
        publish_sample(sandbox, type)
        for type in ("product.updated", "offer.changed", "source.blocked", "product.merged")
    ]
    assert {got.id for got in all_of_them.wait_for_received(4)} == {event["id"] for event in events}
    assert [got.type for got in products.wait_for_received(2)] in (
        ["product.updated", "product.merged"],
        ["product.merged", "product.updated"],
    )
    page = sandbox.api.get("/v1/changes")
    assert [event["id"] for event in page["data"]] == [event["id"] for event in events]


def test_filters(sandbox: Tenancy, receiver: ReceiverClient, source: str) -> None:
    other = create_push_source(sandbox)
    catalogue = sandbox.organisation.get_catalogue_id(False)
    foreign = sandbox.organisation.get_catalogue_id(True)
    mine = create_endpoint(sandbox.api, receiver, ("offer.created",), filters={"sources": [source]})
    offers = create_endpoint(sandbox.api, receiver, ("offer.created", "product.created"), filters={"sources": [other]})
    ours = create_endpoint(sandbox.api, receiver, ("product.created",), filters={"catalogues": [catalogue]})
    nothing = create_endpoint(sandbox.api, receiver, filters={"catalogues": [foreign]})
    push_products(sandbox, source, "A")
    push_products(sandbox, other, "B")
    assert [got.event["data"]["source"] for got in mine.wait_for_received(1)] == [source]
    assert sorted(got.type for got in offers.wait_for_received(3)) == [
        "offer.created",
        "product.created",
        "product.created",
    ]
    assert len(ours.wait_for_received(2)) == 2
    push_products(sandbox, source, "C")
    for one, number in ((ours, 3), (mine, 2), (offers, 4)):
        one.wait_for_received(number)
    assert [got.event["data"]["source"] for got in offers.list_received() if got.type == "offer.created"] == [other]
    assert nothing.list_received() == [] and nothing.list_deliveries() == []


def test_changes_within_the_window_are_one_delivery(sandbox: Tenancy, receiver: ReceiverClient, source: str) -> None:
    push_products(sandbox, source, "A")
    wanted = ("offer.changed",)
    thin = create_endpoint(sandbox.api, receiver, wanted, coalesce_seconds=6)
    fat = create_endpoint(sandbox.api, receiver, wanted, coalesce_seconds=6, payload="fat")
    each = create_endpoint(sandbox.api, receiver, wanted)
    push_products(sandbox, source, "A", price=12)
    push_products(sandbox, source, "A", price=13, quantity=5)
    first, last = each.wait_for_received(2)
    slim, whole = thin.wait_for_received(1)[0], fat.wait_for_received(1)[0]
    assert slim.id == whole.id == last.id and slim.subject == last.subject
    assert (slim.version, slim.previous_version) == (last.version, first.previous_version) == (3, 1)
    assert slim.event["data"]["fields"] == [{"path": "price"}, {"path": "quantity"}]
    fields = {field["path"]: (field["old"], field["new"]) for field in whole.event["data"]["fields"]}
    assert fields == {"price": (1050, 1300), "quantity": (4, 5)}
    shown = whole.event["data"]["object"]
    assert (shown["object"], shown["id"], shown["price"], shown["version"]) == ("offer", slim.subject, 1300, 3)
    assert slim.received - first.received > 4
    assert len(thin.list_received()) == len(fat.list_received()) == 1
    assert first.event["data"]["fields"] == [{"path": "price"}]


@pytest.mark.soak
def test_versions_are_delivered_completely_and_in_order(
    sandbox: Tenancy, receiver: ReceiverClient, source: str
) -> None:
    names = [f"P{number}" for number in range(20)]
    steady, shaky = (
        create_endpoint(sandbox.api, receiver),
        create_endpoint(sandbox.api, receiver, does={"status": 500, "times": 1}),
    )
    for price in range(10, 16):
        push_products(sandbox, source, *names, price=price)
    ids = [event["id"] for event in _read_feed(sandbox)]
    assert len(ids) == 20 * 3 + 5 * 20
    steady.wait_for_received(len(ids))
    wait_until(
        lambda: len({got.id for got in shaky.list_received() if got.attempt > 1}) == len(ids), "all again", 90, 0.5
    )
    report = reconcile({steady.path: ids, shaky.path: ids}, receiver.deliveries(steady.path, shaky.path))
    assert report.is_clean and report.repeats == len(ids), str(report)
    for got in steady.list_received():
        assert got.previous_version == (None if got.version == 1 else got.version - 1)


def _read_feed(tenancy: Tenancy, cursor: str | None = None) -> list[Any]:
    """Return the change feed from a cursor to its end."""
    events: list[Any] = []
    while True:
        page = tenancy.api.get("/v1/changes", limit=1000, **({"cursor": cursor} if cursor else {}))
        events += page["data"]
        cursor = page["next_cursor"]
        if page["caught_up"]:
            return events


def test_the_feed_continues_where_deliveries_ended(sandbox: Tenancy, receiver: ReceiverClient, source: str) -> None:
    """The Service-Feed-Cursor of the last successful delivery returns exactly the undelivered events."""
    one = create_endpoint(sandbox.api, receiver)
    push_products(sandbox, source, "A", "B")
    good = one.wait_for_received(6)
    wait_until(lambda: len(one.list_deliveries(status="succeeded")) == 6, "all succeeded")
    last = _send_sample(one, sandbox)
    one.receiver.set_behaviour(one.path, status=500)
    push_products(sandbox, source, "A", "B", price=99)
    push_products(sandbox, source, "C")
    wait_until(lambda: len(one.list_received()) > 7, "it fails")
    one.patch_endpoint(status="disabled")
    push_products(sandbox, source, "D")
    delivered = {got.id for got in good} | {last.id}
    replayed = [event["id"] for event in _read_feed(sandbox, last.cursor) if event["id"] not in delivered]
    everything = [event["id"] for event in _read_feed(sandbox)]
    assert replayed == [id for id in everything if id not in delivered] and len(replayed) == 2 + 3 + 3
    assert not {event["id"] for event in _read_feed(sandbox, last.cursor)} & {got.id for got in good}


def _send_sample(one: EndpointClient, tenancy: Tenancy) -> Any:
    """Send a sample while no other delivery is open; return the delivery."""
    number = len(one.list_received())
    publish_sample(tenancy)
    return one.wait_for_received(number + 1)[-1]


@pytest.mark.skipif(not (shutil.which("node") and shutil.which("npm")), reason="no node on this machine")
def test_the_public_javascript_library_verifies_them(
    sandbox: Tenancy, receiver: ReceiverClient, tmp_path: Path
) -> None:
    install = ["npm", "install", "--no-audit", "--no-fund", "--fetch-retries=0", "--fetch-timeout=20000"]
    try:
        subprocess.run(
            [*install, "--prefix", str(tmp_path), "standardwebhooks@1.1.1"], capture_output=True, timeout=60, check=True
        )
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError):
        pytest.skip("the registry does not answer")
    one = create_endpoint(sandbox.api, receiver)
    for type in ("offer.changed", "product.created", "source.blocked"):
        publish_sample(sandbox, type)
    one.wait_for_received(3)
    one.rotate_secret(overlap_hours=24)
    one.send_test_event()
    sent = [{"body": got.body, "headers": got.headers} for got in one.wait_for_received(4)]
    shutil.copy(JS / "verify.mjs", tmp_path)
    sent_input = json.dumps({"secrets": one.secrets, "sent": sent})
    done = subprocess.run(
        ["node", "verify.mjs"], cwd=tmp_path, input=sent_input.encode(), capture_output=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [[True, False]] * 3 + [[True, True]]
