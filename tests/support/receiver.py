"""A receiver of webhooks beside a stage, and the short ways of one who owns endpoints there."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from benchmarks.receiving import Received, Receiving, free_port
from tests.flows.api import Api
from tests.flows.stage import FEEDS, Stage, eventually


@contextmanager
def receiver(stage: Stage) -> Iterator[Receiving]:
    """A receiver on the address that the stage's processes may reach; it keeps bodies and headers."""
    client = Receiving(FEEDS, free_port(FEEDS), free_port(FEEDS))
    process = stage.start("receiver", client.argv)
    try:
        client.wait()
        client.keep_bodies()
        yield client
    finally:
        stage.stop(process)


_PATHS = count(1)


@dataclass
class Hook:
    """One endpoint: its record's id, and its path at the receiver."""

    api: Api
    receiver: Receiving
    id: str
    path: str
    secrets: list[str] = field(default_factory=list)

    @property
    def target(self) -> str:
        """Where the endpoint is read."""
        return f"/v1/webhook-endpoints/{self.id}"

    def record(self) -> Any:
        """The endpoint as it is now."""
        return self.api.get(self.target)

    def patch(self, **changes: Any) -> Any:
        """Change it, whatever its version."""
        answer = self.api.call("PATCH", self.target, changes, If_Match="*")
        assert answer.status == 200, answer.body
        return answer.json()

    def test(self) -> Any:
        """Have a test event sent; answers the delivery."""
        return self.api.post(self.target + "/test")

    def rotate(self, **told: Any) -> str:
        """A new secret, of which the receiver is told at once; it verifies by all there have been."""
        secret = str(self.api.post(self.target + "/rotate-secret", told or None)["secret"])
        self.trust(secret)
        return secret

    def trust(self, secret: str) -> None:
        """The receiver verifies by this secret as well."""
        self.secrets.append(secret)
        self.receiver.trust({self.path: self.secrets})

    def received(self) -> list[Received]:
        """What it received, in order."""
        return self.receiver.deliveries(self.path)

    def gets(self, number: int, within: float = 20.0) -> list[Received]:
        """What it received, once that are so many."""
        return eventually(
            lambda: found if len(found := self.received()) >= number else None,
            f"{number} deliveries to {self.path}",
            within,
        )

    def deliveries(self, **query: Any) -> list[Any]:
        """Its deliveries, newest first."""
        return self.api.whole(self.target + "/deliveries", **query)

    def delivery(self, look: Callable[[Any], Any], within: float = 20.0, **query: Any) -> Any:
        """Its only delivery (that `query` names), once `look` says so."""

        def found() -> Any:
            one = self.deliveries(**query)
            assert len(one) <= 1, one
            return one[0] if one and look(one[0]) else None

        return eventually(found, f"a delivery to {self.path}", within, every=0.1)


def hook(api: Api, at: Receiving, types: tuple[str, ...] = ("*",), url: str = "", **told: Any) -> Hook:
    """A new endpoint; `told` are its settings, or (`does`) what its receiver does."""
    path = f"/{next(_PATHS)}"
    url = url or at.url(path, **told.pop("does", {}))
    made = api.post("/v1/webhook-endpoints", {"url": url, "event_types": list(types), **told})
    one = Hook(api, at, made["id"], path)
    one.trust(made["secret"])
    return one
