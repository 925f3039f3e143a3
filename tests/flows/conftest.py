"""One stage for all flows of a test process: an API and a worker on a database of their own, without Redis."""

import asyncio
from collections.abc import Iterator

import pytest

from tests.flows.feeds import FeedServer, feed_server
from tests.flows.stage import Stage, Tenancy
from tests.postgres.databases import fresh_database


@pytest.fixture(scope="session")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """The stage, running."""
    made = Stage(asyncio.run(fresh_database("flows")), tmp_path_factory.mktemp("stage"))
    try:
        made.start("worker")
        made.api()
        yield made
    finally:
        made.stop()


@pytest.fixture(scope="session")
def feeds() -> Iterator[FeedServer]:
    """A server of feeds on an address that the stage's processes may reach."""
    with feed_server() as served:
        yield served


@pytest.fixture
def fjord(stage: Stage) -> Tenancy:
    """A new organisation's live data."""
    return stage.organisation()
