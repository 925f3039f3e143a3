"""Asking an address that somebody else has named, for a short answer: vetted, bounded in time and size, without redirects."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class OutboundAnswer:
    """Status, body, the media type without its parameters, and headers, whose names ignore case."""

    status: int
    body: bytes
    media_type: str
    headers: Mapping[str, str] = field(default_factory=dict)


class OutboundFailed(Exception):
    """There was no whole answer. The sentence may be shown: it names no address and no secret.

    Attributes:
        is_unsent: The request cannot have reached anybody.
        begun: The beginning of an answer whose body is too large, or packed in a strange way.

    """

    def __init__(self, message: str, *, is_unsent: bool = False, begun: OutboundAnswer | None = None) -> None:
        super().__init__(message)
        self.is_unsent, self.begun = is_unsent, begun


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
