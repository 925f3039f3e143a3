"""The demo as a client of the service: requests over HTTP with an API key, and runs followed to their end."""

import asyncio
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TextIO

from aiohttp import ClientError, ClientSession, ClientTimeout

from entrypoints.demo.messages import progress

ATTEMPTS = 6
_RETRIED = frozenset({429, 502, 503})
_TIMEOUT = ClientTimeout(total=30)
_ENDED = frozenset({"succeeded", "failed", "needs_mapping", "cancelled"})
_UNREAD = frozenset({"failed", "cancelled"})
_PAUSE = 0.25
STUCK_AFTER = 120.0
"""Seconds without any movement after which following ends."""


class DemoError(Exception):
    """The demo cannot go on; the message says why, and what its user can do."""


class UnknownKey(DemoError):
    """The service does not know the stored API key: it is another database than the one the demo was made in."""


class Api:
    """The service at `base_url`, as the holder of `secret`. What fails for a moment is tried again."""

    def __init__(self, session: ClientSession, base_url: str, secret: str) -> None:
        self._session = session
        self.base_url = base_url.rstrip("/")
        self.secret = secret

    async def get(self, path: str, **query: str) -> dict[str, Any]:
        """Send a GET request."""
        return await self._send("GET", path, params=query)

    async def post(self, path: str, body: Mapping[str, Any], idempotency_key: str) -> dict[str, Any]:
        """Send a POST request, which has its effect once however often it is repeated with the key."""
        return await self._send("POST", path, {"Idempotency-Key": idempotency_key}, json=body)

    async def patch(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Send a PATCH request for whatever version there is."""
        return await self._send("PATCH", path, {"If-Match": "*"}, json=body)

    async def _send(
        self, method: str, path: str, headers: Mapping[str, str] | None = None, **options: Any
    ) -> dict[str, Any]:
        options |= {"headers": {"Authorization": f"Bearer {self.secret}", **(headers or {})}, "timeout": _TIMEOUT}
        reason = "it does not answer"
        for attempt in range(ATTEMPTS):
            try:
                async with self._session.request(method, self.base_url + path, **options) as response:
                    if response.status not in _RETRIED:
                        return _checked(method, path, response.status, await response.json(content_type=None))
                    reason = f"it answers {response.status}"
                    wait = float(response.headers.get("Retry-After", "1"))
            except (ClientError, TimeoutError, ValueError) as error:
                reason = str(error) or reason
                wait = 0.5 * 2**attempt
            await asyncio.sleep(min(wait, 10.0))
        raise DemoError(f"The service cannot be asked ({method} {path}): {reason}.")


def _checked(method: str, path: str, status: int, body: Any) -> dict[str, Any]:
    if status < 300 and isinstance(body, dict):
        return body
    if status == 401:
        raise UnknownKey("The service does not accept the demo's API key.")
    problem = body if isinstance(body, dict) else {}
    faults = "; ".join(f"{fault.get('field')}: {fault.get('detail')}" for fault in problem.get("errors", ()))
    detail = faults or problem.get("detail") or problem.get("title") or f"HTTP {status}"
    raise DemoError(f"The service refused {method} {path}: {detail}")


@dataclass(slots=True)
class FollowedRun:
    """One stream of one source being read."""

    name: str
    source: str
    stream: str = "catalogue"
    run: dict[str, Any] = field(default_factory=dict)

    @property
    def ended(self) -> bool:
        """Whether there is nothing more to wait for."""
        return self.run.get("status") in _ENDED

    async def begin(self, api: Api) -> None:
        """Take up the stream's last run, or start one when there is none that read the feed."""
        path = f"/v1/sources/{self.source}/runs"
        runs = [run for run in (await api.get(path))["data"] if run["stream"] == self.stream]
        if not runs or runs[0]["status"] in _UNREAD:
            key = f"demo-run-{self.source}-{self.stream}-{len(runs)}"
            self.run = await api.post(path, {"stream": self.stream}, key)
            return
        succeeded = [run for run in runs if run["status"] == "succeeded"]
        read = [run for run in succeeded if "unchanged_feed" not in run["stats"]]
        # a run that found the feed unchanged has no figures; the one before it that read the feed has
        self.run = read[0] if runs[0] in succeeded and read else runs[0]


async def follow(api: Api, runs: Sequence[FollowedRun], out: TextIO | None = None) -> None:
    """Poll until all runs have ended, and show each change.

    Raises:
        DemoError: Nothing has moved for two minutes.
    """
    board = Board(out or sys.stdout)
    moved = time.monotonic()
    while True:
        if board.show([progress(followed.name, followed.run) for followed in runs]):
            moved = time.monotonic()
        if all(followed.ended for followed in runs):
            return
        if time.monotonic() - moved > STUCK_AFTER:
            raise DemoError("The runs do not move; look at worker.log in the data directory's folder `log`.")
        await asyncio.sleep(_PAUSE)
        for followed in runs:
            if not followed.ended:
                followed.run = await api.get(f"/v1/runs/{followed.run['id']}")


class Board:
    """Lines that change: drawn over each other on a terminal, written one after the other elsewhere."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._shown: list[str] = []

    def show(self, lines: Sequence[str]) -> bool:
        """Show the lines; return whether any is new."""
        fresh = [line for line, shown in zip(lines, [*self._shown, *[""] * len(lines)], strict=False) if line != shown]
        if not fresh:
            return False
        if self._out.isatty():
            up = f"\x1b[{len(self._shown)}A" if self._shown else ""
            self._out.write(up + "".join(f"\r\x1b[2K{line}\n" for line in lines))
        else:
            self._out.write("".join(f"{line}\n" for line in fresh))
        self._out.flush()
        self._shown = list(lines)
        return True
