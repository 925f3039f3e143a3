"""Listing of inbound messages."""

from domain.kernel.paging import Page, PageRequest
from domain.kernel.resource import require_found
from domain.mail.model import InboundMessage, MessageFilter
from domain.sources.ports import SourceStore
from ports.unit_of_work import Tx


class MailService:
    """Read access to the records of inbound messages."""

    async def list_messages(self, tx: Tx, source: str, page_request: PageRequest) -> Page[InboundMessage]:
        """Return a page of the messages that a source received, newest first. Raises NotFound for an unknown source."""
        require_found(await tx[SourceStore].get(source))
        return await tx.store(InboundMessage).page(page_request, MessageFilter(source))
