"""Listing of inbound messages."""

from domain.kernel.paging import Page, PageRequest
from domain.kernel.resource import existing
from domain.mail.model import InboundMessage, MessageFilter
from domain.sources.ports import SourceStore
from ports.unit_of_work import Tx


class MailService:
    """Read access to inbound messages."""

    async def list_messages(self, tx: Tx, source: str, page_request: PageRequest) -> Page[InboundMessage]:
        """Return the messages for a source, newest first. Raises NotFound for an unknown source."""
        existing(await tx[SourceStore].get(source))
        return await tx.store(InboundMessage).page(page_request, MessageFilter(source))
