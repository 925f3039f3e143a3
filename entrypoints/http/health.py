"""Whether the process lives, whether it can work, and what it counts: for supervisors, balancers and Prometheus."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

import msgspec

from domain.kernel.clock import CLOCK, MAX_OFFSET
from entrypoints.dependencies import Readiness
from entrypoints.http.exchange import Response

TIMEOUT = 2.0
MOST_LOOKS = 10
"""How often in a second the dependencies are looked at; whoever asks more often is given the last answer."""
NO_STORE = (b"cache-control", b"no-store")
PROMETHEUS = b"text/plain; version=0.0.4; charset=utf-8"


def _json(status: int, body: Mapping[str, object]) -> Response:
    return Response(status, [(b"content-type", b"application/json"), NO_STORE], msgspec.json.encode(body))


async def alive() -> Response:
    """GET /healthz: the process answers at all."""
    return _json(200, {"status": "ok"})


class Ready:
    """GET /readyz: 200 when every dependency answers, else 503; the body names each as `up` or `down`.

    It needs no credential: so whoever asks while an answer is being found is given that one.
    """

    def __init__(self, checks: Readiness) -> None:
        self._checks = checks
        self._found: asyncio.Task[Mapping[str, bool]] | None = None
        self._second, self._looks = 0.0, 0

    async def __call__(self) -> Response:
        """The answer."""
        found = await self.look()
        states = {name: "up" if up else "down" for name, up in found.items()}
        down = [name for name, up in found.items() if not up]
        body = {"status": "down" if down else "ready", "down": down, "checks": states}
        if (
            abs(offset := CLOCK.offset()) > MAX_OFFSET
        ):  # no reason to stop serving: the process uses the database's clock
            body["clock"] = f"differs by {offset:+.0f} s from the database's clock"
        return _json(503 if down else 200, body)

    async def look(self) -> Mapping[str, bool]:
        """Whether each dependency answers, as was seen just now."""
        if self._found is None or (self._found.done() and self._may_look()):
            self._found = asyncio.create_task(self._look(), name="readiness")
        return await asyncio.shield(self._found)

    def _may_look(self) -> bool:
        now = asyncio.get_running_loop().time()
        if now - self._second >= 1:
            self._second, self._looks = now, 0
        self._looks += 1
        return self._looks <= MOST_LOOKS

    async def _look(self) -> Mapping[str, bool]:
        answers = await asyncio.gather(*(_answers(check) for check in self._checks.values()))
        return dict(zip(self._checks, answers, strict=True))


async def _answers(check: Callable[[], Awaitable[bool]]) -> bool:
    try:
        async with asyncio.timeout(TIMEOUT):
            return await check()
    except Exception:
        return False


def metrics(text: bytes) -> Response:
    """GET /metrics."""
    return Response(200, [(b"content-type", PROMETHEUS), NO_STORE], text)
