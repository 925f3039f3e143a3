"""Ports of the storage of profiles, claims and claim invitations."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from domain.brand.model import BrandClaim, ClaimInvitation, ClaimStatus, DirectoryFilter, VendorProfile
from domain.kernel.paging import Page, PageRequest
from domain.kernel.tenancy import Tenant
from ports.unit_of_work import Store


class VendorProfileStore(Protocol):
    """Storage of all vendor profiles of the session's mode. Merged profiles are only found if `merged` is set."""

    async def get(self, id: str, *, lock: bool = False, merged: bool = False) -> VendorProfile | None:
        """Return the profile, or None; `lock` locks it until the transaction ends."""
        ...

    async def find_own(self, *, lock: bool = False) -> VendorProfile | None:
        """Return the profile that the tenant's organisation holds, or None."""
        ...

    async def page(self, request: PageRequest, filter: DirectoryFilter) -> Page[VendorProfile]:
        """Return a page of the profiles that match the filter, newest first."""
        ...

    async def find_proven_profiles(self, names: Collection[str], *, besides: str) -> Mapping[str, str]:
        """Map the key of each name that is the name or a brand of a proven profile other than `besides` to its ID."""
        ...

    async def is_slug_taken(self, slug: str) -> bool:
        """Return whether a profile has the slug."""
        ...

    async def add(self, profile: VendorProfile) -> None:
        """Store a new profile with its search keys. Raises Conflict if it and another profile of a brand are proven."""
        ...

    async def save(self, profile: VendorProfile) -> None:
        """Store the changed profile and replace its search keys; a merged profile has none.

        Raises Conflict if it and another profile of a brand are proven.
        """
        ...

    async def remove(self, id: str) -> bool:
        """Delete a profile; return whether it existed."""
        ...


class BrandClaimStore(Store[BrandClaim], Protocol):
    """Storage of the tenant's claims."""

    async def has_rival(self, profile: str) -> bool:
        """Return whether another organisation has a pending claim to the profile with strong or conclusive evidence."""
        ...

    async def lock_claims(self, profile: str, status: ClaimStatus) -> Sequence[BrandClaim]:
        """Lock and return the tenant's claims to the profile that have this status."""
        ...


class ClaimInvitationStore(Protocol):
    """Storage of claim invitations of the session's mode, whose codes are known only as keyed hashes."""

    async def find_invitation(self, digest: bytes) -> ClaimInvitation | None:
        """Return the invitation whose code has that keyed hash, or None."""
        ...

    async def get_invitation(self, id: str) -> ClaimInvitation | None:
        """Return the invitation, or None."""
        ...

    async def add_invitation(self, invitation: ClaimInvitation) -> None:
        """Store a new invitation."""
        ...

    async def use_invitation(self, id: str, claim: str, now: datetime) -> bool:
        """Mark an open invitation as used in the claim; return False if it is not open."""
        ...

    async def revoke_invitation(self, id: str, now: datetime) -> bool:
        """Revoke an open invitation; return False if there is none."""
        ...


class BrandRegistry(Protocol):
    """Look-up of claims of all organisations, for operators and the scheduler."""

    async def list_claims(self, status: ClaimStatus | None, limit: int) -> Sequence[tuple[Tenant, BrandClaim]]:
        """Return the newest claims with the status (None: any), with their tenants."""
        ...

    async def find_claim(self, id: str) -> tuple[Tenant, BrandClaim] | None:
        """Return the claim with its tenant, or None."""
        ...

    async def list_due_claims(
        self, checked_before: datetime, created_before: datetime, limit: int
    ) -> Sequence[tuple[Tenant, BrandClaim]]:
        """Return the claims to check, with their tenants.

        These are approved claims that were last checked before `checked_before`, and pending claims from before
        `created_before` without a decision, that were last checked before `checked_before`.
        """
        ...

    async def count_pending(self, profile: str) -> int:
        """Return the number of pending claims to a profile."""
        ...

    async def find_open_invitation(self, digest: bytes, livemode: bool, now: datetime) -> ClaimInvitation | None:
        """Return the open invitation of the mode whose code has that keyed hash, or None."""
        ...
