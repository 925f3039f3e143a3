"""Tests that require a cluster: JOINERY_TEST_CITUS_URL (docs/cluster.md)."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from tests.citus.placements import find_node
from tests.flows.service_processes import ServiceProcesses, Tenancy
from tests.support.citus import GIVEN, create_cluster_database, drop_database, list_nodes, temporary_cluster_database


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the tests without a cluster."""
    if not GIVEN:
        for item in items:
            if "tests/citus/" in item.nodeid:
                item.add_marker(pytest.mark.skip(reason="JOINERY_TEST_CITUS_URL is not set"))


@pytest_asyncio.fixture
async def empty() -> AsyncIterator[str]:
    """Create an empty database on the coordinator."""
    async with temporary_cluster_database("empty", distributed=False, migrated=False) as address:
        yield address


@pytest_asyncio.fixture
async def plain() -> AsyncIterator[str]:
    """Create a migrated database on the coordinator that is not distributed."""
    async with temporary_cluster_database("plain", distributed=False) as address:
        yield address


@pytest.fixture(scope="session")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcesses]:
    """Run the service on a cluster: API, worker and scheduler."""
    address = asyncio.run(create_cluster_database("stage"))
    made = ServiceProcesses(address, tmp_path_factory.mktemp("stage"))
    try:
        made.start("worker")
        made.start("scheduler")
        made.start_api()
        yield made
    finally:
        made.stop()
        asyncio.run(drop_database(address))


@pytest.fixture(scope="module")
def tenants(services: ServiceProcesses) -> dict[str, list[Tenancy]]:
    """Create two organisations in test mode on each worker, by its name."""
    found: dict[str, list[Tenancy]] = {f"{host}:{port}": [] for host, port in asyncio.run(list_nodes())[1:]}
    while any(len(there) < 2 for there in found.values()):
        tenancy = services.create_organisation(livemode=False)
        found[find_node(services, tenancy.tenant.org)].append(tenancy)
    return {name: there[:2] for name, there in found.items()}
