"""The access log: one line per request, without query, body, credentials or path parameters."""

import asyncio
import logging
import sys
from typing import Final

import msgspec

from domain.kernel.clock import now

LOG: Final = logging.getLogger("joinery.access")
INTERVAL: Final = 0.2
"""Seconds for which lines are buffered, because writing each line alone costs three times its encoding."""


class AccessLog:
    """Writes a JSON line for each answered request to standard error, unless switched off or below the log level."""

    def __init__(self, *, enabled: bool = True) -> None:
        self._enabled = enabled and LOG.isEnabledFor(logging.INFO)
        self._encode = msgspec.json.Encoder().encode
        self._lines: list[bytes] = []

    def __call__(
        self, method: str, route: str, status: int, seconds: float, request_id: str, org: str | None = None
    ) -> None:
        """Log one request. `route` is a path template, because paths may contain tokens."""
        if not self._enabled:
            return
        if not self._lines:
            asyncio.get_running_loop().call_later(INTERVAL, self.flush)
        line = {
            "time": now().isoformat(timespec="milliseconds"),
            "level": "info",
            "logger": LOG.name,
            "message": "request",
            "request_id": request_id,
            "method": method,
            "route": route,
            "status": status,
            "ms": round(seconds * 1000, 1),
            "org": org,
        }
        self._lines.append(self._encode(line))

    def flush(self) -> None:
        """Write the buffered lines."""
        lines, self._lines = self._lines, []
        if lines:
            sys.stderr.write((b"\n".join(lines) + b"\n").decode())
            sys.stderr.flush()
