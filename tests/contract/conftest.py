"""Every suite runs on every backend that is there."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from domain.kernel.tenancy import Tenant
from ports.unit_of_work import UnitOfWork
from tests.support.backend import Backend, memory_backend
from tests.support.citus import GIVEN, ON_CLUSTER


@pytest_asyncio.fixture(params=["citus"] if ON_CLUSTER else ["memory", "postgres", "server", "citus"])
async def backend(request: pytest.FixtureRequest) -> AsyncIterator[Backend]:
    """One way of keeping everything."""
    if request.param == "memory":
        yield memory_backend()
        return
    module = pytest.importorskip("tests.support.postgres", exc_type=ImportError)
    if request.param == "server" and not await module.at_hand():
        pytest.skip("no PostgreSQL server is at hand")
    if request.param == "citus" and not GIVEN:
        pytest.skip("JOINERY_TEST_CITUS_URL is not set")
    async with module.postgres_backend("embedded" if request.param == "postgres" else request.param) as made:
        yield made


@pytest.fixture
def uow(backend: Backend) -> UnitOfWork:
    """The backend's units of work."""
    return backend.uow


@pytest_asyncio.fixture
async def tenant(backend: Backend) -> Tenant:
    """The live data of a new organisation."""
    return await backend.tenant()
