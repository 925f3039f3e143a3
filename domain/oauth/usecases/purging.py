"""What is over is deleted: codes, tokens, sign-ins, devices, and apps that registered themselves and that nobody uses."""

from domain.oauth.model import UNUSED
from domain.oauth.ports import TokenStore
from ports.clock import Clock


class OAuthPurging:
    """A tick."""

    def __init__(self, store: TokenStore, clock: Clock) -> None:
        self._store, self._clock = store, clock

    async def purge(self) -> int:
        """Delete it; answers how many rows."""
        now = self._clock.now()
        return await self._store.purge(now, now - UNUSED)
