"""The operator's secret is replaced in running services without effect on clients."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest

from adapters.aesgcm import AesGcmVault
from entrypoints.up.directory import read_run_file
from entrypoints.up.process import create_child_setup
from tests.flows.api_client import ApiClient
from tests.flows.feeds import FeedServer, build_catalogue, serve_feeds
from tests.flows.service_processes import FEEDS, ROOT, ServiceProcesses, free_port, wait_until
from tests.postgres.databases import create_database
from tests.support.forkserver import run_joinery

CREDENTIALS = {"token": "Geheim-7f6e5d4c3b"}
TABLES = (
    ("sources", "id", "credentials"),
    ("webhook_endpoints", "id", "secret"),
    ("webhook_endpoints", "id", "previous_secret"),
    ("idempotency_keys", "key", "body"),
    ("key_ring", "'key ring'", "sealed"),
)


@dataclass
class DataDirectory:
    """Data directory for `joinery up`."""

    path: Path
    port: int = field(default_factory=free_port)
    process: "subprocess.Popen[str] | None" = None

    def start(self) -> None:
        """Start the service, and wait until it is ready."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("JOINERY_")}
        words = ["up", "--data-dir", str(self.path), "--port", str(self.port)]
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "entrypoints.cli.main", *words],
            env={**kept, "PYTHONPATH": str(ROOT), "JOINERY_ALLOW_PRIVATE_HOSTS": FEEDS,
                 "JOINERY_PLUGINS": str(ROOT / "plugins.toml")},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, preexec_fn=create_child_setup(signal.SIGTERM),
        )  # fmt: skip
        assert self.process.stdout is not None
        lines = []
        for line in self.process.stdout:
            lines.append(line)
            if "ready" in line:
                return
        raise AssertionError(lines)

    def stop(self) -> None:
        """Stop the service."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.communicate(timeout=40)

    def restart(self) -> None:
        """Restart the service."""
        self.stop()
        self.start()

    def run_command(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """Run a command on the directory."""
        return run_joinery(*words, "--data-dir", str(self.path))

    def read_secrets(self) -> list[str]:
        """Return the stored secrets."""
        return (self.path / "secret").read_text().split()

    def read_sealed_values(self) -> list[tuple[str, str, bytes]]:
        """Return every sealed value with table and owner."""
        found = []
        with psycopg.connect(read_run_file(self.path)["JOINERY_DATABASE_URL"]) as connection:
            connection.execute("SELECT set_config('joinery.org', '*', false)")
            for table, owner, column in TABLES:
                rows = connection.execute(
                    f"SELECT {owner}, {column} FROM {table} WHERE {column} IS NOT NULL"
                ).fetchall()  # type: ignore[arg-type]
                found += [(table, str(name), bytes(box)) for name, box in rows if bytes(box)[:1] != b"{"]
        return [one for one in found if one[2]]


@contextmanager
def run_data_directory(path: Path) -> Iterator[DataDirectory]:
    """Run the service on a data directory."""
    data_directory = DataDirectory(path)
    try:
        data_directory.start()
        yield data_directory
    finally:
        data_directory.stop()


@dataclass
class ServiceClient:
    """Client that stores cursors and responses of the service."""

    port: int
    secret: str
    feeds: FeedServer
    source: str = ""
    endpoint: Any = None
    list_cursor: str = ""
    log_cursor: str = ""

    @property
    def api(self) -> ApiClient:
        """The API client."""
        return ApiClient(self.port, self.secret)

    def create_objects(self, url: str) -> None:
        """Create a source with credentials and an endpoint during secret rotation; store cursors."""
        for number in range(2):
            self.source = self.api.create_source("url", config={"url": url}, name=f"Source {number}")
        stored = self.api.call("PUT", f"/v1/sources/{self.source}/credentials", {"credentials": CREDENTIALS})
        assert stored.status == 200, stored.body
        body = {"url": "https://receiver.example/", "event_types": ["*"]}
        self.endpoint = self.api.call("POST", "/v1/webhook-endpoints", body, Idempotency_Key="once").json()
        self.api.post(f"/v1/webhook-endpoints/{self.endpoint['id']}/rotate-secret")
        self.list_cursor = self.api.get("/v1/sources", limit=1)["next_cursor"]
        self.log_cursor = self.api.get("/v1/changes")["next_cursor"]

    def create_upload(self) -> Any:
        """Announce an upload; return it with its signed link."""
        files = self.api.create_source("file")
        body = {"filename": "a.csv", "content_type": "text/csv", "bytes": 5}
        return self.api.post(f"/v1/sources/{files}/uploads", body)

    def check_unaffected(self) -> None:
        """Check that key, cursors, stored credentials and repeated responses still work."""
        assert self.api.get(f"/v1/sources/{self.source}")["has_credentials"] is True
        tried = self.api.post(f"/v1/sources/{self.source}/test")
        assert tried["ok"] is True, tried
        assert self.feeds.requests[-1].headers["Authorization"] == f"Bearer {CREDENTIALS['token']}"
        self.api.get("/v1/sources", starting_after=self.list_cursor)
        self.api.get("/v1/changes", cursor=self.log_cursor)
        body = {"url": "https://receiver.example/", "event_types": ["*"]}
        again = self.api.call("POST", "/v1/webhook-endpoints", body, Idempotency_Key="once")
        assert again.headers["idempotent-replayed"] == "true" and again.json() == self.endpoint


@pytest.fixture
def feeds() -> Iterator[FeedServer]:
    """Run a feed server."""
    with serve_feeds() as served:
        yield served


def create_client(port: int, made: Any, feeds: FeedServer) -> ServiceClient:
    """Create a client with the key and its objects."""
    one = ServiceClient(port, made["secret"], feeds)
    one.create_objects(feeds.serve("/feed.csv", build_catalogue(2)))
    return one


def is_retired(done: "subprocess.CompletedProcess[str]") -> bool:
    """Return whether the former secret was retired; the only accepted failure is that it is still needed."""
    assert done.returncode == 0 or "still needed" in done.stderr, done
    return done.returncode == 0


def count_opened_values(secret: str, values: list[tuple[str, str, bytes]]) -> int:
    """Return the number of values that the secret alone can open."""
    known = AesGcmVault(secret).secret_ids[0]
    return sum(AesGcmVault(secret).parse_secret_id(box) == known for _, _, box in values)


@pytest.mark.soak
def test_a_data_directory_gets_a_new_secret(tmp_path: Path, feeds: FeedServer) -> None:
    with run_data_directory(tmp_path / "data") as data:
        org = json.loads(
            data.run_command("org", "create", "--name", "F", "--kind", "retailer", "--plan", "max", "--json").stdout
        )
        words = ("key", "create", "--org", org["organisation"], "--mode", "live", "--json")
        one = create_client(data.port, json.loads(data.run_command(*words).stdout), feeds)
        upload = one.create_upload()
        [first] = data.read_secrets()
        assert count_opened_values(first, data.read_sealed_values()) == len(data.read_sealed_values()) >= 6

        for _ in range(2):
            done = data.run_command("secret", "rotate")
            assert done.returncode == 0 and "Restart" in done.stdout, done
        third, second, kept = data.read_secrets()
        assert kept == first and len({first, second, third}) == 3
        assert (data.path / "secret").stat().st_mode & 0o777 == 0o600
        refused = data.run_command("secret", "retire")
        assert refused.returncode == 1 and "Restart" in refused.stderr
        one.check_unaffected()

        data.restart()
        one.check_unaffected()
        assert one.api.put_file(upload["target"], b"SKU\nA").status in (200, 201, 204)
        assert data.run_command("secret", "retire").returncode == 1
        data.restart()  # during the rotation
        wait_until(
            lambda: is_retired(data.run_command("secret", "retire")), "the former secrets are retired", 90, every=1
        )
        one.check_unaffected()
        assert data.read_secrets() == [third]
        signing = [
            AesGcmVault(third).decrypt(box, owner)
            for table, owner, box in data.read_sealed_values()
            if "webhook" in table
        ]
        assert {"secret": one.endpoint["secret"]} in signing and len(signing) == 2
        assert count_opened_values(third, data.read_sealed_values()) == len(data.read_sealed_values()) >= 6

        upload = one.create_upload()
        data.restart()
        one.check_unaffected()
        assert one.api.put_file(upload["target"], b"SKU\nA").status in (200, 201, 204)
        env = read_run_file(data.path)
        assert env["JOINERY_SECRET"] == third and not env["JOINERY_SECRET_FORMER"]
        for former in (first, second):
            alone = run_joinery("secret", "status", env={**env, "JOINERY_SECRET": former})
            assert alone.returncode == 1 and "is not available" in alone.stderr, alone
            assert count_opened_values(former, data.read_sealed_values()) == 0


OLD, NEW = "an old secret of at least thirty-two characters", "a new secret of at least thirty-two characters"


@pytest.mark.soak
def test_processes_with_old_and_new_settings_work_side_by_side(tmp_path: Path, feeds: FeedServer) -> None:
    """Each process opens what the other one seals or signs."""
    both = {"JOINERY_SECRET": NEW, "JOINERY_SECRET_FORMER": OLD}
    port = free_port()
    services = ServiceProcesses(asyncio.run(create_database("secrets")), tmp_path, {"JOINERY_SECRET": OLD})
    try:
        api, old = services.start_api(), services.create_organisation()
        services.start("worker")
        services.start("scheduler", **both)
        fresh = services.start("api", **both, JOINERY_PORT=str(port))
        wait_until(lambda: ApiClient(port, None).is_ready(), "the other API is ready", 40)
        at_old = create_client(services.port, {"secret": old.api.secret}, feeds)
        at_new = create_client(port, {"secret": services.create_organisation().api.secret}, feeds)
        until = time.monotonic() + 20
        while time.monotonic() < until:
            for port_, one in ((port, at_old), (services.port, at_new)):
                ServiceClient(**{**one.__dict__, "port": port_}).check_unaffected()
            run = old.api.pull(at_old.source)
            assert run["status"] == "succeeded", run
            time.sleep(1)
        refused = run_joinery("secret", "retire", env={**services.env, **both})
        assert refused.returncode == 1 and "without the current secret" in refused.stderr

        for process in (api, *[one for one in services.processes if one is not fresh and one is not api][:1]):
            services.stop(process)  # the old API and the old worker
        wait_until(
            lambda: is_retired(run_joinery("secret", "retire", env={**services.env, **both})),
            "nothing needs the old one",
            90,
            1,
        )
        for one in (at_old, at_new):
            ServiceClient(**{**one.__dict__, "port": port}).check_unaffected()
        late = run_joinery("key", "create", "--org", old.organisation.id, "--mode", "live", env=services.env)
        assert late.returncode == 1 and "JOINERY_SECRET_FORMER" in late.stderr, "old settings are refused from now on"
        services.stop(fresh)
        services.env["JOINERY_SECRET"] = NEW
        services.start_api()
        for one in (at_old, at_new):
            ServiceClient(**{**one.__dict__, "port": services.port}).check_unaffected()
    finally:
        services.stop()
