"""What the client's logic asks of its surroundings: the logic yields steps, and a driver, with or without asyncio, takes them."""

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Request:
    """One request. `wait` is how many seconds longer than usual the answer may take; `file`, of `size` bytes, is sent in place of `content`."""

    method: str
    url: str
    headers: Mapping[str, str] = field(repr=False)  # the key is in it
    content: bytes | None = None
    file: Path | None = None
    size: int = 0
    wait: float = 0.0

    @property
    def writes(self) -> bool:
        """Whether it may change something."""
        return self.method not in ("GET", "HEAD") and self.headers.get("Service-Dry-Run") is None

    @property
    def repeatable(self) -> bool:
        """Whether sending it twice does no more than sending it once."""
        return self.method != "POST" or "Idempotency-Key" in self.headers


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server answered; header names are lower-case."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes = b""


@dataclass(frozen=True, slots=True)
class NoResponse:
    """No answer. `sent` tells whether the request may have reached the server."""

    error: Exception
    sent: bool


class CursorStore(Protocol):
    """Where a follower keeps its place."""

    def load(self) -> str | None:
        """The cursor that was saved last, or None."""

    def save(self, cursor: str) -> None:
        """Keep the cursor; once this returns, a crash does not lose it."""


@dataclass(frozen=True, slots=True)
class Send:
    """Send the request; gives an Answer or NoResponse."""

    request: Request


@dataclass(frozen=True, slots=True)
class Sleep:
    """Wait so many seconds. `reason` is why a call is tried again, `tries` how often it was sent."""

    seconds: float
    reason: str = ""
    tries: int = 0


@dataclass(frozen=True, slots=True)
class Load:
    """Read the saved cursor; gives it, or None."""

    store: CursorStore


@dataclass(frozen=True, slots=True)
class Save:
    """Save the cursor."""

    store: CursorStore
    cursor: str


@dataclass(frozen=True, slots=True)
class Emit:
    """Hand a value to whoever iterates; the next step comes when they ask for more."""

    value: Any


Step = Send | Sleep | Load | Save | Emit
Steps = Generator[Step, Any, T]
