"""Being notified by LISTEN and NOTIFY instead of asking again and again."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import LiteralString

import psycopg

from adapters.postgres import events, jobs, webhooks
from adapters.postgres.connecting import connect
from ports.signals import Channel, SignalListener

_CHANNELS: dict[Channel, LiteralString] = {
    Channel.JOBS: jobs.CHANNEL,
    Channel.EVENTS: events.CHANNEL,
    Channel.WEBHOOKS: webhooks.CHANNEL,
}


class PostgresSignals:
    """One listening connection a subscription; a lost connection is taken up again and counts as a signal."""

    def __init__(self, conninfo: str) -> None:
        self._conninfo = conninfo

    @asynccontextmanager
    async def subscribe(self, channel: Channel) -> AsyncIterator[SignalListener]:
        listener, listening = SignalListener(), asyncio.Event()
        task = asyncio.create_task(self._listen(_CHANNELS[channel], listener, listening))
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(5):
                    await listening.wait()
            yield listener
        finally:
            task.cancel()
            await asyncio.wait((task,))

    async def _listen(self, channel: LiteralString, listener: SignalListener, listening: asyncio.Event) -> None:
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
