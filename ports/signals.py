"""Being told at once instead of asking again and again."""

from contextlib import AbstractAsyncContextManager
from typing import Protocol


class SignalListener(Protocol):
    """One listener on one channel."""

    async def wait(self, timeout: float | None) -> bool:
        """True once something was said on the channel since the last wait; False when the time (seconds) is over."""
        ...

    def payloads(self) -> frozenset[str]:
        """What was said since this was last asked; an empty text among it means that anything may have been missed."""
        ...


class Signals(Protocol):
    """Signals are hints: whoever waits also looks for itself now and then.

    Channels: `jobs` is told of each new job, `events` of appended events (`org_… t`, the tenant and whether it is live),
    `webhooks` of what changed about an endpoint (`org_… t whe_…`).
    """

    def subscribe(self, channel: str) -> AbstractAsyncContextManager[SignalListener]:
        """Listen from now on; a lost connection is taken up again and counts as a signal with an empty text."""
        ...
