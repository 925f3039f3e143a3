"""Signals between processes by LISTEN and NOTIFY."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import LiteralString

import psycopg

from adapters.postgres import event_log, jobs, webhooks
from adapters.postgres.nodes.connections import connect
from adapters.postgres.nodes.pool import Pool
from adapters.postgres.nodes.router import Node
from domain.kernel.errors import Unavailable
from ports.signals import Channel, SignalListener

_CHANNELS: dict[Channel, LiteralString] = {
    Channel.JOBS: jobs.CHANNEL,
    Channel.EVENTS: event_log.CHANNEL,
    Channel.WEBHOOKS: webhooks.CHANNEL,
}

NODE_CHECK_SECONDS = 5.0
"""Seconds between two checks of the list of nodes."""
RETRY_SECONDS = 1.0
"""Seconds between two attempts to connect to an unreachable node."""


class PostgresSignals:
    """Signals between processes, received by LISTEN on one connection per node for each subscription.

    After a lost connection is opened again, the listener is notified, because signals may have been missed.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    @asynccontextmanager
    async def subscribe(self, channel: Channel) -> AsyncIterator[SignalListener]:
        listener, ready = SignalListener(), asyncio.Event()
        task = asyncio.create_task(self._listen(_CHANNELS[channel], listener, ready))
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(5):
                    await ready.wait()
            yield listener
        finally:
            task.cancel()
            await asyncio.wait((task,))

    async def _listen(self, channel: LiteralString, listener: SignalListener, ready: asyncio.Event) -> None:
        """Listen on all nodes until cancelled.

        Args:
            channel: PostgreSQL's name of the channel.
            listener: Listener that receives the signals.
            ready: Event that is set after the first attempt to connect to each node.
        """
        tasks: dict[Node, asyncio.Task[None]] = {}
        try:
            while True:
                nodes = await self._list_nodes()
                for node in tasks.keys() - set(nodes):
                    tasks.pop(node).cancel()
                attempts: list[asyncio.Event] = []
                for node in nodes:
                    if node not in tasks:
                        attempts.append(asyncio.Event())
                        tasks[node] = asyncio.create_task(_listen_on_node(node, channel, listener, attempts[-1]))
                for event in attempts:
                    await event.wait()
                if nodes:
                    ready.set()
                await asyncio.sleep(NODE_CHECK_SECONDS if nodes else RETRY_SECONDS)
        finally:
            for task in tasks.values():
                task.cancel()
            await asyncio.gather(*tasks.values(), return_exceptions=True)

    async def _list_nodes(self) -> Sequence[Node]:
        try:
            return await self._pool.list_nodes()
        except Unavailable:
            return ()


async def _listen_on_node(
    node: Node, channel: LiteralString, listener: SignalListener, attempted: asyncio.Event
) -> None:
    while True:
        try:
            connection = await connect(node.conninfo, "joinery signals")
            async with connection:
                await connection.execute("LISTEN " + channel)
                listener.receive("")
                attempted.set()
                async for notice in connection.notifies():
                    listener.receive(notice.payload)
        except psycopg.Error:
            attempted.set()
            await asyncio.sleep(RETRY_SECONDS)
