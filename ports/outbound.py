"""Asking an address that somebody else has named, for a short answer: vetted, bounded in time and size, without redirects."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol


class OutboundFailed(Exception):
    """There was no answer. The sentence may be shown: it names no address and no secret."""


@dataclass(frozen=True, slots=True)
class OutboundAnswer:
    """Status, body, and the media type without its parameters."""

    status: int
    body: bytes
    media_type: str


class Outbound(Protocol):
    """Whoever asks through it reaches public addresses and those that the operator lets through, and nothing else."""

    def permits(self, url: str) -> bool:
        """Whether a URL may be used at all: https, or http at a host that the operator lets through."""
        ...

    async def ask(
        self, method: str, url: str, headers: Mapping[str, str] | None = None, body: bytes | None = None
    ) -> OutboundAnswer:
        """One request. Raises OutboundFailed."""
        ...
