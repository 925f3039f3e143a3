"""HTTP requests to addresses that third parties name: vetted, bounded in time and size, without redirects."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class OutboundAnswer:
    """Response to an outbound request; `media_type` has no parameters, header names are case-insensitive."""

    status: int
    body: bytes
    media_type: str
    headers: Mapping[str, str] = field(default_factory=dict)


class OutboundFailed(Exception):
    """Failure to get a complete response. The message names no address and no secret, so it may be shown.

    Attributes:
        is_unsent: The request cannot have reached anybody.
        begun: The beginning of a response whose body is too large or has an unsupported encoding.

    """

    def __init__(self, message: str, *, is_unsent: bool = False, begun: OutboundAnswer | None = None) -> None:
        super().__init__(message)
        self.is_unsent, self.begun = is_unsent, begun


class Outbound(Protocol):
    """HTTP client that reaches only public addresses and those that the operator permits."""

    def permits(self, url: str) -> bool:
        """Return whether the URL may be requested: https, or http at a host that the operator permits."""
        ...

    async def ask(
        self, method: str, url: str, headers: Mapping[str, str] | None = None, body: bytes | None = None
    ) -> OutboundAnswer:
        """Send one request. Raises OutboundFailed."""
        ...
