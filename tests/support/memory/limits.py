"""Rate limits that always allow."""

from ports.limits import RateLimitBucket, TakeResult


class UnlimitedRates:
    """Rate limits that always allow."""

    async def take_token(self, limit: RateLimitBucket) -> TakeResult:
        return TakeResult(True, 1, 0.0, 0.0)
