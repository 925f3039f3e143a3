"""Source health, runs that wait for a mapping, and credentials that are never shown."""

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.flows.feeds import FeedServer, build_catalogue
from tests.flows.service_processes import FEEDS, ROOT, ServiceProcesses, Tenancy

_MOVES = "SELECT after ->> 'status' FROM audit_entries WHERE target_id = %(id)s AND action = 'runs.execute' AND after ? 'status' ORDER BY id"
SECRET = "s3cr3t-that-nobody-may-see"


def _create_source(tenancy: Tenancy, url: str, **fields: Any) -> str:
    return tenancy.api.create_source("url", config={"url": url, "currency": "usd"}, **fields)


def _get_status(tenancy: Tenancy, source: str) -> tuple[str, Any]:
    found = tenancy.api.get(f"/v1/sources/{source}")
    return found["status"], found.get("status_reason", {}).get("code")


def _list_events(services: ServiceProcesses, source: str) -> list[tuple[str, int, Any]]:
    rows = services.fetch_rows(
        "SELECT type, version, convert_from(body, 'UTF8') FROM events WHERE subject = %(id)s ORDER BY position",
        id=source,
    )
    return [(kind, version, json.loads(body)) for kind, version, body in rows]


def test_health_degrades_and_recovers(services: ServiceProcesses, fjord: Tenancy, feeds: FeedServer) -> None:
    api, source = fjord.api, _create_source(fjord, feeds.fail("/ladder.csv", 500))
    for expected in ("active", "active", "degraded", "degraded"):
        run = api.pull(source)
        assert (run["status"], run["error"]["code"]) == ("failed", "fetch_failed")
        assert _get_status(fjord, source)[0] == expected
    assert _get_status(fjord, source) == ("degraded", "fetch_failed")
    feeds.serve("/ladder.csv", build_catalogue(1))
    assert api.pull(source)["status"] == "succeeded"
    assert _get_status(fjord, source) == ("active", None)
    feeds.fail("/ladder.csv", 500)
    for _ in range(9):
        api.pull(source)
    assert _get_status(fjord, source)[0] == "degraded"
    last = api.pull(source)
    assert _get_status(fjord, source) == ("blocked", "fetch_failed")
    events = _list_events(services, source)
    assert [kind for kind, _, _ in events] == [
        "source.degraded", "source.recovered", "source.degraded", "source.blocked",
    ]  # fmt: skip
    assert [version for _, version, _ in events] == sorted({version for _, version, _ in events})
    data = events[-1][2]["data"]
    assert (data["id"], data["status"], data["run"]) == (source, "blocked", last["id"])
    assert data["status_reason"]["code"] == "fetch_failed" and events[-1][2]["correlation_id"] == last["id"]
    moves = services.fetch_rows(_MOVES, id=source)
    assert [after for (after,) in moves] == ["degraded", "active", "degraded", "blocked"], "and all of it is audited"


def test_a_blocked_source_runs_again_once_set_active(fjord: Tenancy, feeds: FeedServer) -> None:
    api, source = fjord.api, _create_source(fjord, feeds.fail("/blocked.csv", 403))
    api.pull(source)
    assert _get_status(fjord, source) == ("blocked", "fetch_refused")
    refused = api.call("POST", f"/v1/sources/{source}/runs")
    assert (refused.status, refused.code) == (409, "conflict")
    feeds.serve("/blocked.csv", build_catalogue(1))
    assert api.patch_source(source, status="active")["status"] == "active"
    assert api.pull(source)["status"] == "succeeded" and _get_status(fjord, source) == ("active", None)


@pytest.mark.parametrize("status", [401, 407])
def test_refused_credentials_block_at_once(fjord: Tenancy, feeds: FeedServer, status: int) -> None:
    source = _create_source(fjord, feeds.fail(f"/signed{status}.csv", status))
    fjord.api.call("PUT", f"/v1/sources/{source}/credentials", {"credentials": {"token": SECRET}})
    run = fjord.api.pull(source)
    assert run["error"]["code"] == "credentials_refused" and SECRET not in json.dumps(run)
    assert _get_status(fjord, source) == ("blocked", "credentials_refused")


def test_a_paused_source_has_no_runs(fjord: Tenancy, feeds: FeedServer) -> None:
    source = _create_source(fjord, feeds.serve("/paused.csv", build_catalogue(1)))
    fjord.api.patch_source(source, status="paused")
    assert fjord.api.call("POST", f"/v1/sources/{source}/runs").status == 409
    assert feeds.count("/paused.csv") == 0


def test_unknown_columns_wait_for_a_mapping(services: ServiceProcesses, fjord: Tenancy) -> None:
    api, source = fjord.api, fjord.api.create_source("file", config={"currency": "usd"})
    content = b"Wibble,Wobble\nalpha beta,gamma delta\nepsilon,zeta\n"
    for _ in range(4):
        run = api.import_file(source, content)
        assert run["status"] == "needs_mapping" and run["error"]["code"] == "mapping_required"
        content += b"eta,theta\n"
    assert _get_status(fjord, source) == ("active", None), "waiting for a person is no failure"
    assert api.list_all("/v1/products") == [] and _list_events(services, source) == []
    assert api.import_file(source, build_catalogue(1))["status"] == "succeeded", (
        "the open run does not stand in the way"
    )


