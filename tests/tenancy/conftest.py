"""The application that the tests of a module share; each makes organisations of its own."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.tenancy.world import World, serving


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    """A serving application on PostgreSQL."""
    async with serving(tmp_path_factory.mktemp("world")) as made:
        yield made
