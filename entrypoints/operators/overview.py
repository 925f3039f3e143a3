"""What the operators' page shows: each part found out by itself, so that one that cannot be had hides no other."""

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Generic, TypeVar, cast

from domain.outbox.model import OutgoingMessage
from domain.platform.usecases import PlatformService
from domain.platform.workload import JOBS
from entrypoints.dependencies import Dependencies
from entrypoints.http.health import Ready

T = TypeVar("T")
SECONDS: Final = 4.0
"""How long a part may take."""
MESSAGES: Final = 30
FRESH: Final = timedelta(seconds=2)
"""How long what was found is shown again."""


@dataclass(frozen=True, slots=True)
class Part(Generic[T]):
    """What was found, or why nothing was."""

    found: T | None
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    """A message to a person with its text, which is empty once it was sent."""

    message: OutgoingMessage
    text: str


@dataclass(frozen=True, slots=True)
class Overview:
    """All parts, as of `now`. `sends`: mail leaves by itself."""

    now: datetime
    readiness: Part[Any]
    status: Part[Any]
    backlog: Part[Any]
    tenants: Part[Any]
    slowest: Part[Any]
    troubled: Part[Any]
    mail: Part[Sequence[Message]]
    sends: bool

    @property
    def cut(self) -> bool:
        """Whether more work may wait than was looked at."""
        return bool(sum(one.waiting + one.held for one in self.backlog.found or ()) >= JOBS)


class Looking:
    """Finds it out."""

    def __init__(self, dependencies: Dependencies) -> None:
        self._parts = dependencies
        self._ready = Ready(dependencies.readiness)
        self._turn, self._seen = asyncio.Lock(), cast("Overview | None", None)
        self._platform = PlatformService(dependencies.platform_checks, dependencies.incidents, dependencies.clock)

    async def look(self) -> Overview:
        """Everything; whoever asks at once, or a moment later, is shown the same, so that looking costs what one look does."""
        async with self._turn:
            now = self._parts.clock.now()
            if self._seen is None or not self._seen.now <= now < self._seen.now + FRESH:
                self._seen = await self._look(now)
            return self._seen

    async def _look(self, now: datetime) -> Overview:
        """Everything, side by side."""
        parts = self._parts
        asked: list[Awaitable[Part[Any]]] = [
            _part(self._ready.look()),
            _part(self._platform.status()),
            _part(parts.dispatch.backlog(JOBS)),
            _part(parts.workload.tenants(now)),
            _part(parts.workload.slowest()),
            _part(parts.workload.troubled()),
            _part(self._messages()),
        ]
        names = ("readiness", "status", "backlog", "tenants", "slowest", "troubled", "mail")
        found: dict[str, Part[Any]] = dict(zip(names, await asyncio.gather(*asked), strict=True))
        return Overview(now=now, sends=parts.outgoing_mail.sends, **found)

    async def _messages(self) -> Sequence[Message]:
        box = self._parts.outgoing_mail
        return [Message(one, _opened(box, one)) for one in await box.latest(MESSAGES)]


def _opened(box: Any, message: OutgoingMessage) -> str:
    try:
        return str(box.text(message))
    except ValueError:
        return "(It cannot be opened: it was sealed under a secret that is not at hand.)"


async def _part(found: Awaitable[T]) -> Part[T]:
    try:
        async with asyncio.timeout(SECONDS):
            return Part(await found)
    except TimeoutError:
        return Part(None, "It took too long to find out.")
    except Exception as error:
        return Part(None, f"It cannot be found out: {error or type(error).__name__}")