def test_credentials_are_never_shown(services: ServiceProcesses, fjord: Tenancy, feeds: FeedServer) -> None:
    api = fjord.api
    source = _create_source(fjord, feeds.serve("/secret.csv", build_catalogue(2)))
    stored = api.call("PUT", f"/v1/sources/{source}/credentials", {"credentials": {"token": SECRET}})
    assert stored.status == 200 and stored.json()["has_credentials"] is True
    assert api.pull(source)["status"] == "succeeded"
    assert feeds.requests[-1].headers["Authorization"] == f"Bearer {SECRET}"
    feeds.fail("/secret.csv", 500)
    api.pull(source)
    api.post(f"/v1/sources/{source}/test")
    api.call("PUT", f"/v1/sources/{source}/credentials", {"credentials": {"token": SECRET, "more": SECRET}})
    answers = [stored.body.decode(), *_collect_readable_texts(fjord, source)]
    assert not [answer for answer in answers if SECRET in answer]
    assert not [name for name, text in _collect_stored_texts(services, fjord) if SECRET in text]
    assert SECRET not in services.log_path("api").read_text() + services.log_path("worker").read_text()
    forgotten = api.call("DELETE", f"/v1/sources/{source}/credentials").json()
    assert forgotten["has_credentials"] is False
    assert services.fetch_value("SELECT credentials FROM sources WHERE id = %(id)s", id=source) is None


def _collect_readable_texts(tenancy: Tenancy, source: str) -> list[str]:
    paths = ("/v1/sources", f"/v1/sources/{source}", f"/v1/sources/{source}/runs", "/v1/request-logs", "/v1/products")
    return [tenancy.api.call("GET", path).body.decode() for path in paths]


def _collect_stored_texts(services: ServiceProcesses, tenancy: Tenancy) -> list[tuple[str, str]]:
    """Return every row of the tenant as text, including bytes."""
    found = []
    tables = [row[0] for row in services.fetch_rows("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")]
    for table in tables:
        columns = {row[0]: row[1] for row in services.fetch_rows(_COLUMNS, table=table)}
        if "org" in columns:
            shown = [
                f"encode({name}, 'escape')" if kind == "bytea" else f"{name}::text" for name, kind in columns.items()
            ]
            rows = services.fetch_rows(f'SELECT concat_ws(chr(10), {", ".join(shown)}) FROM {table} WHERE org = %(org)s',
                              org=tenancy.tenant.org)  # fmt: skip
            found += [(table, row[0]) for row in rows]
    return found


_COLUMNS = (
    "SELECT quote_ident(column_name), data_type FROM information_schema.columns "
    "WHERE table_schema = 'public' AND table_name = %(table)s"
)


def test_credentials_go_to_no_other_host(fjord: Tenancy, feeds: FeedServer) -> None:
    feeds.serve("/elsewhere.csv", build_catalogue(1))
    other = f"http://{FEEDS.replace('127.0.0.2', '127.0.0.2.')}:{feeds.port}/elsewhere.csv"
    source = _create_source(fjord, feeds.fail("/moved.csv", 302, Location=other))
    fjord.api.call("PUT", f"/v1/sources/{source}/credentials", {"credentials": {"token": SECRET}})
    fjord.api.pull(source)
    assert [
        request for request in feeds.requests if request.path == "/elsewhere.csv" and "Authorization" in request.headers
    ] == []


def test_an_operator_sees_the_reason_of_a_failure(
    services: ServiceProcesses, fjord: Tenancy, feeds: FeedServer
) -> None:
    source = _create_source(
        fjord, feeds.fail("/why.csv", 403), name="Why\x1b[2J now", schedule={"interval_minutes": 60}
    )
    fjord.api.pull(source)
    env = {"PYTHONPATH": str(ROOT), **services.env}
    command = [sys.executable, "-P", "-m", "entrypoints.cli.main", "source", "why", source]
    output = subprocess.run(command, env=env, cwd=services.home, capture_output=True, text=True, check=True).stdout
    assert "is blocked: fetch_refused" in output and "failed  fetch_refused" in output and "\x1b" not in output
    assert "None" not in output and "read never" in output
    answer = json.loads(
        subprocess.run([*command, "--json"], env=env, cwd=services.home, capture_output=True, check=True).stdout
    )
    assert (answer["status"], answer["reason"]["code"]) == ("blocked", "fetch_refused")
    assert answer["runs"][0]["error"]["code"] == "fetch_refused" and answer["streams"]["catalogue"]["state"] is None
    unknown = subprocess.run(
        [*command[:-1], "src_nobody"], env=env, cwd=services.home, capture_output=True, check=False
    )
    assert unknown.returncode == 1 and b"no source" in unknown.stderr
