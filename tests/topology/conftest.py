"""Fixtures with organisations on two servers."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from domain.kernel.tenancy import Tenant
from ports.unit_of_work import UnitOfWork
from tests.support.backend import Backend
from tests.topology.backend import open_nodes_backend
from tests.topology.servers import Servers, open_servers, open_shared_servers


@pytest_asyncio.fixture
async def servers() -> AsyncIterator[Servers]:
    """Yield two servers, each with an empty database."""
    async with open_servers() as made:
        yield made


@pytest_asyncio.fixture
async def backend(request: pytest.FixtureRequest) -> AsyncIterator[Backend]:
    """Yield a backend that places organisations on the servers by name."""
    if request.node.get_closest_marker("settable_clock") is not None:
        pytest.skip("the two servers have the time of day")
    async with open_nodes_backend(await open_shared_servers()) as made:
        yield made


@pytest.fixture
def uow(backend: Backend) -> UnitOfWork:
    return backend.uow


@pytest_asyncio.fixture
async def tenant(backend: Backend) -> Tenant:
    """Return the live tenant of a new organisation."""
    return await backend.tenant()
