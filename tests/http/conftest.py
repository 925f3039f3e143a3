"""A running application for each test."""

from collections.abc import AsyncIterator

import pytest_asyncio

from tests.http.client import Client
from tests.http.fakes import World, running


@pytest_asyncio.fixture
async def world() -> AsyncIterator[World]:
    """The whole application."""
    async with running() as made:
        yield made


@pytest_asyncio.fixture
async def client(world: World) -> Client:
    """A client with every scope in Fjord's live data."""
    return await world.client()
