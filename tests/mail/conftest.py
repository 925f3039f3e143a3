"""A listener with a real application on PostgreSQL, and a name system that tests define."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from tests.mail.office import Office, office


@pytest_asyncio.fixture
async def post(tmp_path: Path) -> AsyncIterator[Office]:
    """An office for a new organisation."""
    async with office(tmp_path) as made:
        yield made
