"""Speaks to the service as any client does: over HTTP, with an API key."""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from aiohttp import ClientError, ClientSession, ClientTimeout

from entrypoints.demo.errors import DemoError, UnknownKey

TRIES: Final = 6
_AGAIN: Final = frozenset({429, 502, 503})
_TIMEOUT: Final = ClientTimeout(total=30)


class Api:
    """The service at `base_url`, as the holder of `secret`. What fails for a moment is tried again."""

    def __init__(self, session: ClientSession, base_url: str, secret: str) -> None:
        self._session = session
        self.base_url = base_url.rstrip("/")
        self.secret = secret

    async def get(self, path: str, **query: str) -> dict[str, Any]:
        """Read. Raises DemoError."""
        return await self._call("GET", path, params=query)

    async def post(self, path: str, body: Mapping[str, Any], idempotency_key: str) -> dict[str, Any]:
        """Make something, once however often it is asked for with this key. Raises DemoError."""
        return await self._call("POST", path, json=body, headers={"Idempotency-Key": idempotency_key})

    async def patch(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Change something, whatever version it is at. Raises DemoError."""
        return await self._call("PATCH", path, json=body, headers={"If-Match": "*"})

    async def _call(
        self, method: str, path: str, headers: Mapping[str, str] | None = None, **more: Any
    ) -> dict[str, Any]:
        sent = {"Authorization": f"Bearer {self.secret}", **(headers or {})}
        said = "it does not answer"
        for attempt in range(TRIES):
            try:
                async with self._session.request(
                    method, self.base_url + path, headers=sent, timeout=_TIMEOUT, **more
                ) as response:
                    if response.status not in _AGAIN:
                        return _answer(method, path, response.status, await response.json(content_type=None))
                    said = f"it answers {response.status}"
                    wait = float(response.headers.get("Retry-After", "1"))
            except (ClientError, TimeoutError, ValueError) as error:
                said = str(error) or said
                wait = 0.5 * 2**attempt
            await asyncio.sleep(min(wait, 10.0))
        raise DemoError(f"The service cannot be asked ({method} {path}): {said}.")


def _answer(method: str, path: str, status: int, body: Any) -> dict[str, Any]:
    if status < 300 and isinstance(body, dict):
        return body
    problem = body if isinstance(body, dict) else {}
    if status == 401:
        raise UnknownKey("The service does not accept the demo's API key.")
    faults = "; ".join(f"{fault.get('field')}: {fault.get('detail')}" for fault in problem.get("errors", ()))
    detail = faults or problem.get("detail") or problem.get("title") or f"HTTP {status}"
    raise DemoError(f"The service refused {method} {path}: {detail}")
