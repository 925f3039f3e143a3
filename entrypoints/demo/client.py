"""API client of the demo: requests with an API key, and following of runs."""

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
_RESTARTED = frozenset({"failed", "cancelled"})
_PAUSE = 0.25
STUCK_AFTER = 120.0
"""Seconds without progress after which following ends."""


class DemoError(Exception):
    """The demo cannot continue; the message names the reason and the remedy."""


class UnknownKey(DemoError):
    """The service does not know the stored API key, because the database is another one."""


class Api:
    """API of the service at `base_url` with the key `secret`. Transient errors are retried."""

    def __init__(self, session: ClientSession, base_url: str, secret: str) -> None:
        self._session = session
        self.base_url = base_url.rstrip("/")
        self.secret = secret

    async def get(self, path: str, **query: str) -> dict[str, Any]:
        """Send a GET request."""
        return await self._send("GET", path, params=query)

    async def post(self, path: str, body: Mapping[str, Any], idempotency_key: str) -> dict[str, Any]:
        """Send a POST request; retries with the key have no further effect."""
        return await self._send("POST", path, {"Idempotency-Key": idempotency_key}, json=body)

    async def patch(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Send a PATCH request for any version."""
        return await self._send("PATCH", path, {"If-Match": "*"}, json=body)

    async def _send(
        self, method: str, path: str, headers: Mapping[str, str] | None = None, **options: Any
    ) -> dict[str, Any]:
        options |= {"headers": {"Authorization": f"Bearer {self.secret}", **(headers or {})}, "timeout": _TIMEOUT}
        reason = "no response"
        for attempt in range(ATTEMPTS):
            try:
                async with self._session.request(method, self.base_url + path, **options) as response:
                    if response.status not in _RETRIED:
                        return _check_response(method, path, response.status, await response.json(content_type=None))
                    reason = f"it returned {response.status}"
                    wait = float(response.headers.get("Retry-After", "1"))
            except (ClientError, TimeoutError, ValueError) as error:
                reason = str(error) or reason
                wait = 0.5 * 2**attempt
            await asyncio.sleep(min(wait, 10.0))
        raise DemoError(f"The service is unavailable ({method} {path}): {reason}.")


def _check_response(method: str, path: str, status: int, body: Any) -> dict[str, Any]:
    if status < 300 and isinstance(body, dict):
        return body
    if status == 401:
        raise UnknownKey("The service does not accept the demo's API key.")
    problem = body if isinstance(body, dict) else {}
    faults = "; ".join(f"{fault.get('field')}: {fault.get('detail')}" for fault in problem.get("errors", ()))
    detail = faults or problem.get("detail") or problem.get("title") or f"HTTP {status}"
    raise DemoError(f"The service rejected {method} {path}: {detail}")


@dataclass(slots=True)
class FollowedRun:
    """One run of a stream of a source."""

    name: str
    source: str
    stream: str = "catalogue"
    run: dict[str, Any] = field(default_factory=dict)

    @property
    def ended(self) -> bool:
        """True if the run has ended."""
        return self.run.get("status") in _ENDED

    async def begin(self, api: Api) -> None:
        """Continue the stream's last run, or start one if none has read the feed."""
        path = f"/v1/sources/{self.source}/runs"
        runs = [run for run in (await api.get(path))["data"] if run["stream"] == self.stream]
        if not runs or runs[0]["status"] in _RESTARTED:
            key = f"demo-run-{self.source}-{self.stream}-{len(runs)}"
            self.run = await api.post(path, {"stream": self.stream}, key)
            return
        succeeded = [run for run in runs if run["status"] == "succeeded"]
        read = [run for run in succeeded if "unchanged_feed" not in run["stats"]]
        # a run over an unchanged feed has no statistics, so the one before it is used
        self.run = read[0] if runs[0] in succeeded and read else runs[0]


async def follow(api: Api, runs: Sequence[FollowedRun], out: TextIO | None = None) -> None:
    """Poll until all runs have ended, and show each change.

    Raises:
        DemoError: There was no progress for two minutes.
    """
    board = Board(out or sys.stdout)
    progressed_at = time.monotonic()
    while True:
        if board.show([progress(followed.name, followed.run) for followed in runs]):
            progressed_at = time.monotonic()
        if all(followed.ended for followed in runs):
            return
        if time.monotonic() - progressed_at > STUCK_AFTER:
            raise DemoError("The runs make no progress. See worker.log in the data directory's folder `log`.")
        await asyncio.sleep(_PAUSE)
        for followed in runs:
            if not followed.ended:
                followed.run = await api.get(f"/v1/runs/{followed.run['id']}")


class Board:
    """Status lines, redrawn on a terminal and appended elsewhere."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._shown: list[str] = []

    def show(self, lines: Sequence[str]) -> bool:
        """Show the lines; return whether any has changed."""
        changed = [
            line for line, shown in zip(lines, [*self._shown, *[""] * len(lines)], strict=False) if line != shown
        ]
        if not changed:
            return False
        if self._out.isatty():
            up = f"\x1b[{len(self._shown)}A" if self._shown else ""
            self._out.write(up + "".join(f"\r\x1b[2K{line}\n" for line in lines))
        else:
            self._out.write("".join(f"{line}\n" for line in changed))
        self._out.flush()
        self._shown = list(lines)
        return True
