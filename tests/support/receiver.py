"""Webhook receiver for a stage, and webhook endpoints whose deliveries it receives."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from benchmarks.receiver_client import ReceivedDelivery, ReceiverClient, find_free_port
from tests.flows.api import Api
from tests.flows.stage import FEEDS, Stage, eventually


@contextmanager
def receiver(stage: Stage) -> Iterator[ReceiverClient]:
    """A receiver on the address that the stage's processes may reach; it keeps bodies and headers."""
    client = ReceiverClient(FEEDS, find_free_port(FEEDS), find_free_port(FEEDS))
    process = stage.start("receiver", client.argv)
    try:
        client.wait_until_ready()
        client.keep_bodies()
        yield client
    finally:
        stage.stop(process)


_PATHS = count(1)


@dataclass
class Hook:
    """Webhook endpoint: its ID in the API, and its path at the receiver."""

    api: Api
    receiver: ReceiverClient
    id: str
    path: str
    secrets: list[str] = field(default_factory=list)

    @property
    def target(self) -> str:
        """Path of the endpoint in the API."""
        return f"/v1/webhook-endpoints/{self.id}"

    def record(self) -> Any:
        """Return the endpoint as the API shows it."""
        return self.api.get(self.target)

    def patch(self, **changes: Any) -> Any:
        """Change it, whatever its version."""
        answer = self.api.call("PATCH", self.target, changes, If_Match="*")
        assert answer.status == 200, answer.body
        return answer.json()

    def test(self) -> Any:
        """Have a test event sent; answers the delivery."""
        return self.api.post(self.target + "/test")

    def rotate(self, **settings: Any) -> str:
        """Rotate the secret and have the receiver trust it; the receiver verifies by all secrets so far."""
        secret = str(self.api.post(self.target + "/rotate-secret", settings or None)["secret"])
        self.trust(secret)
        return secret

    def trust(self, secret: str) -> None:
        """The receiver verifies by this secret as well."""
        self.secrets.append(secret)
        self.receiver.set_secrets({self.path: self.secrets})

    def received(self) -> list[ReceivedDelivery]:
        """Return the deliveries that the receiver got, in order."""
        return self.receiver.deliveries(self.path)

    def gets(self, number: int, within: float = 20.0) -> list[ReceivedDelivery]:
        """Wait until the receiver has got `number` deliveries, and return all."""
        return eventually(
            lambda: found if len(found := self.received()) >= number else None,
            f"{number} deliveries to {self.path}",
            within,
        )

    def deliveries(self, **query: Any) -> list[Any]:
        """Return the deliveries in the API, newest first."""
        return self.api.whole(self.target + "/deliveries", **query)

    def delivery(self, look: Callable[[Any], Any], within: float = 20.0, **query: Any) -> Any:
        """Wait until `look` is true for the only delivery that matches `query`, and return the delivery."""

        def found() -> Any:
            one = self.deliveries(**query)
            assert len(one) <= 1, one
            return one[0] if one and look(one[0]) else None

        return eventually(found, f"a delivery to {self.path}", within, every=0.1)


def hook(api: Api, at: ReceiverClient, types: tuple[str, ...] = ("*",), url: str = "", **settings: Any) -> Hook:
    """A new endpoint; `settings` are its settings, or (`does`) what its receiver does."""
    path = f"/{next(_PATHS)}"
    url = url or at.url(path, **settings.pop("does", {}))
    made = api.post("/v1/webhook-endpoints", {"url": url, "event_types": list(types), **settings})
    one = Hook(api, at, made["id"], path)
    one.trust(made["secret"])
    return one
