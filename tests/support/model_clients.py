"""What tests ask providers of models through."""

from adapters.http.client import Bounds, GuardedClient
from adapters.http.outbound import HttpOutbound

HOSTS = frozenset({"127.0.0.1"})


def model_client() -> GuardedClient:
    """A client that may ask this machine."""
    return GuardedClient(allowed_hosts=HOSTS, version="1", any_port=True)


def outbound(client: GuardedClient, seconds: float, size: int = 1 << 20) -> HttpOutbound:
    """It within bounds of time and size."""
    bounds = Bounds(seconds, 1.0, seconds, seconds, size, size, 0)
    return HttpOutbound(client, HOSTS, bounds)
