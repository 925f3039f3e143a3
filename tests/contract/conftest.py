"""Every suite runs on embedded PostgreSQL, and on each server that the environment names (CONTRIBUTING.md)."""

import os
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from domain.kernel.tenancy import Tenant
from ports.unit_of_work import UnitOfWork
from tests.support.backend import Backend
from tests.support.citus import GIVEN, ON_CLUSTER
from tests.support.postgres import postgres_backend
from tests.support.settable_database import settable_backend

_OTHERS = (("server", os.environ.get("JOINERY_TEST_SERVER")), ("citus", GIVEN))
BACKENDS = ["citus"] if ON_CLUSTER else ["postgres", *(name for name, given in _OTHERS if given)]


@pytest_asyncio.fixture(params=BACKENDS)
async def backend(request: pytest.FixtureRequest) -> AsyncIterator[Backend]:
    """One way of keeping everything; with the mark `settable_clock`, time passes only when the test lets it."""
    if request.node.get_closest_marker("settable_clock") is None:
        async with postgres_backend("embedded" if request.param == "postgres" else request.param) as made:
            yield made
    elif request.param == "postgres":
        async with settable_backend() as made:
            yield made
    else:
        pytest.skip("time passes by itself there")


@pytest.fixture
def uow(backend: Backend) -> UnitOfWork:
    """The backend's units of work."""
    return backend.uow


@pytest_asyncio.fixture
async def tenant(backend: Backend) -> Tenant:
    """The live data of a new organisation."""
    return await backend.tenant()
