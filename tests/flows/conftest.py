"""One stage for all flows of a test process: an API and a worker on a database of their own, without Redis."""

import asyncio
from collections.abc import Iterator

import pytest

from tests.flows.feeds import FeedServer, serve_feeds
from tests.flows.service_processes import ServiceProcesses, Tenancy
from tests.postgres.databases import fresh_database


@pytest.fixture(scope="session")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcesses]:
    """The stage, running."""
    made = ServiceProcesses(asyncio.run(fresh_database("flows")), tmp_path_factory.mktemp("stage"))
    try:
        made.start("worker")
        made.start_api()
        yield made
    finally:
        made.stop()


@pytest.fixture(scope="session")
def feeds() -> Iterator[FeedServer]:
    """A server of feeds on an address that the stage's processes may reach."""
    with serve_feeds() as served:
        yield served


@pytest.fixture
def fjord(services: ServiceProcesses) -> Tenancy:
    """A new organisation's live data."""
    return services.create_organisation()
