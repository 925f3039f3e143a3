"""Fixtures for contract tests on embedded PostgreSQL and on each server that the environment names (CONTRIBUTING.md)."""

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

_OTHER_SERVERS = (("server", os.environ.get("JOINERY_TEST_SERVER")), ("citus", GIVEN))
BACKENDS = ["citus"] if ON_CLUSTER else ["postgres", *(name for name, given in _OTHER_SERVERS if given)]


@pytest_asyncio.fixture(params=BACKENDS)
async def backend(request: pytest.FixtureRequest) -> AsyncIterator[Backend]:
    """Return a backend per server; with the mark `settable_clock`, only the test advances the time."""
    if request.node.get_closest_marker("settable_clock") is None:
        async with postgres_backend("embedded" if request.param == "postgres" else request.param) as made:
            yield made
            async with (
                made.pool.connect_as_owner() as pooled
            ):  # other tests of the database read no catalogue of this one
                await pooled.driver_connection.execute("DELETE FROM licences")
    elif request.param == "postgres":
        async with settable_backend() as made:
            yield made
    else:
        pytest.skip("time passes by itself there")


@pytest.fixture
def uow(backend: Backend) -> UnitOfWork:
    return backend.uow


@pytest_asyncio.fixture
async def tenant(backend: Backend) -> Tenant:
    """Return the live tenant of a new organisation."""
    return await backend.tenant()
