"""Versions of agreements, acceptances, and the standing that follows from both (docs/agreements.md)."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Annotated

from domain.audit.model import AuditedFields
from domain.kernel.enums import StoredEnum
from domain.kernel.errors import InvalidRequest
from domain.kernel.resource import audited, optional
from domain.kernel.schema import boolean, enum, id_schema, integer, response_object, text, timestamp

MAX_TEXT_BYTES = 1 << 20
MAX_TITLE_CHARS = 200
MAX_SIGNER_CHARS = 200
"""Maximum number of characters of a signer's name and title."""
MAX_GRACE_DAYS = 365
SHA256_EXAMPLE = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"


class AgreementKind(StoredEnum):
    """Kind of an agreement. `vendor_data` permits the service to publish a vendor's data."""

    VENDOR_DATA = "vendor_data"


class AgreementStanding(StoredEnum):
    """Standing of an organisation with respect to an agreement."""

    ACCEPTED = "accepted"
    GRACE = "grace"
    REQUIRED = "required"
    UNPUBLISHED = "unpublished"

    @property
    def is_sufficient(self) -> bool:
        """True if the organisation may do what the agreement permits."""
        return self in (AgreementStanding.ACCEPTED, AgreementStanding.GRACE)


class AcceptanceMethod(StoredEnum):
    """Method by which an agreement was accepted."""

    CLICK = "click"


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """Published version of an agreement, the same for all organisations and both modes; never changed.

    Attributes:
        text: The text in Markdown, as `normalise_text` returns it.
        sha256: The SHA-256 hash of the text in UTF-8, in hexadecimal.
        grace_days: Number of days in which the acceptance of an earlier version is sufficient.
    """

    id: str
    kind: AgreementKind
    version: int
    title: str
    text: str
    sha256: str
    published_at: datetime
    grace_days: int

    @property
    def accept_by(self) -> datetime:
        """The time until which the acceptance of an earlier version is sufficient."""
        return self.published_at + timedelta(days=self.grace_days)


@dataclass(frozen=True, slots=True)
class Signer:
    """Person who accepted: the ID of the user, and the name and the title (function) that the person entered."""

    user: str
    name: str
    title: str


_SIGNER_SCHEMA = response_object(
    None,
    {
        "user": id_schema("usr"),
        "name": text("Ada Moreau", max_length=MAX_SIGNER_CHARS),
        "title": text("Managing director", max_length=MAX_SIGNER_CHARS),
    },
    description="Who accepted: the user, and the name and title as entered.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgreementAcceptance:
    """Acceptance of one version of an agreement by an organisation, with its evidence; never changed."""

    id: Annotated[str, id_schema("acc")]
    agreement: Annotated[str, audited(id_schema("agr", "The accepted version of the agreement."))]
    kind: Annotated[AgreementKind, audited(enum(*AgreementKind))]
    version: Annotated[int, audited(integer(1, minimum=1, description="Number of the accepted version."))]
    sha256: Annotated[
        str, audited(text(SHA256_EXAMPLE, max_length=64, description="SHA-256 hash of the accepted text."))
    ]
    signer: Annotated[Signer, audited(_SIGNER_SCHEMA)]
    authority_confirmed: Annotated[
        bool,
        audited(
            boolean(
                description="Whether the signer confirmed the authority to accept the agreement for the organisation."
            )
        ),
    ]
    method: Annotated[AcceptanceMethod, audited(enum(*AcceptanceMethod))] = AcceptanceMethod.CLICK
    ip: Annotated[str | None, audited(optional(text("203.0.113.7", description="IP address of the signer.")))] = None
    user_agent: Annotated[
        str | None, audited(optional(text("Mozilla/5.0", description="User-Agent header of the signer's browser.")))
    ] = None
    accepted_at: Annotated[datetime, audited(timestamp())]


AUDITED_ACCEPTANCE_FIELDS = AuditedFields.from_resource(AgreementAcceptance, "agreement_acceptance")


@dataclass(frozen=True, slots=True)
class NewAcceptance:
    """Request to accept a version of an agreement."""

    version: int
    sha256: str
    signer_name: str
    signer_title: str
    authority_confirmed: bool


@dataclass(frozen=True, slots=True)
class AgreementState:
    """Agreement as one organisation sees it.

    Attributes:
        newest: The newest version, or None if none is published.
        acceptance: The organisation's newest acceptance, or None.
    """

    kind: AgreementKind
    newest: Agreement | None
    acceptance: AgreementAcceptance | None
    standing: AgreementStanding


def compute_standing(
    newest: Agreement | None, acceptance: AgreementAcceptance | None, now: datetime
) -> AgreementStanding:
    """Return the standing of an organisation from the newest version and the organisation's newest acceptance."""
    if newest is None:
        return AgreementStanding.UNPUBLISHED
    if acceptance is None:
        return AgreementStanding.REQUIRED
    if acceptance.version >= newest.version:
        return AgreementStanding.ACCEPTED
    return AgreementStanding.GRACE if now < newest.accept_by else AgreementStanding.REQUIRED


def normalise_text(raw: bytes) -> str:
    r"""Return the text of an agreement from a file: without a byte order mark, with `\n` as line ends, and one at the end.

    Raises InvalidRequest if the file is empty, larger than MAX_TEXT_BYTES, or not plain text in UTF-8.
    """
    if len(raw) > MAX_TEXT_BYTES:
        raise InvalidRequest.for_field("text", "too_large", "The text must have at most 1 MiB. Shorten it.")
    try:
        decoded = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidRequest.for_field("text", "invalid_format", "The text must be UTF-8. Convert the file.") from None
    lines = decoded.replace("\r\n", "\n").replace("\r", "\n").strip("\n")
    if not lines.strip() or "\0" in lines:
        raise InvalidRequest.for_field("text", "invalid_value", "The file must contain text, without NUL characters.")
    return f"{lines}\n"


def compute_text_hash(text: str) -> str:
    """Return the SHA-256 hash of a text in UTF-8, in hexadecimal."""
    return sha256(text.encode()).hexdigest()
