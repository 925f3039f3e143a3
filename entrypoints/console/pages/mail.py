"""Mail that reached a source's address, taken or refused, and a new address for one that has become known."""

from collections.abc import Mapping
from typing import Final

from entrypoints.console.page import Answer, Page
from entrypoints.console.refusals import Refused
from entrypoints.console.source_fields import READ, WRITE, listed
from entrypoints.console.visit import Visit

REASONS: Final[Mapping[str, str]] = {
    "duplicate": "It came before",
    "no_data": "Nothing to read came with it",
    "sender_not_listed": "The sender is not on the list",
    "dmarc_rejected": "Its sender's domain asks to refuse it",
    "too_large": "It is too large",
    "too_many_files": "Too many files came with it",
    "source_not_active": "The source was not active",
    "quota_exceeded": "The plan had no room",
    "not_checked": "Its sender could not be checked; it may come again",
    "malformed": "It is no message as mail servers send it",
    "bounce": "It is a report of mail that came back",
}


async def of_source(visit: Visit) -> Answer:
    """The messages, newest first."""
    return await listed(visit, "inbound-messages", "sources/mail.html", 8, reasons=REASONS)


async def rotate(visit: Visit) -> Answer:
    """Another address at once."""
    id = visit.ids["id"]
    try:
        await visit.api.post(f"/v1/sources/{id}/inbound-address/rotate")
    except Refused as refusal:
        if refusal.status == 404:
            raise
        return visit.redirect(f"/console/sources/{id}/mail", refusal.detail, tone="bad")
    return visit.redirect(
        f"/console/sources/{id}/mail", "The source has another address; the former one is unknown now."
    )


PAGES: Final = (
    Page("/console/sources/<id>/mail", of_source, scope=READ, menu="Sources"),
    Page("/console/sources/<id>/mail/rotate", rotate, methods=("POST",), scope=WRITE, menu="Sources"),
)
