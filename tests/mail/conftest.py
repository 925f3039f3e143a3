"""Mail listener with the application on PostgreSQL and fake DNS records."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from tests.mail.harness import MailHarness, open_mail_harness


@pytest_asyncio.fixture
async def harness(tmp_path: Path) -> AsyncIterator[MailHarness]:
    """Open a mail harness for a new organisation."""
    async with open_mail_harness(tmp_path) as harness:
        yield harness
