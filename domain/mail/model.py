"""A message that reached a source's address, and what became of it (docs/mail.md)."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from domain.kernel.enums import StoredEnum
from domain.kernel.paging import Filter

LARGEST = 25 * 1024 * 1024
"""Bytes that a message has at most, as it comes over the wire."""
MOST_FILES = 20
"""Data files that one message may bring."""
MOST_LISTED = 100
"""Attachments that a message names at most; of further ones only the number is told."""
SAME_WITHIN = timedelta(days=7)
"""For how long the same message counts as the same: senders try again for five days."""
LONGEST_TEXT = 500
"""Characters of a subject, a file's name or a sender that are kept."""


class MessageStatus(StoredEnum):
    """Whether the sender was told that the message was taken."""

    ACCEPTED = "accepted"
    REFUSED = "refused"


class MessageReason(StoredEnum):
    """Why a message was refused; of accepted ones, why it started nothing."""

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
    """What a check of the sender came to, in the words of RFC 8601."""

    PASS = "pass"  # noqa: S105  a result, not a password
    FAIL = "fail"
    SOFTFAIL = "softfail"
    NEUTRAL = "neutral"
    NONE = "none"
    POLICY = "policy"
    TEMPERROR = "temperror"
    PERMERROR = "permerror"


class MailPolicy(StoredEnum):
    """What a domain asks to be done with mail that fails DMARC."""

    NONE = "none"
    QUARANTINE = "quarantine"
    REJECT = "reject"


@dataclass(frozen=True, slots=True)
class Authentication:
    """What SPF, DKIM and DMARC say of the sender, and the policy that its domain publishes, if any."""

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
    """What reached a source's address. `fingerprint` is the same for the same message sent again.

    `authentication` is None when the message was refused before the sender was checked.
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
    """Which messages a list shows."""

    source: str | None = None
    status: MessageStatus | None = None
    fingerprint: str | None = None


@dataclass(frozen=True, slots=True)
class Envelope:
    """How a message came: who the other server says it is (`helo`), its address, and the return path (empty: none)."""

    sender: str
    peer: str
    helo: str


@dataclass(frozen=True, slots=True)
class File:
    """An attachment as it came; `content` is there when it is a data file, else `note` says what it is.

    `digest` is the content's SHA-256 in hexadecimal digits.
    """

    filename: str
    size: int
    content: bytes | None = None
    note: AttachmentNote | None = None
    digest: str = ""


@dataclass(frozen=True, slots=True)
class ReadMessage:
    """What a message says: one author (`sender`, an address), and its files in order."""

    sender: str
    subject: str
    message_id: str
    files: tuple[File, ...]

    @property
    def data(self) -> tuple[File, ...]:
        """The files that hold data."""
        return tuple(file for file in self.files if file.content is not None)


class MessageUnreadable(Exception):
    """The message is not one that can be read for certain; the text says why. `sender` and `subject` as far as known."""

    def __init__(self, why: str, sender: str = "", subject: str = "") -> None:
        super().__init__(why)
        self.sender, self.subject = sender, subject
