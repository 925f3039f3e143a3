"""Rate limits that all processes share through Redis.

A Redis script leases tokens of a bucket to a process, which then decides about requests without Redis.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from importlib.resources import files

from redis.asyncio import BlockingConnectionPool, Redis
from redis.exceptions import RedisError

from adapters.redis.bucket_lease import BucketLease
from domain.kernel.buckets import create_full_bucket
from ports.limits import RateLimitBucket, TakeResult

LEASE_SECONDS = 1.0
"""Seconds for which leased tokens may be used."""
CALL_TIMEOUT_SECONDS = 0.05
"""Seconds after which a call to Redis is abandoned."""
RETRY_SECONDS = 1.0
"""Seconds without calls to Redis after a failed call."""
MIN_LEASES_FOR_CLEANUP = 10_000
"""Number of stored leases from which expired leases are deleted before a new lease is stored."""

LOG = logging.getLogger("joinery.limits")


class RedisLimits:
    """Rate limits in Redis (port RateLimits in ports/limits.py).

    All processes together never exceed a rate limit: tokens are leased before they are used (lease.lua). While Redis is
    unavailable, each process limits requests separately.

    Args:
        url: The URL of Redis.
        clock: Returns monotonic seconds.
        key_prefix: The prefix of the Redis keys.
        call_timeout_seconds: Seconds after which a call to Redis is abandoned.
    """

    def __init__(
        self,
        url: str,
        *,
        clock: Callable[[], float] = time.monotonic,
        key_prefix: str = "joinery:limit:",
        call_timeout_seconds: float = CALL_TIMEOUT_SECONDS,
    ) -> None:
        self._pool = BlockingConnectionPool.from_url(url, max_connections=16, timeout=call_timeout_seconds)
        self._redis = Redis(connection_pool=self._pool)
        self._script = self._redis.register_script(files("adapters.redis").joinpath("lease.lua").read_text("utf-8"))
        self._clock, self._prefix, self._call_timeout_seconds = clock, key_prefix, call_timeout_seconds
        self._leases: dict[str, BucketLease] = {}
        self._paused_until = 0.0
        self._has_failed = False

    async def take_token(self, limit: RateLimitBucket) -> TakeResult:
        now = self._clock()
        lease = self._leases.get(limit.key)
        if lease is None or not lease.matches_limit(limit):
            lease = self._create_lease(limit, now)
        answer = lease.decide(now)
        while answer is None:
            if now < self._paused_until:
                return lease.decide_locally(now)
            await self._start_lease(limit.key, lease)
            now = self._clock()
            answer = lease.decide(now)
        return answer

    async def close(self) -> None:
        await self._redis.aclose()
        await self._pool.aclose()

    async def _start_lease(self, key: str, lease: BucketLease) -> None:
        """Lease tokens of a bucket; concurrent callers wait for the same request to Redis."""
        if lease.pending_request is None:
            lease.pending_request = asyncio.create_task(self._request_lease(key, lease))
        await asyncio.shield(lease.pending_request)

    async def _request_lease(self, key: str, lease: BucketLease) -> None:
        """Request tokens from Redis and add them to the lease; after a failure, make no calls for RETRY_SECONDS."""
        now = self._clock()
        bucket = lease.bucket
        requested = lease.choose_request_size(now)
        try:
            async with asyncio.timeout(self._call_timeout_seconds):
                granted, remaining, generation = await self._script(
                    keys=[self._prefix + key],
                    args=[bucket.burst, bucket.rate, requested, lease.last_lease_size, lease.generation, LEASE_SECONDS],
                )
        except (RedisError, OSError, TimeoutError) as error:
            self._pause_calls(error)
        else:
            lease.apply_grant(now, LEASE_SECONDS, int(granted), float(remaining), int(generation))
            self._log_recovery()
        finally:
            lease.pending_request = None

    def _pause_calls(self, error: Exception) -> None:
        """Make no calls to Redis for RETRY_SECONDS; log the first of consecutive failures."""
        self._paused_until = self._clock() + RETRY_SECONDS
        if not self._has_failed:
            LOG.warning(
                "Redis unavailable or slow (%s); rate limits are local until it is available again",
                type(error).__name__,
            )
        self._has_failed = True

    def _log_recovery(self) -> None:
        """Log the first successful call after a failure."""
        if self._has_failed:
            LOG.warning("Redis available again; rate limits are shared")
        self._has_failed = False

    def _create_lease(self, limit: RateLimitBucket, now: float) -> BucketLease:
        """Create and store the lease of a rate limit; delete expired leases if there are too many."""
        if len(self._leases) >= MIN_LEASES_FOR_CLEANUP:
            self._leases = {
                key: lease for key, lease in self._leases.items() if lease.pending_request or now < lease.expires_at
            }
        lease = self._leases[limit.key] = BucketLease(create_full_bucket(limit.burst, limit.rate, now))
        return lease
