"""Use cases of claims: create, withdraw, and decide by the rules or the operator."""

import logging
import secrets
from dataclasses import replace
from typing import Any

from domain.access.model import is_well_formed_secret
from domain.access.usecases import AccessService
from domain.audit.ports import AuditLog
from domain.audit.resources import ResourceService
from domain.brand.domains import find_registrable_domain, normalise_domain
from domain.brand.grades import (
    Doubt,
    Observations,
    Ruling,
    create_challenge,
    grade_evidence,
    list_profile_doubts,
    measure_strength,
    rule,
)
from domain.brand.model import (
    AUDITED_CLAIM_FIELDS,
    AUDITED_PROFILE_FIELDS,
    INVITATION_PREFIX,
    UNPROVEN_LIFETIME,
    BrandClaim,
    ClaimEvidence,
    ClaimRequest,
    ClaimStatus,
    Decision,
    DecisionOutcome,
    EvidenceInput,
    EvidenceKind,
    Grade,
    ProfileStatus,
    VendorProfile,
)
from domain.brand.ports import BrandClaimStore, ClaimInvitationStore, VendorProfileStore
from domain.brand.usecases.profiles import refuse_retailer
from domain.events.model import Event
from domain.events.ports import EventLog
from domain.kernel.errors import Conflict, InvalidRequest, Unprocessable
from domain.kernel.paging import Filter, PageRequest
from domain.kernel.resource import require_found, with_changes
from domain.orgs.ports import OrgStore
from ports.unit_of_work import Tx

MAX_PENDING_CLAIMS = 20
"""Maximum number of pending claims of an organisation."""
RULES, OPERATOR = "rules", "operator"
_RECHECKED = frozenset({EvidenceKind.DNS_TXT, EvidenceKind.SITE_TAG})
"""Kinds of evidence of approved claims that are checked periodically."""
_LOG = logging.getLogger("joinery.brand")


class _PendingFilter(Filter):
    """Filter of pending claims."""

    def get_conditions(self) -> dict[str, Any]:
        return {"status": ClaimStatus.PENDING}


