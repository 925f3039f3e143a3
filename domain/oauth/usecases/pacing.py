"""How often one may ask: what is beyond is refused with the time after which it is not."""

from domain.oauth.errors import too_often
from ports.limits import Budget, Limits


async def spend(limits: Limits, key: str, burst: int, rate: float) -> None:
    """Take one of `burst`, which come back at `rate` a second. Raises OAuthError."""
    take = await limits.take(Budget(f"oauth:{key}", burst, rate))
    if not take.allowed:
        raise too_often(take.next_in)
