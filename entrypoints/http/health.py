"""Whether the process lives, whether it can work, and what it counts: for supervisors, balancers and Prometheus."""

import asyncio
from collections.abc import Mapping
from typing import Final

import msgspec

from entrypoints.dependencies import Readiness
from entrypoints.http.exchange import Response

TIMEOUT: Final = 2.0
NO_STORE: Final = (b"cache-control", b"no-store")
PROMETHEUS: Final = b"text/plain; version=0.0.4; charset=utf-8"


def _json(status: int, body: Mapping[str, object]) -> Response:
    return Response(status, [(b"content-type", b"application/json"), NO_STORE], msgspec.json.encode(body))


def alive() -> Response:
    """GET /healthz: the process answers at all."""
    return _json(200, {"status": "ok"})


async def ready(checks: Mapping[str, Readiness]) -> Response:
    """GET /readyz: 200 when every dependency answers, else 503; the body names each as `up` or `down`."""
    answers = await asyncio.gather(*(_answers(check) for check in checks.values()))
    states = {name: "up" if up else "down" for name, up in zip(checks, answers, strict=True)}
    down = [name for name, state in states.items() if state == "down"]
    return _json(503 if down else 200, {"status": "down" if down else "ready", "down": down, "checks": states})


async def _answers(check: Readiness) -> bool:
    try:
        async with asyncio.timeout(TIMEOUT):
            return await check()
    except Exception:
        return False


def metrics(text: bytes) -> Response:
    """GET /metrics."""
    return Response(200, [(b"content-type", PROMETHEUS), NO_STORE], text)
