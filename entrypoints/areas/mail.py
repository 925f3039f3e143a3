"""Mail received by sources: GET /v1/sources/{id}/inbound-messages."""

from collections.abc import Sequence

from adapters.api_json import mail as wire
from domain.jobs.usecases.ticks import Tick
from domain.mail.usecases.service import MailService
from entrypoints.operations.collection import Collection
from entrypoints.operations.operation import Area
from ports.maintenance import Maintenance


def _create_ticks(maintenance: Maintenance) -> Sequence[Tick]:
    return [Tick("old inbound messages", 3600, maintenance.purge_inbound_messages, is_purge=True)]


MESSAGES = Collection("mail", wire.INBOUND_MESSAGE, "sources")

AREA = Area(
    "mail",
    "Inbound mail",
    "Messages received at a source's inbound address.",
    create_service=MailService,
    operations=(
        MESSAGES.list(
            "List a source's inbound messages",
            "Returns every message received at the source's inbound address, newest first, whether accepted or refused, with the run "
            "of each data file. A message that is resent and refused repeatedly for the same reason is listed once. Messages are kept "
            "for 90 days.",
            MailService.list_messages,
            id="mail.list_messages",
            path="/v1/sources/{id}/inbound-messages",
            dataset="inbound_messages",
        ),
    ),
    create_ticks=_create_ticks,
)
