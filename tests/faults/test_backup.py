"""`joinery backup` of a running service, and `joinery restore` into an empty database return the same service."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from entrypoints.up.directory import read_run_file
from tests.flows.api_client import ApiClient
from tests.flows.feeds import build_catalogue, build_record
from tests.flows.service_processes import ROOT, free_port, wait_until
from tests.postgres.databases import create_database
from tests.support.forkserver import run_joinery

pytestmark = pytest.mark.soak
_BARE = {name: value for name, value in os.environ.items() if not name.startswith("JOINERY_")}
_BARE |= {"PYTHONPATH": str(ROOT), "JOINERY_PLUGINS": str(ROOT / "plugins.toml")}


def run_command(*words: object, **env: str) -> Any:
    """Run a command, which must succeed; return its JSON."""
    done = run_joinery(*words, "--json", env=_BARE | env)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@contextmanager
def run_up(data: Path) -> Iterator[int]:
    """Run `joinery up` on the directory; return its port."""
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "entrypoints.cli.main", "up", "--data-dir", str(data), "--port", str(port)],
        env=_BARE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        wait_until(ApiClient(port, None).is_ready, "the service is ready", within=60, every=0.1)
        yield port
    finally:
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=40)
        assert process.returncode == 0, out


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """Create a folder with a short path for sockets, which the database's user can enter."""
    folder = Path(tempfile.mkdtemp(prefix="jb", dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def backed_up_service(home: Path) -> Iterator[dict[str, Any]]:
    """Back up a service with an idle and a busy organisation, which writes during the backup."""
    data = home / "first"
    with run_up(data) as port:
        keys = {}
        for name in ("quiet", "busy"):
            run_command("org", "create", "--name", name, "--kind", "retailer", "--plan", "max", "--data-dir", data)
            keys[name] = run_command("key", "create", "--org", name, "--mode", "live", "--data-dir", data)["secret"]
        quiet, busy = (ApiClient(port, keys[name]) for name in ("quiet", "busy"))
        source = quiet.create_source("file", config={"currency": "usd"})
        assert quiet.import_file(source, build_catalogue(300))["status"] == "succeeded"
        pushed = busy.create_source("push", config={"currency": "usd"})
        stop, rounds = threading.Event(), [0]

        def write() -> None:
            while not stop.is_set():
                run = busy.push(pushed, [build_record(f"P{n}", quantity=rounds[0]) for n in range(20)])["id"]
                busy.wait_for_end(run)
                rounds[0] += 1

        writing = threading.Thread(target=write)
        writing.start()
        try:
            wait_until(lambda: rounds[0] >= 2, "events are written")
            cursor = busy.get("/v1/changes", cursor="now")["next_cursor"]
            report = run_command("backup", home / "whole", "--data-dir", data)
            without_secret = run_joinery(
                "backup", home / "whole.tar", "--data-dir", data, "--without-secret", env=_BARE
            )
            assert without_secret.returncode == 0 and "does NOT contain the secret" in without_secret.stdout, (
                without_secret.stderr
            )
            after = rounds[0]
            wait_until(lambda: rounds[0] > after, "events are still written")
        finally:
            stop.set()
            writing.join(30)
        env = read_run_file(data)
        yield {
            "data": data,
            "keys": keys,
            "report": report,
            "cursor": cursor,
            "reads": read_everything(quiet),
            "secret": env["JOINERY_SECRET"],
        }
    run_command("backup", home / "stopped", "--data-dir", data)


def read_everything(api: ApiClient) -> dict[str, Any]:
    """Return the responses for the idle organisation."""
    paths = ("/v1/sources", "/v1/products", "/v1/offers", "/v1/changes")
    found = {path: api.get(path, limit=100) for path in paths}
    found["/v1/changes"] = found["/v1/changes"]["data"]
    for source in found["/v1/sources"]["data"]:
        source.pop("freshness", None)
    return found


def test_a_backup_contains_rows_and_files(backed_up_service: dict[str, Any], home: Path) -> None:
    folder, report = home / "whole", backed_up_service["report"]
    assert report["secret"] and report["missing"] == [] and report["objects"] >= 2  # the upload, and its snapshot
    assert report["tables"]["products"] >= 300 and report["tables"]["plans"] == 4
    assert (folder / "secret").read_text().strip() == backed_up_service["secret"]
    assert {path.stat().st_mode & 0o777 for path in folder.rglob("*") if path.is_file()} == {0o600}
    assert {path.stat().st_mode & 0o777 for path in (folder, *folder.rglob("*")) if path.is_dir()} == {0o700}
    assert (home / "whole.tar").stat().st_mode & 0o777 == 0o600
    assert not list(home.glob("*.partial"))
    again = run_joinery("backup", folder, "--data-dir", backed_up_service["data"], env=_BARE)
    assert again.returncode == 1 and "already exists" in again.stderr


@pytest.mark.parametrize("kind", ["folder", "tar"])
def test_a_restore_returns_the_same_service(backed_up_service: dict[str, Any], home: Path, kind: str) -> None:
    second = home / f"second-{kind}"
    if kind == "tar":
        refused = run_joinery("restore", home / "whole.tar", "--data-dir", second, env=_BARE)
        assert refused.returncode == 1 and "The backup has no secret" in refused.stderr
        wrong = run_joinery(
            "restore", home / "whole.tar", "--data-dir", second, env=_BARE | {"JOINERY_SECRET": "x" * 40}
        )
        assert wrong.returncode == 1 and "not the secret of this data" in wrong.stderr
        assert not second.exists()
        run_command("restore", home / "whole.tar", "--data-dir", second, JOINERY_SECRET=backed_up_service["secret"])
    else:
        run_command("restore", home / "whole", "--data-dir", second)
    assert (second / "secret").stat().st_mode & 0o777 == 0o600
    with run_up(second) as port:
        quiet, busy = (ApiClient(port, backed_up_service["keys"][name]) for name in ("quiet", "busy"))
        assert read_everything(quiet) == backed_up_service["reads"]
        _assert_consistent_moment(busy)
        answer = httpx.get(
            f"http://127.0.0.1:{port}/v1/changes",
            params={"cursor": backed_up_service["cursor"]},
            headers={"Authorization": f"Bearer {backed_up_service['keys']['busy']}"},
        )
        assert (answer.status_code, answer.json()["code"]) == (410, "cursor_expired"), (
            "events after the backup are lost"
        )
        events = busy.get("/v1/changes", cursor="now")
        [source] = [one["id"] for one in busy.list_all("/v1/sources")]
        assert busy.wait_for_end(busy.push(source, [build_record("P0", quantity=12345)])["id"])["status"] == "succeeded"
        assert busy.get("/v1/changes", cursor=events["next_cursor"])["data"], "and goes on"
        with psycopg.connect(read_run_file(second)["JOINERY_DATABASE_URL"]) as owner:
            _assert_protected(owner)
    again = run_joinery("restore", home / "whole", "--data-dir", second, env=_BARE)
    assert again.returncode == 1 and "already contains data" in again.stderr


def _assert_consistent_moment(api: ApiClient) -> None:
    """Check that offers have the last version of the log: the tables of the backup are from one moment.

    Queued runs continue, so their end is awaited; an inconsistent backup would repeat or omit a version.
    """
    [source] = [one["id"] for one in api.list_all("/v1/sources")]
    for run in api.list_all(f"/v1/sources/{source}/runs"):
        api.wait_for_end(run["id"])
    versions_by_subject: dict[str, list[int]] = {}
    page = api.get("/v1/changes", limit=1000)
    while True:
        for event in page["data"]:
            if event["type"].startswith("offer."):
                versions_by_subject.setdefault(event["subject"], []).append(event["version"])
        if page["caught_up"]:
            break
        page = api.get("/v1/changes", limit=1000, cursor=page["next_cursor"])
    versions = {offer["id"]: list(range(1, offer["version"] + 1)) for offer in api.list_all("/v1/offers")}
    assert versions_by_subject == versions
    assert len(versions) == 20


def _assert_protected(owner: "psycopg.Connection[tuple[Any, ...]]") -> None:
    """Check row-level security, partitions by day and permissions of processes."""
    secured = "SELECT count(*), count(*) FILTER (WHERE relforcerowsecurity) FROM pg_class WHERE relrowsecurity"
    [(tables, forced)] = owner.execute(secured).fetchall()
    assert tables == forced > 15
    owner.execute("SELECT set_config('joinery.org', '*', false)")
    assert owner.execute("SELECT count(*) FROM events_default").fetchone() == (0,)
    rights = "SELECT has_table_privilege('joinery_app', %s, 'SELECT')"
    assert owner.execute(rights, ("offers",)).fetchone() == (True,)
    parts = "SELECT bool_or(has_table_privilege('joinery_app', oid, 'SELECT')) FROM pg_class WHERE relispartition AND relkind = 'r'"
    assert owner.execute(parts).fetchone() == (False,)


def test_backup_and_restore_on_configured_servers(backed_up_service: dict[str, Any], home: Path) -> None:
    env = {
        "JOINERY_DATABASE_URL": asyncio.run(create_database("Restored-To", migrated=False)),
        "JOINERY_OBJECTS_URL": (home / "own objects").as_uri(),
        "JOINERY_SECRET": backed_up_service["secret"],
    }
    wrong = run_joinery("restore", home / "whole", env=_BARE | env | {"JOINERY_SECRET": "y" * 40})
    assert wrong.returncode == 1 and "not the secret" in wrong.stderr
    restored = run_command("restore", home / "whole", **env)
    assert restored["tables"] == backed_up_service["report"]["tables"]
    again = run_joinery("restore", home / "whole", env=_BARE | env)
    assert again.returncode == 1 and "The database is not empty" in again.stderr
    findings = {found["name"]: found["state"] for found in run_command("doctor", **env)["findings"]}
    assert findings["database"] == findings["objects"] == "ok"
    report = run_command("backup", home / "from own servers.tar", **env)
    assert (report["tables"], report["objects"]) == (restored["tables"], restored["objects"])


def test_a_damaged_backup_is_refused_before_any_change(backed_up_service: dict[str, Any], home: Path) -> None:
    for name in ("database/offers.copy.gz", "objects", "secret", "manifest.json"):
        broken = home / "broken"
        shutil.copytree(home / "whole", broken)
        path = broken / name
        path = next(one for one in path.rglob("*") if one.is_file()) if path.is_dir() else path
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content[: -1 if name == "manifest.json" else None])
        refused = run_joinery("restore", broken, "--data-dir", home / "third", env=_BARE)
        assert refused.returncode == 1 and "backup" in refused.stderr and "Traceback" not in refused.stderr, (
            refused.stderr
        )
        assert not (home / "third").exists()
        shutil.rmtree(broken)
    unfinished = home / "unfinished"
    shutil.copytree(home / "whole", unfinished)
    (unfinished / "manifest.json").unlink()
    refused = run_joinery("restore", unfinished, "--data-dir", home / "third", env=_BARE)
    assert refused.returncode == 1 and "not a complete backup" in refused.stderr


def test_an_interrupted_restore_is_not_served(backed_up_service: dict[str, Any], home: Path) -> None:
    data = home / "fourth"
    command = [
        sys.executable,
        "-P",
        "-m",
        "entrypoints.cli.main",
        "restore",
        str(home / "whole"),
        "--data-dir",
        str(data),
    ]
    process = subprocess.Popen(command, env=_BARE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until((data / "postgres" / "postmaster.pid").exists, "its database starts", every=0.005)
    process.kill()
    process.wait(10)
    refused = run_joinery("up", "--data-dir", data, "--port", free_port(), env=_BARE)
    assert refused.returncode == 1 and "did not complete" in refused.stderr
    assert run_joinery("backup", home / "half", "--data-dir", data, env=_BARE).returncode == 1
    run_command("restore", home / "whole", "--data-dir", data)
    with run_up(data) as port:
        assert read_everything(ApiClient(port, backed_up_service["keys"]["quiet"])) == backed_up_service["reads"]
