"""Stored credentials are only used for the addresses and the connector for which they were entered."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.flows.feeds import FeedServer, build_catalogue
from tests.flows.service_processes import FEEDS, ServiceProcesses, Tenancy

SECRET = "Geheim-9a8b7c6d5e"


@dataclass
class OtherServer:
    """Server of another host: another port of a permitted address. It stores all received requests."""

    port: int = 0
    requests: list[str] = field(default_factory=list)

    def url(self, path: str) -> str:
        """Return the URL of the path."""
        return f"http://{FEEDS}:{self.port}{path}"

    @property
    def received_secret(self) -> bool:
        """Whether the server has received the secret in any form."""
        return any(SECRET in text for text in self.requests)


@contextmanager
def _serve_other_host() -> Iterator[OtherServer]:
    other_server = OtherServer()

    class Listens(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            other_server.requests.append(f"{self.path}\n{self.headers}")
            body = build_catalogue(2)
            self.send_response(200)
            self.send_header("Content-Type", "text/csv")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer((FEEDS, 0), Listens)
    other_server.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield other_server
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


@pytest.fixture
def other_server() -> Iterator[OtherServer]:
    """Run the server of another host."""
    with _serve_other_host() as listening:
        yield listening


FORMS = (
    {"token": SECRET},
    {"header": "X-Api-Key", "value": SECRET},
    {"header": "Accept", "value": SECRET},
    {"query": "key", "value": SECRET},
    {"username": "anna", "password": SECRET},
)


def _create_source(fjord: Tenancy, credentials: dict[str, str] | None, **fields: Any) -> dict[str, Any]:
    source = fjord.api.post("/v1/sources", {"name": "Vendor", "kind": "url", **fields})
    if credentials:
        answer = fjord.api.call("PUT", f"/v1/sources/{source['id']}/credentials", {"credentials": credentials})
        assert answer.status == 200, answer.body
        source = answer.json()
    return dict(source)


def _patch_source(fjord: Tenancy, source: dict[str, Any], changes: dict[str, Any], **headers: str) -> Any:
    answer = fjord.api.call("PATCH", f"/v1/sources/{source['id']}", changes, If_Match="*", **headers)
    assert answer.status == 200, answer.body
    return answer.json()


def _use_source(fjord: Tenancy, source: dict[str, Any]) -> None:
    """Use the source in every way: test and pull."""
    fjord.api.call("POST", f"/v1/sources/{source['id']}/test")
    fjord.api.pull(source["id"])


@pytest.mark.parametrize("credentials", FORMS[:1] + FORMS[3:4], ids=lambda form: next(iter(form)))
@pytest.mark.parametrize("setting", ["url", "stock_url"])
def test_credentials_are_deleted_when_the_address_changes(
    fjord: Tenancy, feeds: FeedServer, other_server: OtherServer, credentials: dict[str, str], setting: str
) -> None:
    own = feeds.serve("/own.csv", build_catalogue(2))
    source = _create_source(fjord, credentials, config={"url": own, "stock_url": own})
    config = {**source["config"], setting: other_server.url("/taken.csv")}
    preview = _patch_source(fjord, source, {"config": config}, Service_Dry_Run="explain")
    [change] = preview["changes"]
    assert {"path": "has_credentials", "old": True, "new": False} in change["fields"]
    assert any("credentials" in warning for warning in preview["warnings"])
    assert fjord.api.get(f"/v1/sources/{source['id']}")["has_credentials"] is True, "a preview does nothing"
    changed = _patch_source(fjord, source, {"config": config})
    assert changed["has_credentials"] is False
    _use_source(fjord, source)
    if setting == "stock_url":
        fjord.api.pull(source["id"], stream="stock")
    assert other_server.requests and not other_server.received_secret


def test_credentials_are_deleted_when_the_connector_changes(fjord: Tenancy, feeds: FeedServer) -> None:
    source = _create_source(fjord, {"token": SECRET}, config={"url": feeds.serve("/switch.csv", build_catalogue(2))})
    assert _patch_source(fjord, source, {"connector": "api"})["has_credentials"] is False


def test_credentials_remain_when_other_settings_change(fjord: Tenancy, feeds: FeedServer) -> None:
    source = _create_source(fjord, {"token": SECRET}, config={"url": feeds.serve("/kept.csv", build_catalogue(2))})
    moved = feeds.serve("/another/path.csv", build_catalogue(2))
    config = {"url": moved, "currency": "usd", "format": "csv", "decimal": "dot", "warehouse": "Main"}
    changed = _patch_source(fjord, source, {"config": config, "name": "Renamed", "schedule": {"interval_minutes": 60}})
    assert changed["has_credentials"] is True
    run = fjord.api.pull(source["id"])
    assert run["status"] == "succeeded", run
    assert [
        request.headers.get("Authorization") for request in feeds.requests if request.path == "/another/path.csv"
    ] == [f"Bearer {SECRET}"] * feeds.count("/another/path.csv")


def test_credentials_are_not_sent_to_an_address_edited_in_the_database(
    services: ServiceProcesses, fjord: Tenancy, feeds: FeedServer, other_server: OtherServer
) -> None:
    own = feeds.serve("/edited.csv", build_catalogue(2))
    source, other = (_create_source(fjord, {"token": SECRET}, config={"url": own}) for _ in range(2))
    services.fetch_rows(
        "UPDATE sources SET config = jsonb_set(config, '{url}', to_jsonb(%(url)s::text)) WHERE id = %(id)s",
        url=other_server.url("/taken.csv"), id=source["id"],
    )  # fmt: skip
    services.fetch_rows(
        "UPDATE sources SET credentials = %(taken)s WHERE id = %(id)s", id=other["id"],
        taken=services.fetch_value("SELECT credentials FROM sources WHERE id = %(of)s", of=source["id"]),
    )  # fmt: skip
    requested = feeds.count("/edited.csv")
    for edited in (source, other):
        tried = fjord.api.post(f"/v1/sources/{edited['id']}/test")
        assert tried["ok"] is False and tried["failure"]["code"] == "credentials_refused"
        run = fjord.api.pull(edited["id"])
        assert (run["status"], run["error"]["code"]) == ("failed", "credentials_refused")
    assert other_server.requests == [] and feeds.count("/edited.csv") == requested


def test_changes_during_runs_disclose_no_credentials(
    fjord: Tenancy, feeds: FeedServer, other_server: OtherServer
) -> None:
    """Changes of the address during runs and tests of the source disclose nothing."""
    own = feeds.serve("/race.csv", build_catalogue(2))
    source = _create_source(fjord, {"token": SECRET}, config={"url": own})
    path = f"/v1/sources/{source['id']}"
    done = threading.Event()

    def tries() -> None:
        while not done.is_set():
            fjord.api.call("POST", path + "/test")

    threads = [threading.Thread(target=tries) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for number in range(12):
            url = other_server.url("/taken.csv") if number % 2 == 0 else own
            fjord.api.call("PATCH", path, {"config": {"url": url}}, If_Match="*")
            if number % 2:
                fjord.api.call("PUT", path + "/credentials", {"credentials": {"token": SECRET}})
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert not other_server.received_secret


@pytest.mark.parametrize("credentials", FORMS, ids="-".join)
@pytest.mark.parametrize("connector", ["csv", "api"])
def test_redirects_disclose_no_credentials(
    fjord: Tenancy, feeds: FeedServer, other_server: OtherServer, credentials: dict[str, str], connector: str
) -> None:
    """The secret is neither in headers, nor in the query of the redirect, nor in a Referer."""
    path = f"/moved-{connector}.csv"

    def along(request: Any) -> Any:
        query = "&".join(f"{name}={value}" for name, values in request.query.items() for value in values)
        return 302, {"Location": other_server.url("/taken.csv") + (f"?{query}" if query else "")}, b""

    feeds.pages[path] = along
    source = _create_source(fjord, credentials, connector=connector, config={"url": feeds.url(path)})
    _use_source(fjord, source)
    assert feeds.count(path) and not other_server.received_secret
    assert not any("referer" in text.lower() for text in other_server.requests)


@pytest.mark.parametrize("style", ["auto", "next_link", "link_header"])
def test_next_pages_on_other_hosts_are_not_followed(
    fjord: Tenancy, feeds: FeedServer, other_server: OtherServer, style: str
) -> None:
    path = f"/pages-{style}.json"
    link = other_server.url("/taken.json")
    body = b'{"items": [{"sku": "A-1", "title": "Oak"}], "next": "%s"}' % link.encode()
    headers = {"Content-Type": "application/json", "Link": f'<{link}>; rel="next"'}
    feeds.pages[path] = lambda _: (200, headers, body)
    source = _create_source(
        fjord, {"token": SECRET}, connector="api", config={"url": feeds.url(path), "paging": {"style": style}}
    )
    _use_source(fjord, source)
    assert feeds.count(path) and other_server.requests == []
