"""Vendor profiles, claims with their evidence, and claim invitations (docs/brand.md)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated

from domain.audit.model import AuditedFields
from domain.kernel.enums import StoredEnum
from domain.kernel.mail_addresses import normalise_mail_address
from domain.kernel.paging import Filter
from domain.kernel.resource import VERSION, audited, clearable, optional, settable
from domain.kernel.schema import (
    array,
    boolean,
    constant,
    enum,
    id_schema,
    response_object,
    text,
    timestamp,
    with_title,
)

MAX_BRANDS = 50
INVITATION_PREFIX = "svc_claim_"
"""Prefix of invitation codes."""
MAX_INVITATION_DAYS = 90
RECHECK_INTERVAL = timedelta(hours=24)
"""Interval between checks of the DNS records and site tags of approved claims."""
UNPROVEN_LIFETIME = timedelta(days=30)
"""Time after which a pending claim without any evidence is rejected."""
_HOST_EXAMPLE = "fjord.example"
_BRAND = text("Fjord", max_length=100)


class ProfileStatus(StoredEnum):
    """Kind of holder of a profile: the service, or a vendor organisation."""

    UNCLAIMED = "unclaimed"
    CLAIMED = "claimed"


@dataclass(frozen=True, slots=True, kw_only=True)
class VendorProfile:
    """Profile of a vendor: its name, brands and website. It has one row per mode.

    Attributes:
        holder: The organisation that holds the profile, which is never returned; None for the service.
        is_gathered: Whether the operator created the profile from gathered data, so that its domain and brands are not
            the holder's own statements.
        service_catalogue: The profile's catalogue ID while the service holds it.
        merged_into: The profile that the operator merged this one into, or None.
    """

    id: Annotated[str, id_schema("vnd")]
    name: Annotated[str, settable(text("Fjord Furniture", max_length=100), required=True)]
    slug: Annotated[str, text("fjord-furniture", description="Unique name for URLs, which never changes.")]
    brands: Annotated[
        tuple[str, ...],
        settable(
            array(_BRAND, max_items=MAX_BRANDS, description="Names of the vendor's brands.") | {"examples": [["Fjord"]]}
        ),
    ] = ()
    website_domain: Annotated[
        str | None,
        clearable(
            text(_HOST_EXAMPLE, max_length=253, description="Host name of the vendor's website, in lower case."),
            "The host name of the vendor's website; null removes it. International names are stored in their ASCII form.",
        ),
    ] = None
    status: Annotated[
        ProfileStatus,
        enum(*ProfileStatus)
        | {"description": "`unclaimed`: held by the service, from gathered data. `claimed`: held by a vendor."},
    ]
    verified: Annotated[bool, audited(boolean(True, "Whether a claim of the holder was approved."))] = False
    verified_at: Annotated[datetime | None, optional(timestamp())] = None
    catalogue: Annotated[str, audited(id_schema("cat"))]
    version: Annotated[int, VERSION] = 1
    created_at: Annotated[datetime, timestamp()]
    updated_at: Annotated[datetime, timestamp()]
    holder: str | None
    is_gathered: bool
    service_catalogue: str
    merged_into: str | None = None

    @property
    def is_proven(self) -> bool:
        """True if the profile is verified or from gathered data, and therefore reserves its brands."""
        return self.verified or self.is_gathered


AUDITED_PROFILE_FIELDS = AuditedFields.from_resource(VendorProfile, "vendor_profile", "status")


@dataclass(frozen=True, slots=True)
class DirectoryFilter(Filter):
    """Filter of the directory; None means any.

    Attributes:
        q: Words that the name or a brand must contain, with up to one wrong letter each.
        domain: The website's domain, or a domain that contains it.
    """

    q: str | None = None
    domain: str | None = None
    status: ProfileStatus | None = None
    verified: bool | None = None


class EvidenceKind(StoredEnum):
    """Kinds of evidence for a claim."""

    EMAIL_DOMAIN = "email_domain"
    DNS_TXT = "dns_txt"
    SITE_TAG = "site_tag"
    INVITATION = "invitation"
    DOCUMENT = "document"


class Grade(StoredEnum):
    """Grades of evidence, in ascending order."""

    NONE = "none"
    WEAK = "weak"
    STRONG = "strong"
    CONCLUSIVE = "conclusive"


class ClaimStatus(StoredEnum):
    """States of a claim."""

    PENDING = "pending"
    APPROVED = "approved"
    REJECTED = "rejected"
    WITHDRAWN = "withdrawn"
    REVOKED = "revoked"


class DecisionOutcome(StoredEnum):
    """Outcomes of a decision. After `review`, the operator decides."""

    APPROVED = "approved"
    REJECTED = "rejected"
    REVOKED = "revoked"
    REVIEW = "review"


@dataclass(frozen=True, slots=True)
class Challenge:
    """Proof that the vendor must publish: a DNS record (`record`, `name`, `value`), or a tag on the page at `url`."""

    record: str | None = None
    name: str | None = None
    value: str | None = None
    url: str | None = None
    tag: str | None = None


@dataclass(frozen=True, slots=True)
class ClaimEvidence:
    """Evidence for a claim.

    Attributes:
        value: The domain, address or text that the evidence is about; the ID of an invitation instead of its code.
        detail: What was seen at the last check, as a sentence.
        checked_at: Time of the last check, or None.
    """

    kind: EvidenceKind
    value: str
    grade: Grade = Grade.NONE
    detail: str = ""
    challenge: Challenge | None = None
    checked_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """Decision about a claim, by the service's rules or by the operator (`by` is `rules` or `operator`)."""

    outcome: DecisionOutcome
    by: str
    reason: str
    at: datetime


