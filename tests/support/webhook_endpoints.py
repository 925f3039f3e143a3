"""Webhook receiver, and webhook endpoints whose deliveries it receives."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from benchmarks.receiver_client import ReceivedDelivery, ReceiverClient, find_free_port
from tests.flows.api_client import ApiClient
from tests.flows.service_processes import FEEDS, ServiceProcesses, wait_until


@contextmanager
def run_receiver(services: ServiceProcesses) -> Iterator[ReceiverClient]:
    """Run a receiver that the service processes can reach; it stores bodies and headers."""
    client = ReceiverClient(FEEDS, find_free_port(FEEDS), find_free_port(FEEDS))
    process = services.start("receiver", client.argv)
    try:
        client.wait_until_ready()
        client.keep_bodies()
        yield client
    finally:
        services.stop(process)


_PATHS = count(1)


@dataclass
class EndpointClient:
    """Webhook endpoint: its ID in the API, and its path at the receiver."""

    api: ApiClient
    receiver: ReceiverClient
    id: str
    path: str
    secrets: list[str] = field(default_factory=list)

    @property
    def target(self) -> str:
        """Path of the endpoint in the API."""
        return f"/v1/webhook-endpoints/{self.id}"

    def get_endpoint(self) -> Any:
        """Return the endpoint as the API shows it."""
        return self.api.get(self.target)

    def patch_endpoint(self, **changes: Any) -> Any:
        """Change the endpoint with `If-Match: *`."""
        answer = self.api.call("PATCH", self.target, changes, If_Match="*")
        assert answer.status == 200, answer.body
        return answer.json()

    def send_test_event(self) -> Any:
        """Send a test event; return the delivery."""
        return self.api.post(self.target + "/test")

    def rotate_secret(self, **settings: Any) -> str:
        """Rotate the secret and have the receiver trust it; the receiver verifies by all secrets so far."""
        secret = str(self.api.post(self.target + "/rotate-secret", settings or None)["secret"])
        self.trust_secret(secret)
        return secret

    def trust_secret(self, secret: str) -> None:
        """Make the receiver also verify with the secret."""
        self.secrets.append(secret)
        self.receiver.set_secrets({self.path: self.secrets})

    def list_received(self) -> list[ReceivedDelivery]:
        """Return the deliveries that the receiver got, in order."""
        return self.receiver.deliveries(self.path)

    def wait_for_received(self, number: int, within: float = 20.0) -> list[ReceivedDelivery]:
        """Wait until the receiver has got `number` deliveries, and return all."""
        return wait_until(
            lambda: found if len(found := self.list_received()) >= number else None,
            f"{number} deliveries to {self.path}",
            within,
        )

    def list_deliveries(self, **query: Any) -> list[Any]:
        """Return the deliveries in the API, newest first."""
        return self.api.list_all(self.target + "/deliveries", **query)

    def wait_for_delivery(self, look: Callable[[Any], Any], within: float = 20.0, **query: Any) -> Any:
        """Wait until `look` is true for the only delivery that matches `query`, and return the delivery."""

        def found() -> Any:
            one = self.list_deliveries(**query)
            assert len(one) <= 1, one
            return one[0] if one and look(one[0]) else None

        return wait_until(found, f"a delivery to {self.path}", within, every=0.1)


def create_endpoint(
    api: ApiClient, at: ReceiverClient, types: tuple[str, ...] = ("*",), url: str = "", **settings: Any
) -> EndpointClient:
    """Create an endpoint with `settings`; `does` is the behaviour of its receiver."""
    path = f"/{next(_PATHS)}"
    url = url or at.url(path, **settings.pop("does", {}))
    created = api.post("/v1/webhook-endpoints", {"url": url, "event_types": list(types), **settings})
    one = EndpointClient(api, at, created["id"], path)
    one.trust_secret(created["secret"])
    return one
