"""Proxy examples in front of two APIs: rolling restart, streams, uploads and client addresses.

The examples run as shipped except for addresses, ports and certificate. Skipped without nginx or Caddy.
"""

import asyncio
import http.client
import itertools
import json
import queue
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.flows.feeds import build_catalogue, build_record
from tests.flows.service_processes import ServiceProcesses, Tenancy, free_port, wait_until
from tests.postgres.databases import create_database

pytestmark = pytest.mark.soak
ROOT = Path(__file__).parents[2]
NAME = "api.example.com"
CLIENT = "127.0.0.3"
"""Client address that is not a trusted proxy."""
RATE = 24
"""Requests a second during the rolling restart."""
API = ("-m", "entrypoints.cli.main", "api")


@dataclass(frozen=True)
class ProxySetup:
    """Files and ports of a proxy: folder, certificate, key, its own port and those of both APIs."""

    folder: Path
    certificate: Path
    key: Path
    port: int
    apis: tuple[int, int]


def replace_texts(text: str, changes: Mapping[str, str]) -> str:
    for old, new in changes.items():
        assert old in text, f"the example does not say {old!r}"
        text = text.replace(old, new)
    return text


def configure_nginx(setup: ProxySetup) -> list[str]:
    example = replace_texts(
        (ROOT / "deploy/nginx/joinery.conf").read_text("utf-8"),
        {
            "127.0.0.1:8080": f"127.0.0.1:{setup.apis[0]}",
            "127.0.0.1:8081": f"127.0.0.1:{setup.apis[1]}",
            "listen 80;": f"listen 127.0.0.1:{free_port()};",
            "listen 443 ssl": f"listen 127.0.0.1:{setup.port} ssl",
            "/etc/joinery/tls/fullchain.pem": str(setup.certificate),
            "/etc/joinery/tls/privkey.pem": str(setup.key),
        },
    )
    temporary = "\n".join(
        f"{kind}_temp_path {setup.folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    config = setup.folder / "nginx.conf"
    config.write_text(
        f"daemon off; pid {setup.folder}/pid; worker_processes 1; error_log {setup.folder}/error.log info;\n"
        f"events {{}}\nhttp {{\naccess_log {setup.folder}/access.log;\n{temporary}\n{example}\n}}\n"
    )
    return ["nginx", "-p", str(setup.folder), "-e", f"{setup.folder}/error.log", "-c", str(config)]


def configure_caddy(setup: ProxySetup) -> list[str]:
    example = replace_texts(
        (ROOT / "deploy/caddy/Caddyfile").read_text("utf-8"),
        {
            "127.0.0.1:8080 127.0.0.1:8081": " ".join(f"127.0.0.1:{port}" for port in setup.apis),
            "{\n\tservers {": f"{{\n\tadmin off\n\tauto_https off\n\tstorage file_system {setup.folder}\n\tservers {{",
            f"{NAME} {{": f"https://{NAME}:{setup.port} {{\n\tbind 127.0.0.1\n\ttls {setup.certificate} {setup.key}",
        },
    )
    config = setup.folder / "Caddyfile"
    config.write_text(example)
    return ["caddy", "run", "--adapter", "caddyfile", "--config", str(config)]


PROXIES: Mapping[str, Callable[[ProxySetup], list[str]]] = {"nginx": configure_nginx, "caddy": configure_caddy}


class ProxyConnection(http.client.HTTPSConnection):
    """Connection to the proxy by its public name, from a separate client address."""

    def __init__(self, port: int, certificate: Path) -> None:
        self._trust = ssl.create_default_context(cafile=str(certificate))
        super().__init__(NAME, port)

    def connect(self) -> None:
        """Connect without a DNS lookup."""
        raw = socket.create_connection(("127.0.0.1", self.port), 60, (CLIENT, 0))
        self.sock = self._trust.wrap_socket(raw, server_hostname=NAME)


@dataclass
class ProxiedService:
    """Service with two APIs behind a proxy."""

    stage: ServiceProcesses
    setup: ProxySetup
    apis: list["subprocess.Popen[bytes]"] = field(default_factory=list)

    def open_connection(self) -> ProxyConnection:
        return ProxyConnection(self.setup.port, self.setup.certificate)

    def send(self, method: str, target: str, body: bytes | None = None, **headers: str) -> tuple[int, bytes]:
        connection = self.open_connection()
        try:
            connection.request(method, target, body, {name.replace("_", "-"): value for name, value in headers.items()})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def start_api(self, number: int) -> None:
        port = self.setup.apis[number]
        self.apis[number:number] = [self.stage.start(f"api-{number}", API, JOINERY_PORT=str(port))]
        wait_until(lambda: is_ready(port), f"API {number} is ready", within=60)

    def restart_api(self, number: int) -> None:
        self.stage.stop(self.apis.pop(number))
        self.start_api(number)


def is_ready(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("tls")
    made = (folder / "certificate.pem", folder / "key.pem")
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-days",
        "2",
    ]
    subject = ["-subj", f"/CN={NAME}", "-addext", f"subjectAltName=DNS:{NAME}"]
    out = ["-out", str(made[0]), "-keyout", str(made[1])]
    subprocess.run([*command, *subject, *out], check=True, capture_output=True)
    return made


@pytest.fixture(scope="module", params=sorted(PROXIES))
def service(
    request: pytest.FixtureRequest, certificate: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ProxiedService]:
    name: str = request.param
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    folder = tmp_path_factory.mktemp(name)
    setup = ProxySetup(folder, *certificate, free_port(), (free_port(), free_port()))
    environment = {"JOINERY_BASE_URL": f"https://{NAME}:{setup.port}", "JOINERY_TRUSTED_PROXIES": "127.0.0.1"}
    if name == "caddy":
        environment["JOINERY_DRAIN_SECONDS"] = "3"
    stage = ServiceProcesses(asyncio.run(create_database(f"proxy_{name}")), folder, environment)
    with (folder / "proxy.log").open("wb") as log:
        proxy = subprocess.Popen(PROXIES[name](setup), stdout=log, stderr=log)
    try:
        made = ProxiedService(stage, setup)
        stage.start("worker")
        for number in (0, 1):
            made.start_api(number)
        wait_until(lambda: is_answering(made), "the proxy answers")
        yield made
    finally:
        stage.stop()
        proxy.terminate()
        proxy.wait(20)


def is_answering(service: ProxiedService) -> bool:
    try:
        return service.send("GET", "/healthz")[0] == 200
    except OSError:
        return False


@pytest.fixture
def tenancy(service: ProxiedService) -> Tenancy:
    """Create an organisation whose own client bypasses the proxy."""
    service.stage.port = service.setup.apis[0]
    return service.stage.create_organisation()


def build_headers(tenancy: Tenancy) -> dict[str, str]:
    return {"Authorization": f"Bearer {tenancy.api.secret}"}


class LoadGenerator:
    """Generator of GETs and pushes at a steady rate, which counts responses and failures."""

    def __init__(self, service: ProxiedService, tenancy: Tenancy, source: str) -> None:
        self.outcomes: Counter[str] = Counter()
        self._service, self._headers, self._source = service, build_headers(tenancy), source
        self._scheduled: queue.SimpleQueue[int | None] = queue.SimpleQueue()
        self._ending = threading.Event()
        self._threads = [threading.Thread(target=self._send_requests) for _ in range(12)]
        self._clock = threading.Thread(target=self._schedule_requests)

    def __enter__(self) -> "LoadGenerator":
        for thread in (*self._threads, self._clock):
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._clock.join()
        for _ in self._threads:
            self._scheduled.put(None)
        for thread in self._threads:
            thread.join()

    def _schedule_requests(self) -> None:
        for number in itertools.count():
            if self._ending.wait(1 / RATE):
                return
            self._scheduled.put(number)

    def _send_requests(self) -> None:
        """Send requests of one client over a persistent connection."""
        connection = self._service.open_connection()
        while (number := self._scheduled.get()) is not None:
            try:
                self._send_request(connection, number)
            except (OSError, http.client.HTTPException) as error:
                self.outcomes[f"{type(error).__name__}: {error}"] += 1
                connection.close()
        connection.close()

    def _send_request(self, connection: ProxyConnection, number: int) -> None:
        if number % 6:
            method, target, body, more = "GET", ("/v1/products?limit=5", "/v1/sources")[number % 2], None, {}
        else:
            body = json.dumps({"records": [build_record(f"chair-{number}")]})
            method, target = "POST", f"/v1/sources/{self._source}/records"
            more = {"Content-Type": "application/json", "Idempotency-Key": f"roll-{number}-{time.time_ns()}"}
        connection.request(method, target, body, {**self._headers, **more})
        answer = connection.getresponse()
        answer.read()
        self.outcomes[f"{method} {answer.status}"] += 1


def test_a_rolling_restart_causes_no_failures(service: ProxiedService, tenancy: Tenancy) -> None:
    source = tenancy.api.create_source("push", config={"currency": "usd"})
    service.send("GET", "/v1/products", **build_headers(tenancy))
    restarts = 0
    with LoadGenerator(service, tenancy, source) as load:
        while restarts < 4 or load.outcomes.total() < 20 * RATE:
            service.restart_api(restarts % 2)
            restarts += 1
    print(f"{restarts} restarts, {dict(load.outcomes)}")
    assert {*load.outcomes} == {"GET 200", "POST 202"}, load.outcomes


def test_events_are_streamed_without_buffering(service: ProxiedService, tenancy: Tenancy) -> None:
    source = tenancy.api.create_source("push", config={"currency": "usd"})
    connection = service.open_connection()
    connection.request("GET", "/v1/stream", headers={**build_headers(tenancy), "Accept": "text/event-stream"})
    stream = connection.getresponse()
    assert (stream.status, stream.headers["Content-Type"].partition(";")[0]) == (200, "text/event-stream")
    tenancy.api.push(source, [build_record("streamed")])
    # A buffered event would arrive only at the end of the stream, and reading would time out.
    assert any(b"product.created" in line for line in iter(stream.readline, b""))
    connection.close()


def test_a_long_poll_outlasts_the_proxy(service: ProxiedService, tenancy: Tenancy) -> None:
    status, body = service.send("GET", "/v1/changes?cursor=now&wait=25", **build_headers(tenancy))
    assert (status, json.loads(body)["data"]) == (200, [])


def announce_upload(tenancy: Tenancy, size: int) -> Any:
    source = tenancy.api.create_source("file", config={"currency": "usd"}, licence_basis="own_data")
    announcement = {"filename": "feed.csv", "content_type": "text/csv", "bytes": size}
    return tenancy.api.post(f"/v1/sources/{source}/uploads", announcement)


def test_a_large_upload_passes(service: ProxiedService, tenancy: Tenancy) -> None:
    content = build_catalogue(2000)
    content += b"\n" * (24 * 1024 * 1024 - len(content))
    upload = announce_upload(tenancy, len(content))
    link = urlsplit(upload["target"]["url"])
    assert link.netloc == f"{NAME}:{service.setup.port}"
    headers = {name.replace("-", "_"): value for name, value in upload["target"]["headers"].items()}
    status, body = service.send("PUT", f"{link.path}?{link.query}", content, **headers)
    assert status in (200, 201, 204), body
    run = tenancy.api.wait_for_end(tenancy.api.post(f"/v1/uploads/{upload['id']}/complete")["run"], within=120)
    assert run["status"] == "succeeded"


def test_a_refused_body_is_answered_by_the_api(service: ProxiedService, tenancy: Tenancy) -> None:
    """The API answers before it has read the body, and that answer arrives."""
    body = b'{"records": [' + b" " * (3 * 1024 * 1024) + b"]}"
    more = {"Content_Type": "application/json", "Idempotency_Key": "refused-1"}
    target = f"/v1/sources/{tenancy.api.create_source('push', config={'currency': 'usd'})}/records"
    assert service.send("POST", target, body, Authorization="Bearer svc_live_nobody", **more)[0] == 401


def test_large_headers_pass(service: ProxiedService, tenancy: Tenancy) -> None:
    assert (
        service.send("GET", "/v1/sources", **build_headers(tenancy), X_Padding="x" * 7000, X_More="y" * 7000)[0] == 200
    )


def test_the_client_address_is_that_seen_by_the_proxy(service: ProxiedService, tenancy: Tenancy) -> None:
    target = f"/v1/sources?limit={17}"
    spoofed = {"X_Forwarded_For": "203.0.113.9", "Forwarded": "for=203.0.113.9"}
    assert service.send("GET", target, **build_headers(tenancy), **spoofed)[0] == 200
    seen = lambda: service.stage.fetch_rows(  # noqa: E731
        "SELECT ip FROM request_logs WHERE org = %(org)s AND query::text LIKE '%%17%%'", org=tenancy.tenant.org
    )
    assert wait_until(seen, "the request is logged") == [(CLIENT,)]


def test_metrics_are_not_public(service: ProxiedService) -> None:
    assert service.send("GET", "/metrics")[0] in (403, 404)
