"""The Python client with a running service: network faults, pages, files, followers that are killed."""

import asyncio
import json
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks.webhooks import Webhook

from domain.kernel.ids import new_id
from entrypoints.clients.distribution import FILE_NAMES, WHEEL
from tests.flows.feeds import build_catalogue, build_record
from tests.flows.service_processes import ROOT, ServiceProcesses, Tenancy
from tests.support.faulty_proxy import Fault, FaultyProxy, faulty_proxy
from tests.support.killed_followers import follow_across_kills
from tests.support.shipped_clients import import_client


@pytest.fixture
def proxy(services: ServiceProcesses) -> Iterator[FaultyProxy]:
    with faulty_proxy(services.port) as proxy_server:
        yield proxy_server


@pytest.fixture
def client(proxy: FaultyProxy, fjord: Tenancy) -> Iterator[Any]:
    with import_client().Joinery(proxy.url, fjord.api.secret, retries=3) as sdk_client:
        yield sdk_client


def test_the_server_serves_the_distributed_client(services: ServiceProcesses, fjord: Tenancy) -> None:
    for name in FILE_NAMES:
        answer = fjord.api.send("GET", f"/docs/clients/{name}")
        assert answer.status == 200 and len(answer.body) == int(answer.headers["content-length"]) > 10_000
        again = fjord.api.send("GET", f"/docs/clients/{name}", If_None_Match=answer.headers["etag"])
        assert (again.status, again.body) == (304, b"")
        head = fjord.api.send("HEAD", f"/docs/clients/{name}")
        assert (head.status, head.body, head.headers["etag"]) == (200, b"", answer.headers["etag"])
        assert answer.headers["content-type"] in ("application/zip", "application/gzip", "application/json")
    assert fjord.api.send("GET", f"/docs/clients/{WHEEL}x").status == 404


def test_a_lost_response_is_retried_without_repeated_effects(client: Any, proxy: FaultyProxy) -> None:
    proxy.faults += [Fault(late=True), Fault(), Fault(503, {"Retry-After": "1"})]
    started = time.monotonic()
    created = client.sources.create({"name": "A source", "kind": "push"})
    assert time.monotonic() - started > 1 and [one["id"] for one in client.sources.list()] == [created["id"]]
    keys = [headers["idempotency-key"] for method, _, headers in proxy.seen if method == "POST"]
    assert len(keys) == 4 and len(set(keys)) == 1


def test_a_refused_request_is_retried_after_the_stated_delay(client: Any, proxy: FaultyProxy) -> None:
    proxy.faults += [Fault(429, {"Retry-After": "1"}, "rate_limited"), Fault(502), Fault()]
    started = time.monotonic()
    assert client.orgs.get()["object"] == "organisation"
    assert time.monotonic() - started > 1 and len(proxy.seen) == 4


def test_a_lost_change_is_not_shown_as_a_conflict_of_the_first_try(client: Any, proxy: FaultyProxy) -> None:
    package = import_client()
    created = client.sources.create({"name": "A source", "kind": "push"})
    proxy.faults.append(Fault(late=True))
    with pytest.raises(package.PreconditionFailed) as caught:
        client.sources.update(created["id"], {"name": "Renamed"}, if_match=created["version"])
    assert caught.value.maybe_done and client.sources.get(created["id"])["name"] == "Renamed"
    with pytest.raises(package.PreconditionFailed) as caught:
        client.sources.update(created["id"], {"name": "Again"}, if_match=created["version"])
    assert not caught.value.maybe_done


def test_dry_runs_and_previews_change_nothing(client: Any) -> None:
    body = {"name": "A source", "kind": "push"}
    assert client.sources.create(body, dry_run=True)["object"] == "source"
    preview = client.sources.create(body, explain=True)
    assert preview["object"] == "preview" and preview["changes"][0]["object"] == "source"
    assert list(client.sources.list()) == []


def test_errors_state_what_is_wrong(client: Any, proxy: FaultyProxy, services: ServiceProcesses) -> None:
    package = import_client()
    with pytest.raises(package.InvalidRequest) as caught:
        client.sources.create({"name": "", "kind": "sofa"})
    error = caught.value
    assert (error.status, error.code, {one["field"] for one in error.errors}) == (
        400,
        "invalid_request",
        {"name", "kind"},
    )
    assert (
        str(error).startswith("400 invalid_request: ")
        and error.request_id in str(error)
        and error.doc_url in str(error)
    )
    with pytest.raises(package.NotFound):
        client.products.get(new_id("prod"))
    with package.Joinery(proxy.url, "sk_wrong") as unauthorised, pytest.raises(package.AuthenticationRequired):
        unauthorised.orgs.get()
    with package.Joinery("http://127.0.0.1:9", "k", retries=0) as nobody, pytest.raises(package.ConnectionFailed):
        nobody.orgs.get()


def test_lists_are_read_completely_in_both_directions(client: Any, proxy: FaultyProxy) -> None:
    created = [client.sources.create({"name": f"Source {number}", "kind": "push"})["id"] for number in range(7)]
    proxy.seen.clear()
    assert [one["id"] for one in client.sources.list(limit=3)] == created[::-1]
    assert len(proxy.seen) == 3
    listing = client.sources.list(limit=3)
    assert [len(page["data"]) for page in listing.pages()] == [3, 3, 1] and len(list(listing)) == 7
    second = next(iter(listing.pages()))["next_cursor"]
    before = client.sources.list(limit=2, ending_before=list(listing.pages())[1]["next_cursor"])
    assert sorted(one["id"] for one in before) == sorted(created[2:])
    assert [one["id"] for one in client.sources.list(starting_after=second)] == created[:4][::-1]


