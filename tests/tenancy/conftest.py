"""The application that these suites share a shape of, new for each test."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from tests.tenancy.world import World, serving


@pytest_asyncio.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    """A serving application on PostgreSQL."""
    async with serving(tmp_path) as made:
        yield made
