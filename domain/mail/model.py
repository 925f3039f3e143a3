"""Inbound messages and their outcome (docs/mail.md)."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from domain.kernel.enums import StoredEnum
from domain.kernel.paging import Filter

LARGEST = 25 * 1024 * 1024
"""Maximum bytes of a message on the wire."""
MOST_FILES = 20
"""Maximum data files of a message."""
MOST_LISTED = 100
"""Maximum attachments listed of a message; of others only the number is stated."""
SAME_WITHIN = timedelta(days=7)
"""Period in which a repeated message counts as a duplicate: senders retry for five days."""
LONGEST_TEXT = 500
"""Characters stored of a subject, file name or sender."""


class MessageStatus(StoredEnum):
    """Whether the message was accepted."""

    ACCEPTED = "accepted"
    REFUSED = "refused"


class MessageReason(StoredEnum):
    """Why a message was refused, or started nothing although it was accepted."""

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
    """Why an attachment was not read."""

    NOT_DATA = "not_data"
    WEB_PAGE = "web_page"
    EMPTY = "empty"
    DAMAGED = "damaged"
    ENCRYPTED = "encrypted"
    WINMAIL = "winmail"
    TOO_LARGE = "too_large"
    DUPLICATE = "duplicate"


class CheckResult(StoredEnum):
    """Results of a sender check (RFC 8601)."""

    PASS = "pass"  # noqa: S105  a result, not a password
    FAIL = "fail"
    SOFTFAIL = "softfail"
    NEUTRAL = "neutral"
    NONE = "none"
    POLICY = "policy"
    TEMPERROR = "temperror"
    PERMERROR = "permerror"


class MailPolicy(StoredEnum):
    """What a domain requests for mail that fails DMARC."""

    NONE = "none"
    QUARANTINE = "quarantine"
    REJECT = "reject"


@dataclass(frozen=True, slots=True)
class Authentication:
    """Results of SPF, DKIM and DMARC, and the policy of the sender's domain, if any."""

    spf: CheckResult = CheckResult.NONE
    dkim: CheckResult = CheckResult.NONE
    dmarc: CheckResult = CheckResult.NONE
    policy: MailPolicy | None = None


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file of a message: the run that reads it, or the note why none does."""

    filename: str
    bytes: int
    run: str | None = None
    note: AttachmentNote | None = None


@dataclass(frozen=True, slots=True)
class InboundMessage:
    """A message that reached a source's address.

    `fingerprint` is equal for repetitions of the same message. `authentication` is None if the message was refused
    before the sender was checked.
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
    """Filter of a list of messages."""

    source: str | None = None
    status: MessageStatus | None = None
    fingerprint: str | None = None


@dataclass(frozen=True, slots=True)
class Envelope:
    """SMTP envelope: the return path (`sender`, may be empty), the server's address (`peer`) and its HELO name."""

    sender: str
    peer: str
    helo: str


@dataclass(frozen=True, slots=True)
class File:
    """An attachment.

    `content` is present for a data file, else `note` says why not. `digest` is the content's hexadecimal SHA-256.
    """

    filename: str
    size: int
    content: bytes | None = None
    note: AttachmentNote | None = None
    digest: str = ""


@dataclass(frozen=True, slots=True)
class ReadMessage:
    """A parsed message with one author (`sender`, an address) and its files in order."""

    sender: str
    subject: str
    message_id: str
    files: tuple[File, ...]

    @property
    def data(self) -> tuple[File, ...]:
        """The files that hold data."""
        return tuple(file for file in self.files if file.content is not None)


class MessageUnreadable(Exception):
    """A message that cannot be parsed unambiguously; the text says why.

    `sender` and `subject` are set as far as known.
    """

    def __init__(self, why: str, sender: str = "", subject: str = "") -> None:
        super().__init__(why)
        self.sender, self.subject = sender, subject