def test_a_file_is_uploaded_and_its_run_awaited(client: Any, proxy: FaultyProxy, tmp_path: Path) -> None:
    path = tmp_path / "feed.csv"
    path.write_bytes(build_catalogue(5))
    source = client.sources.create({"name": "Files", "kind": "file", "config": {"currency": "usd"}})["id"]
    upload = client.sources.upload_file(source, path)
    run = client.runs.wait(upload["run"], timeout=30)
    assert (run["status"], run["stats"]["products_created"]) == ("succeeded", 5)
    assert len(list(client.products.list(source=source, limit=2))) == 5


def test_the_async_client_behaves_alike(proxy: FaultyProxy, fjord: Tenancy, tmp_path: Path) -> None:
    path = tmp_path / "feed.csv"
    path.write_bytes(build_catalogue(5))

    async def story() -> tuple[Any, ...]:
        async with import_client().AsyncJoinery(proxy.url, fjord.api.secret, retries=3) as client:
            proxy.faults += [Fault(late=True), Fault(429, {"Retry-After": "1"}, "rate_limited")]
            body = {"name": "Files", "kind": "file", "config": {"currency": "usd"}}
            source = (await client.sources.create(body))["id"]
            sources = [one["id"] async for one in client.sources.list()]
            cursor = await client.changes.now()
            upload = await client.sources.upload_file(source, path)
            run = await client.runs.wait(upload["run"], timeout=30)
            products = [one async for one in client.products.list(source=source, limit=2)]
            events = []
            store = tmp_path / "cursor"
            async for page in client.changes.follow(cursor, store, types=["product.created"], wait=1).pages():
                events += page["data"]
                if page["caught_up"] and events:
                    break
            return source, sources, run["status"], len(products), len(events)

    source, sources, *figures = asyncio.run(story())
    assert sources == [source] and figures == ["succeeded", 5, 5]


def test_a_cursor_is_saved_after_a_page_was_processed(client: Any, tmp_path: Path) -> None:
    source = client.sources.create({"name": "Pushed", "kind": "push", "config": {"currency": "usd"}})["id"]
    run = client.runs.push(source, {"records": [build_record(f"a{number}") for number in range(4)]})
    assert client.runs.wait(run["id"], timeout=30)["status"] == "succeeded"
    place = tmp_path / "cursor"
    whole = client.changes.page(limit=1000)["data"]
    assert len(whole) >= 12
    for index, event in enumerate(client.changes.follow(cursor_file=place, limit=5)):
        assert event == whole[index]
        if index == 7:
            break  # in the middle of the second page: only the first is saved
    assert next(iter(client.changes.follow(cursor_file=place)))["id"] == whole[5]["id"]
    with pytest.raises(import_client().InvalidRequest):
        next(iter(client.changes.follow("no cursor")))


def test_killed_followers_miss_no_event(services: ServiceProcesses, fjord: Tenancy, tmp_path: Path) -> None:
    """A short run; tests/clients contains longer ones with the installed packages in both languages."""
    argv = (sys.executable, str(ROOT / "tests" / "clients" / "following.py"))
    package = str(Path(import_client().__file__).parents[1])
    follow_across_kills(services, fjord, argv, tmp_path, kills=3, wanted=150, PYTHONPATH=package)


def test_only_signed_webhooks_are_verified() -> None:
    package = import_client()
    old, new = "whsec_" + "b2xk" * 8, "whsec_" + "bmV3" * 8
    body = json.dumps({"type": "offer.changed", "name": "Möbel"}, ensure_ascii=False).encode()
    now = datetime.now(UTC)

    def headers(*secrets: str, at: datetime = now) -> dict[str, str]:
        signed = " ".join(Webhook(secret).sign("evt_1", at, body.decode()) for secret in secrets)
        return {"Webhook-Id": "evt_1", "webhook-timestamp": str(int(at.timestamp())), "webhook-signature": signed}

    assert package.verify_webhook(body, headers(old), old)["type"] == "offer.changed"
    assert package.verify_webhook(body.decode(), headers(old, new), new)["name"] == "Möbel"
    assert package.verify_webhook(body, headers(old), [new, old])["name"] == "Möbel"
    wrong = [
        (body, headers(old), new), (body + b" ", headers(old), old), (body, headers(old) | {"Webhook-Id": "evt_2"}, old),
        (body, headers(old, at=now - timedelta(seconds=301)), old), (body, headers(old, at=now + timedelta(seconds=310)), old),
        (body, headers(old) | {"webhook-signature": "v2,abc v1,"}, old), (body, headers(old) | {"webhook-timestamp": "soon"}, old),
        (body, {"webhook-id": "evt_1"}, old), (body, headers(old), []),
    ]  # fmt: skip
    for content, received_headers, secret in wrong:
        with pytest.raises(package.WebhookVerificationError):
            package.verify_webhook(content, received_headers, secret)
    assert package.verify_webhook(body, headers(old, at=now - timedelta(seconds=301)), old, tolerance=600)
    with pytest.raises(ValueError, match="whsec_"):
        package.verify_webhook(body, headers(old), "no base64!")
