"""HTTP clients for providers of language models in tests."""

from adapters.http.client import GuardedClient, HttpBounds
from adapters.http.outbound import HttpOutbound

HOSTS = frozenset({"127.0.0.1"})


def model_client() -> GuardedClient:
    """Return a client that may connect to this machine."""
    return GuardedClient(allowed_hosts=HOSTS, version="1", allows_any_port=True)


def outbound(client: GuardedClient, seconds: float, size: int = 1 << 20) -> HttpOutbound:
    """Return an outbound adapter with limits of time and size."""
    bounds = HttpBounds(seconds, 1.0, seconds, seconds, size, size, 0)
    return HttpOutbound(client, HOSTS, bounds)
