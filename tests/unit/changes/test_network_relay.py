"""The relay when the lead comes and goes: what it remembers of a database is of no use in its next term."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from domain.changes.model import get_network_tenant
from domain.changes.usecases.network import NetworkRelay
from tests.support.logs import Log

pytestmark = pytest.mark.asyncio


@asynccontextmanager
async def leading(relay: NetworkRelay, log: Log) -> AsyncIterator[None]:
    """A term, in which everything that is published has been copied when the context is entered."""
    term = asyncio.create_task(relay.run())
    try:
        async with asyncio.timeout(10):
            while not _copied(log):
                await asyncio.sleep(0.005)
        yield
    finally:
        term.cancel()
        await asyncio.gather(term, return_exceptions=True)


def _copied(log: Log) -> bool:
    return _ids(log, network=True) == _ids(log)


def _ids(log: Log, *, network: bool = False) -> list[str]:
    return [kept.event.id for kept in log.store.events[get_network_tenant(True) if network else log.tenant].values()]


async def test_a_term_begins_with_the_checkpoints_as_they_are() -> None:
    """Between two terms the database goes back, and the publisher's log further than it ever was."""
    log = Log()
    relay = NetworkRelay(log.network, log.signals)
    await log.write(2, is_published=True)
    async with leading(relay, log):
        checkpoint = log.store.checkpoints[get_network_tenant(True)][log.tenant]
        await log.write(3, is_published=True)
        while not _copied(log):
            await asyncio.sleep(0.005)
    log.forget(3)
    log.forget(3, get_network_tenant(True))
    log.store.checkpoints[get_network_tenant(True)][log.tenant] = checkpoint
    await log.write(3, is_published=True)
    async with leading(relay, log):
        assert len(_ids(log, network=True)) == 5
