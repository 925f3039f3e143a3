"""API client of the demo, and display of the progress of runs."""

import asyncio
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TextIO

from aiohttp import ClientError, ClientSession, ClientTimeout

from entrypoints.demo.messages import format_progress, format_publication_progress

MAX_ATTEMPTS = 6
_RETRIED = frozenset({429, 502, 503})
_TIMEOUT = ClientTimeout(total=30)
_ENDED = frozenset({"succeeded", "failed", "needs_mapping", "cancelled"})
_RESTARTED = frozenset({"failed", "cancelled"})
_PAUSE = 0.25
MAX_IDLE_SECONDS = 120.0
"""Seconds without progress of any run after which the demo gives up."""


class DemoError(Exception):
    """Failure of the demo; the message names the reason and the remedy."""


class ApiKeyRejected(DemoError):
    """Rejection of the stored API key by the service, for example because the database is a new one."""


class DemoApi:
    """Client of the API at `base_url` with the API key `secret`. Transient errors are retried."""

    def __init__(self, session: ClientSession, base_url: str, secret: str) -> None:
        self._session = session
        self.base_url = base_url.rstrip("/")
        self.secret = secret

    async def get(self, path: str, **query: str) -> dict[str, Any]:
        """Send a GET request and return the response's JSON object."""
        return await self._send("GET", path, params=query)

    async def post(self, path: str, body: Mapping[str, Any], idempotency_key: str) -> dict[str, Any]:
        """Send a POST request and return the response's JSON object. Retries with the same idempotency key have no further effect."""
        return await self._send("POST", path, {"Idempotency-Key": idempotency_key}, json=body)

    async def patch(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Send a PATCH request, whatever the version of the object, and return the response's JSON object."""
        return await self._send("PATCH", path, {"If-Match": "*"}, json=body)

    async def _send(
        self, method: str, path: str, headers: Mapping[str, str] | None = None, **options: Any
    ) -> dict[str, Any]:
        """Send a request with retries. Raises DemoError or ApiKeyRejected."""
        options |= {"headers": {"Authorization": f"Bearer {self.secret}", **(headers or {})}, "timeout": _TIMEOUT}
        reason = "no response"
        for attempt in range(MAX_ATTEMPTS):
            try:
                async with self._session.request(method, self.base_url + path, **options) as response:
                    if response.status not in _RETRIED:
                        return _check_response(method, path, response.status, await response.json(content_type=None))
                    reason = f"the status is {response.status}"
                    wait = float(response.headers.get("Retry-After", "1"))
            except (ClientError, TimeoutError, ValueError) as error:
                reason = str(error) or reason
                wait = 0.5 * 2**attempt
            await asyncio.sleep(min(wait, 10.0))
        raise DemoError(f"The service is unavailable ({method} {path}): {reason}.")


def _check_response(method: str, path: str, status: int, body: Any) -> dict[str, Any]:
    """Return the body of a successful response. Raises DemoError or ApiKeyRejected for any other response."""
    if status < 300 and isinstance(body, dict):
        return body
    if status == 401:
        raise ApiKeyRejected(
            "The service does not accept the demo's API key. Start the demo again to create a new key."
        )
    problem = body if isinstance(body, dict) else {}
    faults = "; ".join(f"{fault.get('field')}: {fault.get('detail')}" for fault in problem.get("errors", ()))
    detail = faults or problem.get("detail") or problem.get("title") or f"HTTP {status}"
    raise DemoError(f"The service rejected {method} {path}: {detail}")


@dataclass(slots=True)
class FollowedRun:
    """Run of a source whose progress is shown.

    Attributes:
        api: The API client of the run's organisation.
        name: The name that is shown for the run.
        source: The ID of the source.
        stream: The stream: `catalogue` or `stock`.
        run: The run as last read from the API; empty before `start_or_resume`.
    """

    api: DemoApi
    name: str
    source: str = ""
    stream: str = "catalogue"
    run: dict[str, Any] = field(default_factory=dict)

    @property
    def has_ended(self) -> bool:
        """True if the run has ended."""
        return self.run.get("status") in _ENDED

    @property
    def path(self) -> str:
        """Path of the run in the API."""
        return f"/v1/runs/{self.run['id']}"

    def format_progress(self) -> str:
        """Describe the progress in one line."""
        return format_progress(self.name, self.run)

    async def start_or_resume(self) -> None:
        """Select the stream's latest run; if there is none, or it failed or was cancelled, start a new one."""
        path = f"/v1/sources/{self.source}/runs"
        runs = [run for run in (await self.api.get(path))["data"] if run["stream"] == self.stream]
        if not runs or runs[0]["status"] in _RESTARTED:
            key = f"demo-run-{self.source}-{self.stream}-{len(runs)}"
            self.run = await self.api.post(path, {"stream": self.stream}, key)
            return
        succeeded = [run for run in runs if run["status"] == "succeeded"]
        read = [run for run in succeeded if "unchanged_feed" not in run["stats"]]
        # a run over an unchanged feed has no statistics, so the one before it is used
        self.run = read[0] if runs[0] in succeeded and read else runs[0]


class FollowedPublication(FollowedRun):
    """Publication run of a vendor's catalogue, whose progress is shown."""

    @property
    def path(self) -> str:
        """Path of the run in the API."""
        return f"/v1/catalogue/publication-runs/{self.run['id']}"

    def format_progress(self) -> str:
        """Describe the progress in one line."""
        return format_publication_progress(self.name, self.run)

    async def start_or_resume(self) -> None:
        """Select the catalogue's latest run; if there is none, or it failed to publish, start a new one."""
        run = (await self.api.get("/v1/catalogue")).get("last_run")
        if run is None or (run["kind"], run["status"]) == ("publish", "failed"):
            key = f"demo-publication-{run['id'] if run else 0}"
            run = await self.api.post("/v1/catalogue/publish", {}, key)
        self.run = run


async def follow_runs(runs: Sequence[FollowedRun], out: TextIO | None = None) -> None:
    """Poll the runs until all have ended, and show the progress on `out` (default: standard output).

    Raises:
        DemoError: No run has made progress for MAX_IDLE_SECONDS.
    """
    display = ProgressDisplay(out or sys.stdout)
    progressed_at = time.monotonic()
    while True:
        if display.show([followed_run.format_progress() for followed_run in runs]):
            progressed_at = time.monotonic()
        if all(followed_run.has_ended for followed_run in runs):
            return
        if time.monotonic() - progressed_at > MAX_IDLE_SECONDS:
            raise DemoError("The runs make no progress. See worker.log in the data directory's folder `log`.")
        await asyncio.sleep(_PAUSE)
        for followed_run in runs:
            if not followed_run.has_ended:
                followed_run.run = await followed_run.api.get(followed_run.path)


class ProgressDisplay:
    """Display of status lines, which are redrawn on a terminal and appended to any other output."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._lines: list[str] = []

    def show(self, lines: Sequence[str]) -> bool:
        """Show the lines; return whether any line differs from the previous call."""
        changed = [
            line for line, shown in zip(lines, [*self._lines, *[""] * len(lines)], strict=False) if line != shown
        ]
        if not changed:
            return False
        if self._out.isatty():
            up = f"\x1b[{len(self._lines)}A" if self._lines else ""
            self._out.write(up + "".join(f"\r\x1b[2K{line}\n" for line in lines))
        else:
            self._out.write("".join(f"{line}\n" for line in changed))
        self._out.flush()
        self._lines = list(lines)
        return True
