"""JSON of inbound messages (docs/mail.md)."""

from adapters.wire.resource import Resource
from domain.kernel.resource import computed, optional
from domain.kernel.schema import array, enum, id_of, integer, named, record, text, timestamp
from domain.mail.model import (
    LONGEST_TEXT,
    MOST_LISTED,
    AttachmentNote,
    CheckResult,
    InboundMessage,
    MailPolicy,
    MessageReason,
    MessageStatus,
)

ATTACHMENT = record(
    None,
    {
        "filename": text("spring-price-list.csv", longest=LONGEST_TEXT),
        "bytes": integer(48213, least=0),
        "run": id_of("run", "The run that imports the file."),
        "note": enum(*AttachmentNote) | {"description": "Why no run imports the file."},
    },
    optional=("run", "note"),
)
AUTHENTICATION = record(
    None,
    {
        "spf": named("mail_check_result", enum(*CheckResult)),
        "dkim": named("mail_check_result", enum(*CheckResult)),
        "dmarc": named("mail_check_result", enum(*CheckResult)),
        "policy": enum(*MailPolicy) | {"description": "The DMARC policy of the author's domain for mail that fails."},
    },
    optional=("policy",),
    description="Results of the sender's authentication; omitted if the message was refused before the checks.",
)
INBOUND_MESSAGE = Resource[InboundMessage](
    "inbound_message",
    {
        "id": id_of("inm"),
        "source": id_of("src"),
        "from": computed(
            text("orders@vendor.example", longest=LONGEST_TEXT, shortest=0), lambda message, _: message.sender
        ),
        "subject": text("Price list for spring", longest=LONGEST_TEXT, shortest=0),
        "received_at": timestamp(),
        "status": named("inbound_message_status", enum(*MessageStatus)),
        "reason": optional(
            enum(*MessageReason)
            | {
                "description": "Why the message was refused, or why an accepted message started no run (`duplicate`, `no_data`)."
            }
        ),
        "detail": optional(text("other@vendor.example is not permitted to send to this address.", longest=2000)),
        "attachments": array(ATTACHMENT, most=MOST_LISTED, description="All attachments, imported or not."),
        "authentication": optional(AUTHENTICATION),
    },
)
