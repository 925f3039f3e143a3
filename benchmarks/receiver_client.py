"""Client of the webhook receiver (webhook_receiver.py)."""

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


class ReceivedDelivery(NamedTuple):
    """Delivery as the receiver recorded it.

    Attributes:
        endpoint: Path of the endpoint.
        id: ID of the message, which is the event's ID.
        type: Event type.
        subject: Subject of the event.
        version: Version of the subject.
        previous_version: Version of the subject before the event.
        cursor: Feed cursor after the event.
        received: Unix time of the request.
        answered: Unix time of the response; None while the response is pending.
        attempt: Number of the attempt, from 1.
        verified: Indexes of the endpoint's secrets that verify the signature.
        body: Request body, if bodies are recorded.
        headers: Request headers, if bodies are recorded.
    """

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
        """Decoded body; available only if bodies are recorded."""
        assert self.body is not None
        return dict(json.loads(self.body))


def find_free_port(host: str = "127.0.0.1") -> int:
    """Return a port on which no process listens."""
    with socket.socket() as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


@dataclass
class ReceiverClient:
    """Client of a webhook receiver, whose endpoints are paths such as `/shop`."""

    host: str = "127.0.0.1"
    port: int = field(default_factory=find_free_port)
    tls_port: int = field(default_factory=find_free_port)

    @property
    def argv(self) -> list[str]:
        """Arguments of the Python interpreter that start the receiver."""
        return ["-m", "benchmarks.webhook_receiver", self.host, str(self.port), str(self.tls_port)]

    def url(self, path: str, *, tls: bool = False, **behaviour: Any) -> str:
        """Return the URL of an endpoint; `behaviour` has fields of `Behaviour` (receiver_behaviours.py)."""
        base = f"https://{self.host}:{self.tls_port}" if tls else f"http://{self.host}:{self.port}"
        return base + path + ("?" + urlencode(behaviour) if behaviour else "")

    def set_secrets(self, secrets: Mapping[str, Sequence[str]]) -> None:
        """Set the secrets that verify deliveries, by path; a delivery states their indexes."""
        self._send_command("PUT", "/!/secrets", {path: list(path_secrets) for path, path_secrets in secrets.items()})

    def set_behaviour(self, path: str, **behaviour: Any) -> None:
        """Set the behaviour of an endpoint, in place of the one in the URL."""
        self._send_command("PUT", "/!/behaviours", {path: urlencode(behaviour)})

    def keep_bodies(self) -> None:
        """Record bodies and headers from now on."""
        self._send_command("PUT", "/!/record-bodies", True)

    def deliveries(self, *paths: str) -> list[ReceivedDelivery]:
        """Return the deliveries of the endpoints, or of all endpoints, in the order of their receipt."""
        query = urlencode([("path", path) for path in paths])
        return [
            ReceivedDelivery(*row)
            for row in self._send_command("GET", "/!/deliveries" + ("?" + query if query else ""))
        ]

    def count_deliveries(self) -> int:
        """Return the number of deliveries."""
        return int(self._send_command("GET", "/!/count"))

    def clear_deliveries(self) -> None:
        """Delete all recorded deliveries."""
        self._send_command("DELETE", "/!/deliveries")

    def wait_until_ready(self, max_wait_seconds: float = 20.0) -> None:
        """Wait until the receiver responds. Raises OSError after `max_wait_seconds`."""
        deadline = time.monotonic() + max_wait_seconds
        while True:
            try:
                self.count_deliveries()
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.02)
            else:
                return

    def _send_command(self, method: str, target: str, value: Any = None) -> Any:
        connection = http.client.HTTPConnection(self.host, self.port, timeout=60)
        try:
            connection.request(method, target, json.dumps(value))
            response = connection.getresponse()
            content = response.read()
        finally:
            connection.close()
        if response.status != 200:
            raise RuntimeError(content.decode())
        return json.loads(content)


@contextlib.contextmanager
def running_receiver() -> Iterator[tuple[ReceiverClient, int]]:
    """Run a receiver; yield its client and its process ID."""
    client = ReceiverClient()
    process = subprocess.Popen([sys.executable, *client.argv], env={**os.environ})
    try:
        client.wait_until_ready()
        yield client, process.pid
    finally:
        process.kill()
        process.wait()
