"""Application that the tests of a module share; each test creates its own organisations."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.tenancy.application import ServedApplication, serve_application


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def application(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ServedApplication]:
    async with serve_application(tmp_path_factory.mktemp("world")) as made:
        yield made
