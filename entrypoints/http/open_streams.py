"""Every open stream of the process: how long it may last, and whether its credential is still in force."""

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from domain.access.usecases import AccessService, Proof
from domain.kernel.concurrency import ConcurrencyLimit
from domain.kernel.errors import DomainError
from entrypoints.http.event_stream import EventStream
from entrypoints.http.operation import Operation
from entrypoints.http.request_state import RequestState
from entrypoints.http.steps.permission import permit
from ports.clock import Clock

LIFETIME: Final = (3_300.0, 3_600.0)
"""Seconds between which a stream ends, so that those opened at once do not all come back at once."""
PERIOD: Final = 0.75
"""Seconds between two looks at all credentials: one statement, and only while there are streams."""

LOG: Final = logging.getLogger("joinery.http")


@dataclass(frozen=True, slots=True, eq=False)
class _Open:
    stream: EventStream
    operation: Operation
    credential: bytes
    """Empty where the edge that let the caller in watches over that itself."""
    address: str
    until: float


class OpenStreams:
    """Ends streams whose time is over, or whose caller could not open them any more."""

    def __init__(
        self,
        access: AccessService,
        clock: Clock,
        waiters: ConcurrencyLimit,
        period: float = PERIOD,
        lifetime: tuple[float, float] = LIFETIME,
    ) -> None:
        self._access, self._clock, self._period, self._lifetime = access, clock, period, lifetime
        self._waiters = waiters
        self._open: set[_Open] = set()
        self._proofs: Mapping[bytes, Proof] = {}
        self._watch: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        """How many streams are open."""
        return len(self._open)

    async def kept(self, state: RequestState, stream: EventStream) -> AsyncGenerator[bytes, None]:
        """The stream's pieces; from the first one on it is watched, until they end or nobody takes them any more."""
        until = asyncio.get_running_loop().time() + random.uniform(*self._lifetime)  # noqa: S311  spreads load
        entry = _Open(stream, state.operation, state.credential, state.address, until)
        self._open.add(entry)
        if self._watch is None or self._watch.done():
            self._watch = asyncio.create_task(self._look_again_and_again(), name="open-streams")
        try:
            with self._waiters.holding(state.caller.tenant.org, checked=False):
                async with aclosing(stream.pieces()) as pieces:
                    async for piece in pieces:
                        yield piece
        finally:
            self._open.discard(entry)

    async def _look_again_and_again(self) -> None:
        while self._open:
            await asyncio.sleep(self._period)
            entries = set(self._open)
            try:
                self._proofs = await self._access.known({entry.credential for entry in entries if entry.credential})
            except Exception as error:
                LOG.warning("the credentials of open streams could not be looked at: %r", error)
                entries = {entry for entry in entries if entry.credential in self._proofs}
            self._judge(entries)

    def _judge(self, entries: Iterable[_Open]) -> None:
        now, time = self._clock.now(), asyncio.get_running_loop().time()
        for entry in entries:
            if time >= entry.until:
                entry.stream.end("lifetime")
            elif entry.credential and not self._may_go_on(entry, now):
                entry.stream.end("credential")

    def _may_go_on(self, entry: _Open, now: datetime) -> bool:
        try:
            permit(entry.operation, self._access.judge(self._proofs.get(entry.credential), entry.address, now))
        except DomainError:
            return False
        return True
