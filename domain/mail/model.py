"""Emails that are sent to sources: parsed messages, results of sender checks, and outcomes (docs/mail.md)."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from domain.kernel.enums import StoredEnum
from domain.kernel.paging import Filter

MAX_BYTES_PER_MESSAGE = 25 * 1024 * 1024
"""Maximum number of bytes of a message, as transmitted by SMTP."""
MAX_DATA_FILES = 20
"""Maximum number of data files in a message."""
MAX_LISTED_ATTACHMENTS = 100
"""Maximum number of attachments that the record of a message lists; further ones are only counted."""
DUPLICATE_WINDOW = timedelta(days=7)
"""Time in which an equal message counts as a duplicate. Sending servers retry for five days."""
MAX_TEXT_CHARS = 500
"""Maximum number of characters that are stored of a subject, file name or sender."""


class MessageStatus(StoredEnum):
    """Outcomes of a received message."""

    ACCEPTED = "accepted"
    REFUSED = "refused"


class MessageReason(StoredEnum):
    """Reasons for which a message was refused, or was accepted without starting a run."""

    TOO_LARGE = "too_large"
    MALFORMED = "malformed"
    BOUNCE = "bounce"
    SENDER_NOT_LISTED = "sender_not_listed"
    DMARC_REJECTED = "dmarc_rejected"
    NOT_CHECKED = "not_checked"
    SOURCE_NOT_ACTIVE = "source_not_active"
    QUOTA_EXCEEDED = "quota_exceeded"
    TOO_MANY_FILES = "too_many_files"
    DUPLICATE = "duplicate"
    NO_DATA = "no_data"


class AttachmentNote(StoredEnum):
    """Reasons for which an attachment was not imported."""

    NOT_DATA = "not_data"
    WEB_PAGE = "web_page"
    EMPTY = "empty"
    DAMAGED = "damaged"
    ENCRYPTED = "encrypted"
    WINMAIL = "winmail"
    TOO_LARGE = "too_large"
    DUPLICATE = "duplicate"


class SenderCheckResult(StoredEnum):
    """Results of SPF, DKIM or DMARC for a message (RFC 8601)."""

    PASS = "pass"  # noqa: S105  a result, not a password
    FAIL = "fail"
    SOFTFAIL = "softfail"
    NEUTRAL = "neutral"
    NONE = "none"
    POLICY = "policy"
    TEMPERROR = "temperror"
    PERMERROR = "permerror"


class MailPolicy(StoredEnum):
    """Policies that a domain can request for mail that fails DMARC."""

    NONE = "none"
    QUARANTINE = "quarantine"
    REJECT = "reject"


@dataclass(frozen=True, slots=True)
class Authentication:
    """Results of SPF, DKIM and DMARC, and the DMARC policy of the sender's domain (None if it has none)."""

    spf: SenderCheckResult = SenderCheckResult.NONE
    dkim: SenderCheckResult = SenderCheckResult.NONE
    dmarc: SenderCheckResult = SenderCheckResult.NONE
    policy: MailPolicy | None = None


@dataclass(frozen=True, slots=True)
class Attachment:
    """File in a message: `run` is the ID of the run that imports the file; without a run, `note` is the reason."""

    filename: str
    bytes: int
    run: str | None = None
    note: AttachmentNote | None = None


@dataclass(frozen=True, slots=True)
class InboundMessage:
    """Message that was sent to a source's inbound address.

    Attributes:
        sender: Email address of the author, or of the return path if the author is unknown.
        fingerprint: Hash that copies of the same message share.
        authentication: Results of the sender checks; None if the message was refused before the checks.
        reason: Why the message was refused, or accepted without a run; else None.
        detail: The reason as a sentence.
    """

    id: str
    source: str
    sender: str
    subject: str
    received_at: datetime
    status: MessageStatus
    fingerprint: str
    attachments: tuple[Attachment, ...] = ()
    authentication: Authentication | None = None
    reason: MessageReason | None = None
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class MessageFilter(Filter):
    """Filter of a list of inbound messages; None in a field matches any message."""

    source: str | None = None
    status: MessageStatus | None = None
    fingerprint: str | None = None


@dataclass(frozen=True, slots=True)
class Envelope:
    """SMTP envelope of a message.

    Attributes:
        sender: The return path; may be empty.
        peer: IP address of the sending server.
        helo: Name with which the sending server greeted (HELO).
    """

    sender: str
    peer: str
    helo: str


@dataclass(frozen=True, slots=True)
class ParsedAttachment:
    """Attachment of a parsed message, with its content if it is a data file.

    Attributes:
        content: The bytes of a data file; None for any other attachment.
        note: Why the attachment is not a data file, if `content` is None.
        digest: Hexadecimal SHA-256 of `content`.
    """

    filename: str
    size: int
    content: bytes | None = None
    note: AttachmentNote | None = None
    digest: str = ""


@dataclass(frozen=True, slots=True)
class ParsedMessage:
    """Parsed message.

    Attributes:
        sender: Email address of the author.
        message_id: Value of the Message-ID header; empty if the header is missing.
        files: The attachments in order, including the files in archives.
    """

    sender: str
    subject: str
    message_id: str
    files: tuple[ParsedAttachment, ...]

    @property
    def data_files(self) -> tuple[ParsedAttachment, ...]:
        """The attachments that are data files."""
        return tuple(file for file in self.files if file.content is not None)


class MessageUnreadable(Exception):
    """The message cannot be parsed unambiguously, for the reason in the text.

    `sender` and `subject` are empty if they could not be read.
    """

    def __init__(self, reason: str, sender: str = "", subject: str = "") -> None:
        super().__init__(reason)
        self.sender, self.subject = sender, subject
