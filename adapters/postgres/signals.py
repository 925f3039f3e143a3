"""Being notified by LISTEN and NOTIFY instead of asking again and again."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import LiteralString

import psycopg

from adapters.postgres import events, jobs, webhooks
from adapters.postgres.connecting import connect
from ports.signals import Channel, Heard

_CHANNELS: dict[Channel, LiteralString] = {
    Channel.JOBS: jobs.CHANNEL,
    Channel.EVENTS: events.CHANNEL,
    Channel.WEBHOOKS: webhooks.CHANNEL,
}
_MOST_PAYLOADS = 10_000


class _SignalListener:
    """Set by the listening task, cleared by whoever waits."""

    def __init__(self) -> None:
        self.said = asyncio.Event()
        self._payloads: set[str] = set()

    def hear(self, payload: str) -> None:
        """Something was said."""
        if len(self._payloads) >= _MOST_PAYLOADS:
            self._payloads, payload = set(), ""
        self._payloads.add(payload)
        self.said.set()

    def heard(self) -> Heard:
        """What was said since this was last asked."""
        payloads, self._payloads = self._payloads, set()
        return Heard.of(payloads)

    async def wait(self, timeout: float | None) -> bool:
        """True once something was said since the last wait; False when the time (seconds) is over."""
        try:
            async with asyncio.timeout(timeout):
                await self.said.wait()
        except TimeoutError:
            return False
        self.said.clear()
        return True


class PostgresSignals:
    """One listening connection a subscription; a lost connection is taken up again and counts as a signal."""

    def __init__(self, conninfo: str) -> None:
        self._conninfo = conninfo

    @asynccontextmanager
    async def subscribe(self, channel: Channel) -> AsyncIterator[_SignalListener]:
        listener, listening = _SignalListener(), asyncio.Event()
        task = asyncio.create_task(self._listen(_CHANNELS[channel], listener, listening))
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(5):
                    await listening.wait()
            yield listener
        finally:
            task.cancel()
            await asyncio.wait((task,))

    async def _listen(self, channel: LiteralString, listener: _SignalListener, listening: asyncio.Event) -> None:
        while True:
            try:
                connection = await connect(self._conninfo, "joinery signals")
                async with connection:
                    await connection.execute("LISTEN " + channel)
                    listening.set()
                    listener.hear("")
                    async for notice in connection.notifies():
                        listener.hear(notice.payload)
            except psycopg.Error:
                await asyncio.sleep(1)
