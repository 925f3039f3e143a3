"""GET /v1/sources/{id}/inbound-messages."""

from typing import Final, TypeAlias

from adapters.wire import mail as wire
from domain.jobs.usecases.ticks import Tick
from domain.mail.usecases.service import MailService
from entrypoints.operations.operation import Area, Read, ReadContext, Reply

Reading: TypeAlias = ReadContext[MailService]


async def list_messages(call: Reading) -> Reply:
    """What reached a source's addresses."""
    found = await call.service.list_messages(call.tx, call.ids["id"], call.page_request)
    return call.list(wire.INBOUND_MESSAGE, found)


OPERATIONS: Final = (
    Read(
        id="mail.list_messages",
        path="/v1/sources/{id}/inbound-messages",
        ids={"id": "src"},
        summary="List a source's inbound messages",
        description="Every message that reached the source's inbound address, newest first, whether it was taken or "
        "refused, with the run of each data file. A message that keeps being sent again and refused for the same reason "
        "is listed once. They are kept for 90 days.",
        handler=list_messages,
        scope="sources:read",
        reply=wire.INBOUND_MESSAGE.list,
        paging="both",
        errors=("not_found",),
        dataset="inbound_messages",
    ),
)

AREA: Final = Area(
    name="mail",
    title="Inbound mail",
    description="Messages that reached a source's address.",
    service=lambda _: MailService(),
    operations=OPERATIONS,
    ticks=lambda dependencies: [
        Tick("old inbound messages", 3600, dependencies.maintenance.purge_inbound_messages, purges=True)
    ],
)
