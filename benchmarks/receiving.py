"""Runs a receiver of webhooks (receiver.py) and asks it what it received."""

import contextlib
import http.client
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import urlencode


class Received(NamedTuple):
    """One delivery as it was received (receiver.FIELDS)."""

    endpoint: str
    id: str
    type: str
    subject: str
    version: int
    previous_version: int | None
    cursor: str | None
    received: float
    answered: float | None
    attempt: int
    verified: list[int]
    body: str | None
    headers: dict[str, str] | None

    @property
    def event(self) -> dict[str, Any]:
        """The body read; only of receivers that keep bodies."""
        assert self.body is not None
        return dict(json.loads(self.body))


def free_port(host: str = "127.0.0.1") -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


@dataclass
class Receiving:
    """The client of a receiver. Endpoints are paths such as `/shop`."""

    host: str = "127.0.0.1"
    port: int = field(default_factory=free_port)
    tls_port: int = field(default_factory=free_port)

    @property
    def argv(self) -> list[str]:
        """What an interpreter is to run."""
        return ["-m", "benchmarks.receiver", self.host, str(self.port), str(self.tls_port)]

    def url(self, path: str, *, tls: bool = False, **behaviour: Any) -> str:
        """The endpoint's address; `behaviour` as in behaviours.py."""
        base = f"https://{self.host}:{self.tls_port}" if tls else f"http://{self.host}:{self.port}"
        return base + path + ("?" + urlencode(behaviour) if behaviour else "")

    def trust(self, secrets: Mapping[str, Sequence[str]]) -> None:
        """The secrets of endpoints, by path; the first has the number 0."""
        self._ask("PUT", "/!/secrets", {path: list(some) for path, some in secrets.items()})

    def behave(self, path: str, **behaviour: Any) -> None:
        """From now on the endpoint does this, whatever its address says."""
        self._ask("PUT", "/!/behaviours", {path: urlencode(behaviour)})

    def keep_bodies(self) -> None:
        """Keep bodies and headers as well."""
        self._ask("PUT", "/!/whole", True)

    def deliveries(self, *paths: str) -> list[Received]:
        """What the endpoints received (all, when none is named), in the order of receiving."""
        query = urlencode([("path", path) for path in paths])
        return [Received(*row) for row in self._ask("GET", "/!/deliveries" + ("?" + query if query else ""))]

    def count(self) -> int:
        """How many deliveries there were."""
        return int(self._ask("GET", "/!/count"))

    def forget(self) -> None:
        """Begin anew."""
        self._ask("DELETE", "/!/deliveries")

    def wait(self, within: float = 20.0) -> None:
        """Until it listens."""
        until = time.monotonic() + within
        while True:
            try:
                self.count()
            except OSError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.02)
            else:
                return

    def _ask(self, method: str, target: str, value: Any = None) -> Any:
        connection = http.client.HTTPConnection(self.host, self.port, timeout=60)
        try:
            connection.request(method, target, json.dumps(value))
            answer = connection.getresponse()
            content = answer.read()
        finally:
            connection.close()
        if answer.status != 200:
            raise RuntimeError(content.decode())
        return json.loads(content)


@contextlib.contextmanager
def receiving() -> Iterator[tuple[Receiving, int]]:
    """A receiver, running, and its process id."""
    client = Receiving()
    process = subprocess.Popen([sys.executable, *client.argv], env={**os.environ})
    try:
        client.wait()
        yield client, process.pid
    finally:
        process.kill()
        process.wait()
