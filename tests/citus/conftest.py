"""Everything here needs a cluster: JOINERY_TEST_CITUS_URL (docs/cluster.md)."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from tests.citus.homes import home_of
from tests.flows.stage import Stage, Tenancy
from tests.support.citus import GIVEN, cluster_alone, cluster_database, drop, nodes


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


@pytest.fixture(scope="session")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """The service on a cluster: API, worker and scheduler."""
    address = asyncio.run(cluster_database("stage"))
    made = Stage(address, tmp_path_factory.mktemp("stage"))
    try:
        made.start("worker")
        made.start("scheduler")
        made.api()
        yield made
    finally:
        made.stop()
        asyncio.run(drop(address))


@pytest.fixture(scope="module")
def tenants(stage: Stage) -> dict[str, list[Tenancy]]:
    """Two new organisations' test data on each worker, by its name."""
    found: dict[str, list[Tenancy]] = {f"{host}:{port}": [] for host, port in asyncio.run(nodes())[1:]}
    while any(len(there) < 2 for there in found.values()):
        tenancy = stage.organisation(livemode=False)
        found[home_of(stage, tenancy.tenant.org)].append(tenancy)
    return {name: there[:2] for name, there in found.items()}
