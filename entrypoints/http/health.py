"""Liveness, readiness and metrics endpoints for supervisors, load balancers and Prometheus."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

import msgspec

from domain.kernel.clock import CLOCK, MAX_OFFSET
from entrypoints.dependencies import ReadinessChecks
from entrypoints.http.exchange import Response

CHECK_SECONDS = 2.0
"""Seconds within which a dependency must respond."""
MAX_CHECKS_PER_SECOND = 10
"""Maximum number of checks of all dependencies per second; further requests get the last result."""
NO_STORE = (b"cache-control", b"no-store")
PROMETHEUS = b"text/plain; version=0.0.4; charset=utf-8"


def _build_json_response(status: int, body: Mapping[str, object]) -> Response:
    return Response(status, [(b"content-type", b"application/json"), NO_STORE], msgspec.json.encode(body))


async def respond_alive() -> Response:
    """Respond to GET /healthz with status 200, which shows that the process is alive."""
    return _build_json_response(200, {"status": "ok"})


class ReadinessEndpoint:
    """Endpoint GET /readyz: status 200 if every dependency responds, else 503.

    The body has the state of each dependency.
    """

    # The endpoint needs no credential, so concurrent requests share one check.

    def __init__(self, checks: ReadinessChecks) -> None:
        self._checks = checks
        self._check: asyncio.Task[Mapping[str, bool]] | None = None
        self._second, self._checks_in_second = 0.0, 0

    async def __call__(self) -> Response:
        """Return the response to GET /readyz."""
        up_by_name = await self.check()
        states = {name: "up" if up else "down" for name, up in up_by_name.items()}
        down = [name for name, up in up_by_name.items() if not up]
        body = {"status": "down" if down else "ready", "down": down, "checks": states}
        if (
            abs(offset := CLOCK.compute_offset()) > MAX_OFFSET
        ):  # the process stays ready, as it uses the database's clock
            body["clock"] = f"differs by {offset:+.0f} s from the database's clock"
        return _build_json_response(503 if down else 200, body)

    async def check(self) -> Mapping[str, bool]:
        """Check the dependencies, or wait for a check in progress; return whether each responds, by name."""
        if self._check is None or (self._check.done() and self._may_start_check()):
            self._check = asyncio.create_task(self._check_all(), name="readiness")
        return await asyncio.shield(self._check)

    def _may_start_check(self) -> bool:
        now = asyncio.get_running_loop().time()
        if now - self._second >= 1:
            self._second, self._checks_in_second = now, 0
        self._checks_in_second += 1
        return self._checks_in_second <= MAX_CHECKS_PER_SECOND

    async def _check_all(self) -> Mapping[str, bool]:
        results = await asyncio.gather(*(_responds(check) for check in self._checks.values()))
        return dict(zip(self._checks, results, strict=True))


async def _responds(check: Callable[[], Awaitable[bool]]) -> bool:
    try:
        async with asyncio.timeout(CHECK_SECONDS):
            return await check()
    except Exception:
        return False


def respond_metrics(text: bytes) -> Response:
    """Return the response to GET /metrics; `text` are the metrics in the format of Prometheus."""
    return Response(200, [(b"content-type", PROMETHEUS), NO_STORE], text)
