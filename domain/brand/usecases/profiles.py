"""Use cases of vendor profiles: the directory, an organisation's own profile, and profiles from gathered data."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from domain.audit.ports import AuditLog
from domain.audit.resources import ResourceService
from domain.brand.domains import normalise_domain
from domain.brand.model import AUDITED_PROFILE_FIELDS, DirectoryFilter, ProfileStatus, VendorProfile
from domain.brand.names import MAX_SLUG_CHARS, build_slug, compute_brand_key
from domain.brand.ports import BrandRegistry, VendorProfileStore
from domain.kernel.errors import Conflict, InvalidRequest, NotFound, PermissionDenied
from domain.kernel.ids import new_id
from domain.kernel.names import MAX_NAME_CHARS, validate_name
from domain.kernel.paging import Page, PageRequest
from domain.kernel.resource import require_found, with_changes
from domain.orgs.model import Organisation
from domain.orgs.ports import OrgStore
from ports.unit_of_work import Tx

_SUFFIX_CHARS = 6
"""Number of characters that distinguish the slugs of profiles with the same name."""


def refuse_retailer(organisation: Organisation) -> None:
    """Raise PermissionDenied if the organisation is not a vendor."""
    if not organisation.is_vendor:
        raise PermissionDenied(
            "Only vendors have a profile and claims. Ask the operator if your organisation is a vendor."
        )


class ProfileService(ResourceService[VendorProfile]):
    """Use cases of vendor profiles. Only the holder changes a profile, and only until it is verified."""

    kind = VendorProfile
    prefix = "vnd"
    audited = AUDITED_PROFILE_FIELDS

    def __init__(self, registry: BrandRegistry) -> None:
        self._registry = registry

    def _store(self, tx: Tx) -> Any:
        return tx[VendorProfileStore]

    async def search(self, tx: Tx, filter: DirectoryFilter, page_request: PageRequest) -> Page[VendorProfile]:
        """Return a page of the profiles of all vendors that match the filter, newest first."""
        return await tx[VendorProfileStore].page(page_request, filter)

    async def get_own(self, tx: Tx) -> VendorProfile:
        """Return the organisation's own profile. Raises NotFound."""
        own = await tx[VendorProfileStore].find_own()
        if own is None:
            raise NotFound("Your organisation has no vendor profile. A vendor creates one with PATCH /v1/brand.")
        return own

    async def update_own(self, tx: Tx, changes: Mapping[str, Any]) -> VendorProfile:
        """Change the organisation's own profile, or create it; return the profile.

        Raises PermissionDenied for a retailer, Conflict for a verified profile or a brand that has another proven profile.
        """
        organisation = await tx[OrgStore].get_organisation()
        refuse_retailer(organisation)
        own = await tx[VendorProfileStore].find_own(lock=True)
        if own is None:
            return await self.create_own(tx, organisation, changes)
        _refuse_unchangeable(tx, own)
        return await self.update(tx, own.id, changes)

    async def create_own(self, tx: Tx, organisation: Organisation, changes: Mapping[str, Any]) -> VendorProfile:
        """Create the unverified profile of an organisation, by default with the organisation's name and no brands."""
        catalogue = organisation.get_catalogue_id(tx.tenant.livemode)
        held = {"status": ProfileStatus.CLAIMED, "holder": organisation.id, "catalogue": catalogue}
        name = " ".join(organisation.name.split())[:MAX_NAME_CHARS]
        return await self._create(tx, {"name": name, **changes}, held, changes.keys(), is_gathered=False)

    async def create_gathered(self, tx: Tx, values: Mapping[str, Any]) -> VendorProfile:
        """Create an unclaimed profile, held by the service, from data that the operator gathered."""
        held = {"status": ProfileStatus.UNCLAIMED, "holder": None}
        return await self._create(tx, values, held, values.keys(), is_gathered=True)

    async def delete(self, tx: Tx, id: str) -> None:
        """Delete the organisation's own unverified profile. Raises NotFound, Conflict."""
        _refuse_unchangeable(tx, await self.get(tx, id, lock=True))
        await super().delete(tx, id)

    async def merge(self, tx: Tx, id: str, into: str) -> tuple[VendorProfile, VendorProfile]:
        """Merge a duplicate profile into another one, which gets its brands; return both.

        The duplicate, which may have an unverified holder, is no longer found until `unmerge`. Raises NotFound, Conflict.
        """
        if id == into:
            raise Conflict("A profile cannot be merged into itself.")
        locked = {key: await self.get(tx, key, lock=True) for key in sorted((id, into))}
        duplicate, survivor = locked[id], locked[into]
        if duplicate.verified:
            raise Conflict("The first profile is verified. Merge in the other direction.")
        if await self._registry.count_pending(id):
            raise Conflict(f"Decide the pending claims to {id} first: `joinery claim list --status pending`.")
        merged = with_changes(duplicate, tx.now, merged_into=into)
        await tx[VendorProfileStore].save(merged)
        brands = tuple(dict.fromkeys((*survivor.brands, *duplicate.brands)))
        return merged, await self._save(tx, survivor, with_changes(survivor, tx.now, brands=brands))

    async def unmerge(self, tx: Tx, id: str) -> tuple[VendorProfile, VendorProfile]:
        """Undo a merge: the duplicate gets its brands back; return both. Raises NotFound, Conflict."""
        duplicate = require_found(await tx[VendorProfileStore].get(id, lock=True, merged=True))
        if duplicate.merged_into is None:
            raise Conflict("The profile is not merged.")
        survivor = await self.get(tx, duplicate.merged_into, lock=True)
        own_keys = set(map(compute_brand_key, duplicate.brands))
        brands = tuple(brand for brand in survivor.brands if compute_brand_key(brand) not in own_keys)
        after = await self._save(tx, survivor, with_changes(survivor, tx.now, brands=brands))
        restored = with_changes(duplicate, tx.now, merged_into=None)
        await tx[VendorProfileStore].save(restored)
        return restored, after

    async def _create(
        self,
        tx: Tx,
        values: Mapping[str, Any],
        held: Mapping[str, Any],
        names: Collection[str],
        *,
        is_gathered: bool,
    ) -> VendorProfile:
        id, service_catalogue = new_id(self.prefix), new_id("cat")
        derived = {"id": id, "slug": "", "is_gathered": is_gathered, "service_catalogue": service_catalogue}
        row = self._create_row(tx, {"catalogue": service_catalogue, **values, **held, **derived})
        row = await self._validate(tx, row, names)
        slug = build_slug(row.name)
        if await tx[VendorProfileStore].is_slug_taken(slug):
            slug = f"{slug[: MAX_SLUG_CHARS - _SUFFIX_CHARS - 1]}-{id[-_SUFFIX_CHARS:].lower()}"
        row = replace(row, slug=slug)
        await tx[VendorProfileStore].add(row)
        if tx.tenant.org:
            await tx[AuditLog].add(self.audited.describe_creation(row))
        return row

    def _with_derived_fields(self, before: VendorProfile, changes: dict[str, Any]) -> Mapping[str, Any]:
        """Mark a changed profile as the holder's own statements, which prove less than gathered data."""
        return changes | {"is_gathered": False} if changes else changes

    async def _validate(self, tx: Tx, row: VendorProfile, names: Collection[str]) -> VendorProfile:
        """Validate name, brands and domain. Raises InvalidRequest, and Conflict if a brand has another proven profile."""
        if tx.tenant.org:
            _refuse_unchangeable(tx, row)
        if "name" in names:
            row = replace(row, name=validate_name(row.name))
        if "website_domain" in names and row.website_domain is not None:
            row = replace(row, website_domain=normalise_domain(row.website_domain))
        if "brands" in names:
            row = replace(row, brands=_normalise_brands(row.brands))
            await self._refuse_taken_brands(tx, row)
        return row

    async def _refuse_taken_brands(self, tx: Tx, row: VendorProfile) -> None:
        holders = await tx[VendorProfileStore].find_proven_profiles(row.brands, besides=row.id)
        for place, brand in enumerate(row.brands):
            if other := holders.get(compute_brand_key(brand)):
                raise Conflict.for_field(
                    f"brands.{place}",
                    "invalid_value",
                    f"The brand has the profile {other}. If the brand is yours, claim that profile with POST /v1/brand/claims.",
                )

    async def _save(self, tx: Tx, before: VendorProfile, after: VendorProfile) -> VendorProfile:
        await self._store(tx).save(after)
        if tx.tenant.org:
            await tx[AuditLog].add(self.audited.describe_update(before, after))
        return after


def _refuse_unchangeable(tx: Tx, profile: VendorProfile) -> None:
    """Raise Conflict unless the profile is the organisation's own, and not verified."""
    if profile.holder != tx.tenant.org:
        raise Conflict("Your organisation does not hold this profile.")
    if profile.verified:
        raise Conflict("The profile is verified. Ask the operator to change its name, domain or brands.")


def _normalise_brands(brands: Collection[str]) -> tuple[str, ...]:
    """Return the brands without repeated spellings. Raises InvalidRequest for a brand without a letter or digit."""
    brand_by_key: dict[str, str] = {}
    for place, brand in enumerate(brands):
        key = compute_brand_key(brand)
        if not key:
            raise InvalidRequest.for_field(f"brands.{place}", "invalid_value", "Enter a name with letters or digits.")
        brand_by_key.setdefault(key, " ".join(brand.split()))
    return tuple(brand_by_key.values())
