"""JSON of inbound messages (docs/mail.md)."""

from adapters.api_json.resource import JsonResource
from domain.kernel.resource import computed, optional
from domain.kernel.schema import array, enum, id_schema, integer, response_object, text, timestamp, with_title
from domain.mail.model import (
    MAX_LISTED_ATTACHMENTS,
    MAX_TEXT_CHARS,
    AttachmentNote,
    InboundMessage,
    MailPolicy,
    MessageReason,
    MessageStatus,
    SenderCheckResult,
)

ATTACHMENT = response_object(
    None,
    {
        "filename": text("spring-price-list.csv", max_length=MAX_TEXT_CHARS),
        "bytes": integer(48213, minimum=0),
        "run": id_schema("run", "The run that imports the file."),
        "note": enum(*AttachmentNote) | {"description": "Why no run imports the file."},
    },
    optional=("run", "note"),
)
AUTHENTICATION = response_object(
    None,
    {
        "spf": with_title("mail_check_result", enum(*SenderCheckResult)),
        "dkim": with_title("mail_check_result", enum(*SenderCheckResult)),
        "dmarc": with_title("mail_check_result", enum(*SenderCheckResult)),
        "policy": enum(*MailPolicy)
        | {"description": "How the domain of the From address asks recipients to treat mail that fails DMARC."},
    },
    optional=("policy",),
    description="Results of the sender's authentication; omitted if the message was refused before the checks.",
)
INBOUND_MESSAGE = JsonResource[InboundMessage](
    "inbound_message",
    {
        "id": id_schema("inm"),
        "source": id_schema("src"),
        "from": computed(
            text("orders@vendor.example", max_length=MAX_TEXT_CHARS, min_length=0), lambda message, _: message.sender
        ),
        "subject": text("Price list for spring", max_length=MAX_TEXT_CHARS, min_length=0),
        "received_at": timestamp(),
        "status": with_title("inbound_message_status", enum(*MessageStatus)),
        "reason": optional(
            enum(*MessageReason)
            | {
                "description": "Why the message was refused, or why an accepted message started no run (`duplicate`, `no_data`)."
            }
        ),
        "detail": optional(
            text("other@vendor.example is not permitted to send to this email address.", max_length=2000)
        ),
        "attachments": array(
            ATTACHMENT, max_items=MAX_LISTED_ATTACHMENTS, description="All attachments, imported or not."
        ),
        "authentication": optional(AUTHENTICATION),
    },
)
