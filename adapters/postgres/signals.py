"""Signals between processes by LISTEN and NOTIFY."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import LiteralString

import psycopg

from adapters.postgres import events, jobs, webhooks
from adapters.postgres.nodes.connecting import connect
from adapters.postgres.nodes.pool import Pool
from adapters.postgres.nodes.router import Node
from domain.kernel.errors import Unavailable
from ports.signals import Channel, SignalListener

_CHANNELS: dict[Channel, LiteralString] = {
    Channel.JOBS: jobs.CHANNEL,
    Channel.EVENTS: events.CHANNEL,
    Channel.WEBHOOKS: webhooks.CHANNEL,
}

LOOK = 5.0
"""Seconds between two looks at which nodes there are."""
RETRY = 1.0
"""Seconds between two attempts to listen to a node that is out of reach."""


class PostgresSignals:
    """Each subscription listens on a connection to every node; a lost one is reopened, which counts as a signal."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

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
        """Listen on each node; `listening` is set once each was reached or is known to be out of reach."""
        tasks: dict[Node, asyncio.Task[None]] = {}
        try:
            while True:
                nodes = await self._nodes()
                for node in tasks.keys() - set(nodes):
                    tasks.pop(node).cancel()
                tried: list[asyncio.Event] = []
                for node in nodes:
                    if node not in tasks:
                        tried.append(asyncio.Event())
                        tasks[node] = asyncio.create_task(_listen_at(node, channel, listener, tried[-1]))
                for event in tried:
                    await event.wait()
                if nodes:
                    listening.set()
                await asyncio.sleep(LOOK if nodes else RETRY)
        finally:
            for task in tasks.values():
                task.cancel()
            await asyncio.gather(*tasks.values(), return_exceptions=True)

    async def _nodes(self) -> Sequence[Node]:
        try:
            return await self._pool.nodes()
        except Unavailable:
            return ()


async def _listen_at(node: Node, channel: LiteralString, listener: SignalListener, tried: asyncio.Event) -> None:
    while True:
        try:
            connection = await connect(node.conninfo, "joinery signals")
            async with connection:
                await connection.execute("LISTEN " + channel)
                listener.hear("")
                tried.set()
                async for notice in connection.notifies():
                    listener.hear(notice.payload)
        except psycopg.Error:
            tried.set()
            await asyncio.sleep(RETRY)
