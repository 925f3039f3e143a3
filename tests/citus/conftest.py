"""Everything here needs a cluster: JOINERY_TEST_CITUS_URL (docs/cluster.md)."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.support.citus import GIVEN, cluster_alone


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Without a cluster, tests say so."""
    if not GIVEN:
        for item in items:
            if "tests/citus/" in item.nodeid:
                item.add_marker(pytest.mark.skip(reason="JOINERY_TEST_CITUS_URL is not set"))


@pytest_asyncio.fixture
async def empty() -> AsyncIterator[str]:
    """A database at the coordinator that nothing has been done to."""
    async with cluster_alone("empty", distributed=False, migrated=False) as address:
        yield address


@pytest_asyncio.fixture
async def plain() -> AsyncIterator[str]:
    """A migrated database at the coordinator, as one PostgreSQL has it."""
    async with cluster_alone("plain", distributed=False) as address:
        yield address
