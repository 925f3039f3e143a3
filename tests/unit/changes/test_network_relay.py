"""The network relay when leadership changes: checkpoints are read again at the start of each term."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from domain.changes.model import get_network_tenant
from domain.changes.usecases.network import NetworkRelay
from tests.support.logs import TailedLog

pytestmark = pytest.mark.asyncio


@asynccontextmanager
async def run_relay(relay: NetworkRelay, log: TailedLog) -> AsyncIterator[None]:
    """Run the relay as leader; all published events are copied when the context is entered."""
    term = asyncio.create_task(relay.run())
    try:
        async with asyncio.timeout(10):
            while not _is_copied(log):
                await asyncio.sleep(0.005)
        yield
    finally:
        term.cancel()
        await asyncio.gather(term, return_exceptions=True)


def _is_copied(log: TailedLog) -> bool:
    return _list_ids(log, network=True) == _list_ids(log)


def _list_ids(log: TailedLog, *, network: bool = False) -> list[str]:
    return [
        stored.event.id for stored in log.store.events[get_network_tenant(True) if network else log.tenant].values()
    ]


async def test_a_term_starts_with_the_stored_checkpoints() -> None:
    """Between two terms the database is restored, and the publisher's log grows beyond its former end."""
    log = TailedLog()
    relay = NetworkRelay(log.network, log.signals)
    await log.write(2, is_published=True)
    async with run_relay(relay, log):
        checkpoint = log.store.checkpoints[get_network_tenant(True)][log.tenant]
        await log.write(3, is_published=True)
        while not _is_copied(log):
            await asyncio.sleep(0.005)
    log.delete_events(3)
    log.delete_events(3, get_network_tenant(True))
    log.store.checkpoints[get_network_tenant(True)][log.tenant] = checkpoint
    await log.write(3, is_published=True)
    async with run_relay(relay, log):
        assert len(_list_ids(log, network=True)) == 5
