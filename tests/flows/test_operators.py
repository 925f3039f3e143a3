"""Commands of an operator take effect in running processes."""

import gzip
import hashlib
import json
import re
import time
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, Request, build_opener, urlopen

import pytest

from domain.access.model import ROLES
from tests.flows.api_client import ApiClient
from tests.flows.service_processes import ServiceProcesses
from tests.support.forkserver import run_joinery
from tests.support.operation_table import load_operation_table


def _run_command(services: ServiceProcesses, *words: str) -> Any:
    """Run a command; return the JSON that it prints."""
    done = run_joinery(*words, "--json", env=services.env)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def organisation_id(services: ServiceProcesses) -> str:
    """Create an organisation on the command line."""
    created = _run_command(services, "org", "create", "--name", "Fjord", "--kind", "vendor", "--plan", "max")
    return str(created["organisation"])


@pytest.mark.parametrize("role", ["viewer", "editor"])
def test_a_members_key(services: ServiceProcesses, organisation_id: str, role: str) -> None:
    email = f"{role}@fjord.example"
    _run_command(services, "member", "add", "--org", organisation_id, "--email", email, "--role", role)
    key = _run_command(services, "key", "create", "--org", organisation_id, "--mode", "live", "--member", email.upper())
    api = ApiClient(services.port, key["secret"])
    for operation in load_operation_table():
        if operation.method == "GET" and not operation.path_parameters:
            is_permitted = operation.scope is None or operation.scope in ROLES[role]
            allowed = is_permitted and operation.caller_kind == "any"
            method = "HEAD" if operation.is_stream else "GET"  # a stream does not end
            assert (api.call(method, operation.path).status == 200) is allowed, operation.id
    created = api.call("POST", "/v1/sources", {"name": "A", "kind": "push"})
    assert created.status == (201 if "sources:write" in ROLES[role] else 403)


def test_a_revoked_key_is_refused_within_a_second_by_every_process(
    services: ServiceProcesses, organisation_id: str
) -> None:
    key = _run_command(
        services, "key", "create", "--org", organisation_id, "--mode", "test", "--restricted", "--scopes", "org:read"
    )
    assert key["secret"].startswith("svc_rk_test_")
    api = ApiClient(services.port, key["secret"])
    assert api.get("/v1/org")["id"] == organisation_id and api.call("GET", "/v1/products").status == 403
    _run_command(services, "key", "revoke", "--org", organisation_id, "--mode", "test", "--key", key["key"])
    revoked = time.monotonic()
    while api.call("GET", "/v1/org").status != 401:
        assert time.monotonic() - revoked < 1.0
        time.sleep(0.02)


def _find_traces(services: ServiceProcesses, *texts: str) -> list[str]:
    """Return all tables, object names and files that contain one of the texts."""
    tables = services.fetch_rows(
        "SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' ORDER BY 1"
    )
    found = []
    for (table,) in tables:
        for text in texts:
            hexed = text.encode().hex()
            rows = services.fetch_value(
                f"SELECT count(*) FROM {table} AS t WHERE position(%(text)s IN t::text) + position(%(hexed)s IN t::text) > 0",
                text=text, hexed=hexed,
            )  # fmt: skip
            found += [f"{table}: {text}"] if rows else []
    files = [
        path for path in (services.home / "objects").rglob("*") if path.is_file()
    ]  # empty folders are removed a day later
    for path in files:
        names = [text for text in texts if text in str(path)]
        inside = [text for text in texts if text.encode() in path.read_bytes()]
        found += [f"{path}: {text}" for text in (*names, *inside)]
    return found


