"""A running application for each test."""

from collections.abc import AsyncIterator

import pytest_asyncio

from tests.http.application import ApplicationHarness, run_application
from tests.http.client import Client


@pytest_asyncio.fixture
async def application() -> AsyncIterator[ApplicationHarness]:
    """Run the application."""
    async with run_application() as application:
        yield application


@pytest_asyncio.fixture
async def client(application: ApplicationHarness) -> Client:
    """Create a client with all scopes in live mode of Fjord."""
    return await application.create_client()
