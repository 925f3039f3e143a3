"""Service processes for all flows of a test process: an API and a worker on a separate database, without Redis."""

import asyncio
from collections.abc import Iterator

import pytest

from tests.flows.feeds import FeedServer, serve_feeds
from tests.flows.service_processes import ServiceProcesses, Tenancy
from tests.postgres.databases import create_database


@pytest.fixture(scope="session")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcesses]:
    """Run the service processes."""
    processes = ServiceProcesses(asyncio.run(create_database("flows")), tmp_path_factory.mktemp("services"))
    try:
        processes.start("worker")
        processes.start_api()
        yield processes
    finally:
        processes.stop()


@pytest.fixture(scope="session")
def feeds() -> Iterator[FeedServer]:
    """Run a feed server on an address that the service processes can reach."""
    with serve_feeds() as served:
        yield served


@pytest.fixture
def fjord(services: ServiceProcesses) -> Tenancy:
    """Create an organisation in live mode."""
    return services.create_organisation()