def test_a_members_token_acts_as_the_person_until_revoked(services: ServiceProcesses, organisation_id: str) -> None:
    member = ("--org", organisation_id, "--email", "scripts@fjord.example")
    user = _run_command(services, "member", "add", *member, "--role", "viewer")["user"]
    output = _run_command(services, "token", "create", *member, "--hours", "1")
    api = ApiClient(services.port, output["token"])
    assert output["user"] == user and output["token"].startswith("svc_person_")
    assert [own["id"] for own in api.get("/v1/me/orgs")["data"]] == [organisation_id]
    assert api.call("POST", "/v1/sources", {"name": "A", "kind": "push"}).status == 403, "a viewer writes nothing"
    (kept,) = _run_command(services, "session", "list", *member[2:])["sessions"]
    assert kept["session"] == output["session"] and kept["kind"] == "token"
    assert _run_command(services, "session", "end", *member[2:])["ended"] == 1
    ended = time.monotonic()
    while api.call("GET", "/v1/org").status != 401:
        assert time.monotonic() - ended < 1
        time.sleep(0.05)
    url = _run_command(services, "session", "link", *member)["url"]
    assert "/console/link/svc_link_" in url
    _follow_sign_in_link(f"http://127.0.0.1:{services.port}", "/console/link/" + url.rpartition("/")[2])
    (kept,) = _run_command(services, "session", "list", *member[2:])["sessions"]
    assert kept["kind"] == "console"


def _follow_sign_in_link(address: str, place: str) -> None:
    """Open a sign-in link and press its button, which works once."""
    page = urlopen(address + place).read().decode()
    token = re.search(r'name="csrf" value="([^"]*)"', page)
    assert token
    sent = Request(address + place, urlencode({"csrf": token[1]}).encode(), {"Origin": address})
    opener = build_opener(HTTPCookieProcessor())
    assert "Home" in opener.open(sent).read().decode()
    with pytest.raises(HTTPError, match="410"):
        urlopen(address + place)


def test_a_deleted_organisation_leaves_no_data(services: ServiceProcesses) -> None:
    stays, leaves = services.create_organisation(), services.create_organisation()
    ids = [leaves.tenant.org, *leaves.organisation.catalogues]
    text = "Quetzalcoatl armchair"
    for one in (stays, leaves):
        source = one.api.create_source("file", config={"currency": "usd"}, name=f"{one.tenant.org} feed")
        words = text if one is leaves else "Plain armchair"
        one.api.import_file(source, f"SKU,Product Name,Price\nA-1,{words},79.00\n".encode())
        one.api.post("/v1/webhook-endpoints", {"url": "https://receiver.example/", "event_types": ["*"]})
        ids += [source] if one is leaves else []
    before = stays.api.get("/v1/products"), stays.api.get("/v1/changes")["data"]
    assert _find_traces(services, text), "the text was stored"
    name = leaves.organisation.name
    refused = run_joinery("org", "delete", "--org", leaves.tenant.org, env=services.env)
    assert refused.returncode == 1 and "add --confirm" in refused.stderr and leaves.api.get("/v1/org")
    out = services.home / "leaves"
    output = _run_command(services, "org", "export", "--org", leaves.tenant.org, "--to", str(out))
    files = {file["dataset"]: file for file in output["live"]}
    packed = (out / "live" / "products.jsonl.gz").read_bytes()
    assert (
        hashlib.sha256(packed).hexdigest() == files["products"]["sha256"] and len(packed) == files["products"]["bytes"]
    )
    [line] = gzip.decompress(packed).splitlines()
    assert json.loads(line) == leaves.api.get("/v1/products")["data"][0]
    assert files["sources"]["rows"] == files["webhook_endpoints"]["rows"] == 1 and files["audit_events"]["rows"] > 1
    gone = _run_command(services, "org", "delete", "--org", leaves.tenant.org, "--confirm", name)
    assert gone["rows"]["products"] == 1 and gone["objects"] >= 1
    assert _find_traces(services, text, *ids) == []
    assert leaves.api.call("GET", "/v1/org").status == 401
    assert (stays.api.get("/v1/products"), stays.api.get("/v1/changes")["data"]) == before