_CHALLENGE_SCHEMA = with_title(
    "claim_challenge",
    response_object(
        None,
        {
            "record": constant("TXT"),
            "name": text("_joinery.fjord.example"),
            "value": text("joinery-verification=3f2a"),
            "url": text("https://fjord.example/"),
            "tag": text('<meta name="joinery-verification" content="3f2a">'),
        },
        optional=("record", "name", "value", "url", "tag"),
        description="What to publish: a DNS record (`record`, `name`, `value`), or a tag (`tag`) in the page at `url`.",
    ),
)
_EVIDENCE_SCHEMA = with_title(
    "claim_evidence",
    response_object(
        None,
        {
            "kind": enum(*EvidenceKind),
            "value": text(
                _HOST_EXAMPLE,
                min_length=0,
                max_length=2000,
                description="The domain, address or text; of an invitation its ID instead of the code.",
            ),
            "grade": enum(*Grade),
            "detail": text("The record was found.", min_length=0, description="What was seen at the last check."),
            "challenge": _CHALLENGE_SCHEMA,
            "checked_at": timestamp(),
        },
        optional=("challenge", "checked_at"),
    ),
)
_DECISION_SCHEMA = with_title(
    "claim_decision",
    response_object(
        None,
        {
            "outcome": enum(*DecisionOutcome) | {"title": "claim_outcome"},
            "by": enum("rules", "operator"),
            "reason": text("The evidence is conclusive.", max_length=2000),
            "at": timestamp(),
        },
        description="The last decision. `review` means that the operator will decide.",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrandClaim:
    """Claim of a vendor organisation that a profile is its own.

    Attributes:
        checked_at: Time of the last check of all evidence, or None.
    """

    id: Annotated[str, id_schema("vcl")]
    profile: Annotated[str, audited(id_schema("vnd"))]
    status: Annotated[ClaimStatus, audited(enum(*ClaimStatus))] = ClaimStatus.PENDING
    evidence: Annotated[tuple[ClaimEvidence, ...], audited(array(_EVIDENCE_SCHEMA))]
    decision: Annotated[Decision | None, audited(optional(_DECISION_SCHEMA))] = None
    version: Annotated[int, VERSION] = 1
    created_at: Annotated[datetime, timestamp()]
    updated_at: Annotated[datetime, timestamp()]
    withdrawn_at: Annotated[datetime | None, optional(timestamp())] = None
    checked_at: datetime | None = None


AUDITED_CLAIM_FIELDS = AuditedFields.from_resource(BrandClaim, "brand_claim")


@dataclass(frozen=True, slots=True)
class EvidenceInput:
    """Evidence in the body that creates a claim; `value` may be empty where the profile's domain determines it."""

    kind: EvidenceKind
    value: str = ""


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """Body that creates a claim."""

    profile: str
    evidence: Sequence[EvidenceInput]


@dataclass(frozen=True, slots=True)
class ClaimInvitation:
    """Invitation of the operator to claim a profile, for one email address.

    Attributes:
        digest: Keyed hash of the code.
        claim: The claim in which the invitation was used, or None.
    """

    id: str
    profile: str
    email: str
    digest: bytes
    created_at: datetime
    expires_at: datetime
    claim: str | None = None
    revoked_at: datetime | None = None

    @property
    def email_key(self) -> str:
        """The invited email address, normalised for comparison."""
        return normalise_mail_address(self.email)

    def is_open(self, now: datetime) -> bool:
        """Return whether the invitation can still be used."""
        return self.claim is None and self.revoked_at is None and now < self.expires_at
