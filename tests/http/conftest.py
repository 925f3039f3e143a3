"""A running application for each test."""

from collections.abc import AsyncIterator

import pytest_asyncio

from tests.http.application import ApplicationHarness, run_application
from tests.http.client import Client


@pytest_asyncio.fixture
async def application() -> AsyncIterator[ApplicationHarness]:
    """The whole application."""
    async with run_application() as application:
        yield application


@pytest_asyncio.fixture
async def client(application: ApplicationHarness) -> Client:
    """A client with every scope in Fjord's live data."""
    return await application.create_client()