def test_incidents_are_managed_on_the_command_line(services: ServiceProcesses, organisation_id: str) -> None:
    del organisation_id
    created = _run_command(
        services, "incident", "open", "--component", "feed", "--state", "down", "--title", "Moving house"
    )
    api = services.create_organisation().api
    shown = next(one for one in api.get("/v1/status/history")["data"] if one["id"] == created["incident"])
    assert (shown["title"], shown["opened_by"], "closed_at" in shown) == ("Moving house", "operator", False)
    _run_command(
        services, "incident", "update", created["incident"], "--text", "Half of it is there.", "--state", "degraded"
    )
    assert created["incident"] in [one["incident"] for one in _run_command(services, "incident", "list")["incidents"]]
    _run_command(services, "incident", "close", created["incident"])
    shown = next(one for one in api.get("/v1/status/history")["data"] if one["id"] == created["incident"])
    assert [one["text"] for one in shown["updates"]] == ["Moving house", "Half of it is there.", "Resolved."]
    assert shown["state"] == "operational" and shown["closed_at"]
    page = api.send("GET", "/status")
    assert page.status == 200 and b"Moving house" in page.body


def test_agreements_are_published_on_the_command_line(services: ServiceProcesses, tmp_path: Path) -> None:
    vendor = _run_command(services, "org", "create", "--name", "Lindgren", "--kind", "vendor", "--plan", "max")
    member = ("--org", vendor["organisation"], "--email", "ada@lindgren.example")
    _run_command(services, "member", "add", *member, "--role", "owner")
    api = ApiClient(services.port, _run_command(services, "token", "create", *member)["token"])
    text = tmp_path / "agreement.md"
    text.write_bytes(b"# Data agreement\r\n")
    command = ("agreement", "publish", str(text), "--kind", "vendor_data", "--title", "Data agreement")
    published = _run_command(services, *command, "--grace-days", "10")
    assert (published["version"], published["grace_days"]) == (1, 10) and published["notified_vendors"] >= 1
    shown = api.get("/v1/agreements/vendor_data")
    assert (shown["text"], shown["sha256"], shown["standing"]) == (
        "# Data agreement\n",
        published["sha256"],
        "required",
    )
    body = {
        "version": 1,
        "sha256": shown["sha256"],
        "signer_name": "Ada",
        "signer_title": "CEO",
        "authority_confirmed": True,
    }
    signed = api.post("/v1/agreements/vendor_data/acceptances", body)
    assert signed["agreement"] == published["agreement"]
    again = run_joinery(*command, env=services.env)
    assert again.returncode == 1 and "same text" in again.stderr
    missing = run_joinery(*command[:2], str(tmp_path / "none"), *command[3:], env=services.env)
    assert missing.returncode == 1 and "cannot be read" in missing.stderr
    assert [row["version"] for row in _run_command(services, "agreement", "list")["agreements"]] == [1]


def test_apps_are_managed_on_the_command_line(services: ServiceProcesses, organisation_id: str) -> None:
    app = _run_command(
        services,
        "app",
        "create",
        "--org",
        organisation_id,
        "--kind",
        "machine",
        "--name",
        "Board",
        "--scopes",
        "org:read",
    )
    form = {"grant_type": "client_credentials", **{name: app[name] for name in ("client_id", "client_secret")}}
    body = urlencode(form).encode()
    request = Request(f"http://127.0.0.1:{services.port}/oauth/token", body)
    with urlopen(request) as answer:
        token = json.load(answer)["access_token"]
    api = ApiClient(services.port, token)
    assert api.get("/v1/org")["id"] == organisation_id and api.call("GET", "/v1/products").status == 403
    assert [one["client_id"] for one in _run_command(services, "app", "list", "--org", organisation_id)["apps"]] == [
        app["client_id"]
    ]
    _run_command(services, "app", "delete", "--org", organisation_id, "--app", app["client_id"])
    deleted = time.monotonic()
    while api.call("GET", "/v1/org").status != 401:
        assert time.monotonic() < deleted + 1
    with pytest.raises(HTTPError, match="401"):
        urlopen(request)