class ClaimService(ResourceService[BrandClaim]):
    """Use cases of the claims of a tenant. The profile is always locked before its claims."""

    kind = BrandClaim
    prefix = "vcl"
    audited = AUDITED_CLAIM_FIELDS

    def __init__(self, access: AccessService) -> None:
        self._access = access

    def _store(self, tx: Tx) -> Any:
        return tx[BrandClaimStore]

    async def create_claim(self, tx: Tx, request: ClaimRequest) -> BrandClaim:
        """Create a pending claim with the challenges of its evidence, which is not checked yet.

        Raises PermissionDenied for a retailer, Unprocessable for an unknown profile or evidence that cannot be checked,
        Conflict if the organisation has a verified profile or a pending claim to this one.
        """
        refuse_retailer(await tx[OrgStore].get_organisation())
        profile = await tx[VendorProfileStore].get(request.profile, lock=True)
        if profile is None:
            raise Unprocessable.for_field(
                "profile", "invalid_value", "There is no such profile. Search GET /v1/vendor-profiles."
            )
        own = await tx[VendorProfileStore].find_own()
        if own is not None and own.verified:
            raise Conflict(f"Your organisation already has the verified profile {own.id}, and can hold only one.")
        if pending := await tx[BrandClaimStore].lock_claims(profile.id, ClaimStatus.PENDING):
            raise Conflict(f"Your claim {pending[0].id} to this profile is pending. Check or withdraw it.")
        page = await tx[BrandClaimStore].page(PageRequest(MAX_PENDING_CLAIMS), _PendingFilter())
        if len(page.items) >= MAX_PENDING_CLAIMS:
            raise Conflict(f"{MAX_PENDING_CLAIMS} claims are pending, the maximum. Withdraw some first.")
        kinds = [item.kind for item in request.evidence]
        for place, kind in enumerate(kinds):
            if kind in kinds[:place]:
                raise InvalidRequest.for_field(
                    f"evidence.{place}.kind", "duplicate", "State each kind of evidence at most once."
                )
        evidence = [await self._build_evidence(tx, profile, item, place) for place, item in enumerate(request.evidence)]
        values = {"profile": profile.id, "evidence": tuple(evidence)}
        return await self._insert(tx, values, values.keys())

    async def get_pending(self, tx: Tx, id: str) -> BrandClaim:
        """Return a pending claim. Raises PermissionDenied for a retailer, NotFound, Conflict."""
        refuse_retailer(await tx[OrgStore].get_organisation())
        claim = await self.get(tx, id)
        _require_pending(claim)
        return claim

    async def withdraw(self, tx: Tx, id: str) -> BrandClaim:
        """Withdraw a pending claim. Raises NotFound, Conflict."""
        claim, _ = await self._lock(tx, id)
        _require_pending(claim)
        return await self._withdraw(tx, claim)

    async def _withdraw(self, tx: Tx, claim: BrandClaim) -> BrandClaim:
        withdrawn = with_changes(claim, tx.now, status=ClaimStatus.WITHDRAWN, withdrawn_at=tx.now)
        return await self._save(tx, claim, withdrawn)

    async def conclude(self, tx: Tx, id: str, observed: Observations) -> BrandClaim:
        """Grade the evidence of a pending claim by what was observed, and apply the decision table; return the claim.

        Raises NotFound, and Conflict if the claim is not pending.
        """
        claim, profile = await self._lock(tx, id)
        _require_pending(claim)
        if profile is None:
            return await self._decide(
                tx, claim, claim, DecisionOutcome.REJECTED, RULES, "The profile no longer exists."
            )
        evidence = [await self._grade(tx, item, profile, observed, claim) for item in claim.evidence]
        checked = replace(claim, evidence=tuple(evidence), checked_at=tx.now)
        strength, doubts = measure_strength(evidence), list_profile_doubts(profile, tx.tenant.org)
        if await tx[BrandClaimStore].has_rival(profile.id):
            doubts.insert(0, Doubt.RIVAL)
        if not profile.is_gathered and await self._is_taken(tx, profile):
            doubts.append(Doubt.TAKEN)
        ruling = rule(strength, doubts, is_expired=tx.now >= claim.created_at + UNPROVEN_LIFETIME)
        if ruling is Ruling.APPROVE:
            return await self._approve(tx, claim, checked, profile, RULES, f"The evidence is {strength}.")
        if ruling is Ruling.REJECT:
            reason = f"No evidence was found within {UNPROVEN_LIFETIME.days} days."
            return await self._decide(tx, claim, checked, DecisionOutcome.REJECTED, RULES, reason)
        if ruling is Ruling.REVIEW:
            reason = " ".join((f"The evidence is {strength}.", *doubts, "The operator will decide."))
            return await self._decide(tx, claim, checked, DecisionOutcome.REVIEW, RULES, reason)
        return await self._save(tx, claim, with_changes(checked, tx.now, decision=None))

    async def recheck(self, tx: Tx, id: str, observed: Observations) -> BrandClaim:
        """Check the published evidence of an approved claim again; lost evidence is reported for review.

        The claim stays approved, and the profile verified, until the operator decides.
        """
        claim, profile = await self._lock(tx, id)
        if claim.status is not ClaimStatus.APPROVED or profile is None:
            return claim
        evidence = tuple(
            [
                await self._grade(tx, item, profile, observed, claim) if item.kind in _RECHECKED else item
                for item in claim.evidence
            ]
        )
        checked = replace(claim, evidence=evidence, checked_at=tx.now)
        was_lost = claim.decision is not None and claim.decision.outcome is DecisionOutcome.REVIEW
        lost = [
            after for before, after in zip(claim.evidence, evidence, strict=True)
            if after.grade is Grade.NONE and (was_lost or before.grade is not Grade.NONE) and after.kind in _RECHECKED
        ]  # fmt: skip
        if lost and not was_lost:
            _LOG.warning("claim %s of organisation %s lost its evidence %s", id, tx.tenant.org, lost[0].kind)
            reason = " ".join(f"{item.kind}: {item.detail}" for item in lost)
            return await self._decide(tx, claim, checked, DecisionOutcome.REVIEW, RULES, reason)
        if was_lost and not lost:
            return await self._decide(
                tx, claim, checked, DecisionOutcome.APPROVED, RULES, "The evidence was found again."
            )
        await self._store(tx).save(checked)
        return checked

    async def approve(self, tx: Tx, id: str, reason: str) -> tuple[BrandClaim, str | None]:
        """Approve a pending claim as the operator; return the claim and the organisation that held the profile before.

        Raises NotFound, and Conflict if the claim is not pending, or another organisation's profile is verified.
        """
        claim, profile = await self._lock(tx, id)
        _require_pending(claim)
        profile = require_found(profile)
        former = profile.holder if profile.holder != tx.tenant.org else None
        if former is not None and profile.verified:
            raise Conflict("The profile is verified for another organisation. Revoke the approved claim to it first.")
        return await self._approve(tx, claim, claim, profile, OPERATOR, reason), former

    async def reject(self, tx: Tx, id: str, reason: str) -> BrandClaim:
        """Reject a pending claim as the operator. Raises NotFound, Conflict."""
        claim, _ = await self._lock(tx, id)
        _require_pending(claim)
        return await self._decide(tx, claim, claim, DecisionOutcome.REJECTED, OPERATOR, reason)

    async def revoke(self, tx: Tx, id: str, reason: str, *, is_released: bool = False) -> BrandClaim:
        """Revoke an approved claim as the operator: the profile is no longer verified.

        Args:
            tx: The transaction.
            id: The ID of the claim.
            reason: The reason, which the organisation can read.
            is_released: Whether the profile returns to the service, for example because its domain has a new owner.

        Raises:
            NotFound: There is no such claim.
            Conflict: The claim is not approved.
        """
        claim, profile = await self._lock(tx, id)
        if claim.status is not ClaimStatus.APPROVED:
            raise Conflict(f"The claim is {claim.status}, so there is no approval to revoke.")
        after = await self._decide(tx, claim, claim, DecisionOutcome.REVOKED, OPERATOR, reason)
        if profile is not None and profile.holder == tx.tenant.org:
            catalogue = profile.catalogue
            changes: dict[str, Any] = {"verified": False, "verified_at": None}
            if is_released:
                changes |= {
                    "status": ProfileStatus.UNCLAIMED,
                    "holder": None,
                    "catalogue": profile.service_catalogue,
                }
            changed = await self._save_profile(tx, profile, with_changes(profile, tx.now, **changes))
            await self._append_event(tx, "catalogue.unverified", catalogue, changed, id)
        return after

    @staticmethod
    async def _is_taken(tx: Tx, profile: VendorProfile) -> bool:
        """Return whether another proven profile has the profile's name or one of its brands."""
        names = (profile.name, *profile.brands)
        return bool(await tx[VendorProfileStore].find_proven_profiles(names, besides=profile.id))

    async def _lock(self, tx: Tx, id: str) -> tuple[BrandClaim, VendorProfile | None]:
        """Lock the claim's profile, then the claim. Raises NotFound."""
        profile = await tx[VendorProfileStore].get((await self.get(tx, id)).profile, lock=True)
        return await self.get(tx, id, lock=True), profile

    async def _build_evidence(self, tx: Tx, profile: VendorProfile, item: EvidenceInput, place: int) -> ClaimEvidence:
        """Return evidence with its challenge. Raises InvalidRequest, Unprocessable."""
        field, value = f"evidence.{place}.value", item.value.strip()
        if item.kind in (EvidenceKind.DOCUMENT, EvidenceKind.INVITATION) and not value:
            raise InvalidRequest.for_field(
                field, "required", "State the invitation's code, or a reference to the document."
            )
        if item.kind is EvidenceKind.DOCUMENT:
            return ClaimEvidence(item.kind, value)
        if item.kind is EvidenceKind.INVITATION:
            digest = self.compute_digest(value)
            invitation = await tx[ClaimInvitationStore].find_invitation(digest) if digest else None
            is_bound = invitation is not None and invitation.profile == profile.id
            return ClaimEvidence(item.kind, invitation.id if invitation is not None and is_bound else "")
        domain = profile.website_domain
        if domain is None:
            raise Unprocessable.for_field(
                field, "invalid_value", "The profile has no website domain. Use an invitation or a document."
            )
        if item.kind is EvidenceKind.EMAIL_DOMAIN:
            return ClaimEvidence(item.kind, domain)
        if value and normalise_domain(value, field) not in (domain, find_registrable_domain(domain)):
            raise Unprocessable.for_field(
                field,
                "invalid_value",
                f"Only the profile's own domain counts, {domain}. Omit the value, or state that domain.",
            )
        return ClaimEvidence(item.kind, domain, challenge=create_challenge(item.kind, domain, secrets.token_hex(16)))

    def compute_digest(self, code: str) -> bytes | None:
        """Return the keyed hash of an invitation code, or None if the text is not a code."""
        return self._access.compute_digest(code) if is_well_formed_secret(code, (INVITATION_PREFIX,)) else None

    async def _grade(
        self, tx: Tx, item: ClaimEvidence, profile: VendorProfile, observed: Observations, claim: BrandClaim
    ) -> ClaimEvidence:
        """Return the graded evidence, unchanged if it was not observed; an accepted invitation is marked as used."""
        if item.challenge is not None and not observed.covers(item.challenge):
            return item
        invitation = None
        if item.kind is EvidenceKind.INVITATION and item.value:
            invitation = await tx[ClaimInvitationStore].get_invitation(item.value)
        graded = grade_evidence(item, profile, observed, invitation, claim.id, tx.now)
        if invitation is not None and graded.grade is Grade.CONCLUSIVE and invitation.claim is None:
            await tx[ClaimInvitationStore].use_invitation(invitation.id, claim.id, tx.now)
        return graded

    async def _approve(
        self, tx: Tx, claim: BrandClaim, checked: BrandClaim, profile: VendorProfile, by: str, reason: str
    ) -> BrandClaim:
        """Approve the claim: the organisation holds the verified profile, which replaces its own unverified one."""
        organisation = await tx[OrgStore].get_organisation()
        own = await tx[VendorProfileStore].find_own(lock=True)
        if own is not None and own.id != profile.id:
            if own.verified:
                raise Conflict(f"The organisation already has the verified profile {own.id}, and can hold only one.")
            await self._remove_absorbed(tx, own)
        changed = with_changes(
            profile,
            tx.now,
            status=ProfileStatus.CLAIMED,
            verified=True,
            verified_at=tx.now,
            holder=organisation.id,
            catalogue=organisation.get_catalogue_id(tx.tenant.livemode),
        )
        await self._save_profile(tx, profile, changed)
        await self._append_event(tx, "catalogue.verified", changed.catalogue, changed, claim.id)
        return await self._decide(tx, claim, checked, DecisionOutcome.APPROVED, by, reason)

    async def _remove_absorbed(self, tx: Tx, own: VendorProfile) -> None:
        """Delete the organisation's unverified profile and withdraw the claims to it.

        Its brands are not moved, because nobody has proved them.
        """
        for pending in await tx[BrandClaimStore].lock_claims(own.id, ClaimStatus.PENDING):
            await self._withdraw(tx, pending)
        await tx[VendorProfileStore].remove(own.id)
        await tx[AuditLog].add(AUDITED_PROFILE_FIELDS.describe_deletion(own))

    async def _decide(
        self, tx: Tx, before: BrandClaim, checked: BrandClaim, outcome: DecisionOutcome, by: str, reason: str
    ) -> BrandClaim:
        """Store the decision about a claim; a review leaves its status unchanged."""
        is_repeated = (
            outcome is DecisionOutcome.REVIEW
            and before.decision is not None
            and (before.decision.outcome, before.decision.reason) == (outcome, reason)
        )
        decision = before.decision if is_repeated else Decision(outcome, by, reason, tx.now)
        status = before.status if outcome is DecisionOutcome.REVIEW else ClaimStatus(outcome.value)
        return await self._save(tx, before, with_changes(checked, tx.now, status=status, decision=decision))

    @staticmethod
    async def _save_profile(tx: Tx, before: VendorProfile, after: VendorProfile) -> VendorProfile:
        await tx[VendorProfileStore].save(after)
        await tx[AuditLog].add(AUDITED_PROFILE_FIELDS.describe_update(before, after))
        return after

    @staticmethod
    async def _append_event(tx: Tx, type: str, catalogue: str, profile: VendorProfile, claim: str) -> None:
        data = {"id": catalogue, "profile": profile.id, "claim": claim}
        await tx[EventLog].append([Event(type, catalogue, profile.version, data, catalogue=catalogue)])


def _require_pending(claim: BrandClaim) -> None:
    """Raise Conflict unless the claim is pending."""
    if claim.status is not ClaimStatus.PENDING:
        raise Conflict(f"The claim is {claim.status}. Only a pending claim can be checked, withdrawn or decided.")
