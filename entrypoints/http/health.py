"""Liveness, readiness and metrics endpoints for supervisors, load balancers and Prometheus."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

import msgspec

from domain.kernel.clock import CLOCK, MAX_OFFSET
from entrypoints.dependencies import Readiness
from entrypoints.http.exchange import Response

TIMEOUT = 2.0
MOST_LOOKS = 10
"""Maximum dependency checks per second; further requests get the last result."""
NO_STORE = (b"cache-control", b"no-store")
PROMETHEUS = b"text/plain; version=0.0.4; charset=utf-8"


def _json(status: int, body: Mapping[str, object]) -> Response:
    return Response(status, [(b"content-type", b"application/json"), NO_STORE], msgspec.json.encode(body))


async def alive() -> Response:
    """Respond to GET /healthz: the process is alive."""
    return _json(200, {"status": "ok"})


class Ready:
    """GET /readyz: 200 if every dependency responds, else 503; the body names each as `up` or `down`.

    The endpoint needs no credential, so concurrent requests share one check.
    """

    def __init__(self, checks: Readiness) -> None:
        self._checks = checks
        self._check: asyncio.Task[Mapping[str, bool]] | None = None
        self._second, self._checks_in_second = 0.0, 0

    async def __call__(self) -> Response:
        """Return the response."""
        up_by_name = await self.look()
        states = {name: "up" if up else "down" for name, up in up_by_name.items()}
        down = [name for name, up in up_by_name.items() if not up]
        body = {"status": "down" if down else "ready", "down": down, "checks": states}
        if abs(offset := CLOCK.offset()) > MAX_OFFSET:  # the process stays ready, as it uses the database's clock
            body["clock"] = f"differs by {offset:+.0f} s from the database's clock"
        return _json(503 if down else 200, body)

    async def look(self) -> Mapping[str, bool]:
        """Return for each dependency whether it responds, as of the latest check."""
        if self._check is None or (self._check.done() and self._may_check()):
            self._check = asyncio.create_task(self._check_all(), name="readiness")
        return await asyncio.shield(self._check)

    def _may_check(self) -> bool:
        now = asyncio.get_running_loop().time()
        if now - self._second >= 1:
            self._second, self._checks_in_second = now, 0
        self._checks_in_second += 1
        return self._checks_in_second <= MOST_LOOKS

    async def _check_all(self) -> Mapping[str, bool]:
        answers = await asyncio.gather(*(_answers(check) for check in self._checks.values()))
        return dict(zip(self._checks, answers, strict=True))


async def _answers(check: Callable[[], Awaitable[bool]]) -> bool:
    try:
        async with asyncio.timeout(TIMEOUT):
            return await check()
    except Exception:
        return False


def metrics(text: bytes) -> Response:
    """Return the response to GET /metrics."""
    return Response(200, [(b"content-type", PROMETHEUS), NO_STORE], text)
