"""Rate budgets shared by all processes: a Redis script leases tokens, and each process serves from its leases."""

import asyncio
import logging
import time
from collections.abc import Callable
from importlib.resources import files

from redis.asyncio import BlockingConnectionPool, Redis
from redis.exceptions import RedisError

from adapters.redis.share import Share
from domain.kernel.buckets import full
from ports.limits import Budget, Take

LASTS = 1.0
"""Seconds that a lease may be served from."""
PATIENCE = 0.05
"""Seconds after which a call to Redis is abandoned."""
PAUSE = 1.0
"""Seconds without Redis before the next attempt."""
KEPT = 10_000
"""Number of shares above which unused ones are dropped."""

LOG = logging.getLogger("joinery.limits")


class RedisLimits:
    """Limits (ports/limits.py) over the Redis at `url`, connected on first use.

    All processes together grant no more than the budget: tokens are leased before they are served, and the bucket
    refills only as far as leases permit (lease.lua). A caller with few requests gets one token at a time.
    """

    def __init__(
        self,
        url: str,
        *,
        clock: Callable[[], float] = time.monotonic,
        prefix: str = "joinery:limit:",
        patience: float = PATIENCE,
    ) -> None:
        self._pool = BlockingConnectionPool.from_url(url, max_connections=16, timeout=patience)
        self._redis = Redis(connection_pool=self._pool)
        self._script = self._redis.register_script(files("adapters.redis").joinpath("lease.lua").read_text("utf-8"))
        self._clock, self._prefix, self._patience = clock, prefix, patience
        self._shares: dict[str, Share] = {}
        self._alone_until = 0.0
        self._alone = False

    async def take(self, budget: Budget) -> Take:
        now = self._clock()
        share = self._shares.get(budget.key)
        if share is None or not share.fits(budget):
            share = self._open(budget, now)
        answer = share.answer(now)
        while answer is None:
            if now < self._alone_until:
                return share.alone(now)
            await self._ask(budget.key, share)
            now = self._clock()
            answer = share.answer(now)
        return answer

    async def close(self) -> None:
        await self._redis.aclose()
        await self._pool.aclose()

    async def _ask(self, key: str, share: Share) -> None:
        """Lease tokens; concurrent callers of the same share wait for the same request."""
        if share.asking is None:
            share.asking = asyncio.create_task(self._lease(key, share))
        await asyncio.shield(share.asking)

    async def _lease(self, key: str, share: Share) -> None:
        now = self._clock()
        whole = share.whole
        requested = share.want(now)
        try:
            async with asyncio.timeout(self._patience):
                granted, remaining, generation = await self._script(
                    keys=[self._prefix + key],
                    args=[whole.burst, whole.rate, requested, share.size, share.generation, LASTS],
                )
        except (RedisError, OSError, TimeoutError) as error:
            self._lost(error)
        else:
            share.lease(now, LASTS, int(granted), float(remaining), int(generation))
            self._found()
        finally:
            share.asking = None

    def _lost(self, error: Exception) -> None:
        self._alone_until = self._clock() + PAUSE
        if not self._alone:
            LOG.warning(
                "Redis is lost or slow (%s): each process limits by itself until it is back", type(error).__name__
            )
        self._alone = True

    def _found(self) -> None:
        if self._alone:
            LOG.warning("Redis is back: budgets are shared again")
        self._alone = False

    def _open(self, budget: Budget, now: float) -> Share:
        if len(self._shares) >= KEPT:
            self._shares = {key: share for key, share in self._shares.items() if share.asking or now < share.until}
        share = self._shares[budget.key] = Share(full(budget.burst, budget.rate, now))
        return share
