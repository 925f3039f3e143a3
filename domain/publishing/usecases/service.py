"""The vendor's catalogue: state and completeness, publication runs, and visibility of single products."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from domain.agreements.model import AgreementKind, AgreementStanding
from domain.agreements.usecases.service import AgreementService
from domain.audit.model import AuditAct, Change
from domain.audit.ports import AuditLog
from domain.audit.resources import ResourceService
from domain.brand.ports import VendorProfileStore
from domain.catalogue.licences import EVERYONE, NETWORK_GROUPS
from domain.catalogue.model import Visibility
from domain.catalogue.ports import CatalogueStore, PublishedCopies
from domain.catalogue.publication import create_assessment_job
from domain.catalogue.usecases.publication import change_visibility
from domain.events.ports import EventLog
from domain.jobs.ports import JobStore
from domain.kernel.bounds import MIB
from domain.kernel.errors import BrandUnverified, Conflict, Unprocessable
from domain.kernel.ids import new_id
from domain.kernel.paging import Page, PageRequest
from domain.publishing.model import (
    AUDITED,
    Assessment,
    CatalogueCounts,
    CatalogueImage,
    CatalogueVariant,
    PublicationKind,
    PublicationRequest,
    PublicationRun,
    PublicationStatus,
    VariantFilter,
    VisibilityChange,
    VisibilityRequest,
    create_publication_job,
)
from domain.publishing.ports import LicenceStore, PublicationStore
from domain.publishing.usecases.licences import LicenceService, get_catalogue_id
from ports.unit_of_work import Tx

MAX_REQUEST_BYTES = 16 * MIB
"""Maximum size of the documents of the products whose visibility one request changes."""


@dataclass(frozen=True, slots=True)
class VendorCatalogue:
    """Catalogue of a vendor and its state.

    Attributes:
        published_at: When the catalogue was published; None if it is not published.
        last_run: The latest publication run, or None.
    """

    id: str
    published_at: datetime | None
    counts: CatalogueCounts
    assessment: Assessment | None
    last_run: PublicationRun | None
    profile: str | None = None
    agreement: AgreementStanding = AgreementStanding.UNPUBLISHED
    verified: bool = False


class PublishingService(ResourceService[PublicationRun]):
    """Use cases of a vendor's catalogue."""

    kind = PublicationRun
    prefix = "pub"
    audited = AUDITED
    _licensing = LicenceService()

    def _store(self, tx: Tx) -> Any:
        return tx[PublicationStore]

    async def get_catalogue(self, tx: Tx) -> VendorCatalogue:
        """Return the vendor's catalogue."""
        catalogue = await get_catalogue_id(tx)
        runs = await tx[PublicationStore].page(PageRequest(1))
        profile = await tx[VendorProfileStore].find_own()
        return VendorCatalogue(
            catalogue,
            await self._licensing.find_publication_time(tx),
            await tx[PublicationStore].count_catalogue(),
            await tx[PublicationStore].get_assessment(),
            runs.items[0] if runs.items else None,
            profile.id if profile else None,
            verified=profile is not None and profile.verified,
            agreement=await AgreementService().get_standing(tx, AgreementKind.VENDOR_DATA),
        )

    async def list_variants(self, tx: Tx, filter: VariantFilter, page_request: PageRequest) -> Page[CatalogueVariant]:
        """Return a page of the catalogue's variants."""
        return await tx[PublicationStore].list_variants(filter, page_request)

    async def list_images(self, tx: Tx, page_request: PageRequest) -> Page[CatalogueImage]:
        """Return a page of the catalogue's stored images."""
        return await tx[PublicationStore].list_images(page_request)

    async def publish(self, tx: Tx, request: PublicationRequest) -> PublicationRun:
        """Queue a run that lists products.

        Raises:
            BrandUnverified: The vendor profile is not verified.
            Conflict: The data agreement must be accepted first, or a run is open.
        """
        await _require_publishable(tx)
        run = await self._create_run(tx, PublicationKind.PUBLISH, request)
        await self._licensing.grant_to_everyone(tx)
        if tx.is_dry_run:
            tx.recorded.extra_previews["publication"] = await _preview(tx, run)
        return run

    async def withdraw(self, tx: Tx, request: PublicationRequest) -> PublicationRun:
        """Queue a run that withdraws products. Raises Conflict if a run is open."""
        return await self._create_run(tx, PublicationKind.WITHDRAW, request)

    async def withdraw_everything(self, tx: Tx) -> None:
        """Queue a run that withdraws all products, after the open run if there is one; nothing if none is published."""
        if await self._licensing.find_publication_time(tx) is not None:
            await self._add_run(tx, PublicationKind.WITHDRAW, None)

    async def _create_run(self, tx: Tx, kind: PublicationKind, request: PublicationRequest) -> PublicationRun:
        products = tuple(sorted(set(request["products"]))) if "products" in request else None
        await tx[PublicationStore].lock_creation()
        if (open_run := await tx[PublicationStore].find_open_run()) is not None:
            raise Conflict(f"The publication run {open_run} has not ended yet. Wait until it has.")
        return await self._add_run(tx, kind, products)

    async def _add_run(self, tx: Tx, kind: PublicationKind, products: tuple[str, ...] | None) -> PublicationRun:
        run = PublicationRun(
            id=new_id("pub"),
            kind=kind,
            status=PublicationStatus.QUEUED,
            products=products,
            total=await tx[PublicationStore].count_candidates(kind, products),
            created_at=tx.now,
            updated_at=tx.now,
        )
        await tx[PublicationStore].add(run)
        await tx[AuditLog].add(AUDITED.describe_creation(run))
        await tx[JobStore].add(create_publication_job(run, tx.tenant))
        return run

    async def set_visibility(self, tx: Tx, request: VisibilityRequest) -> VisibilityChange:
        """List or hide single products of a published catalogue.

        Raises:
            BrandUnverified: Products are to be listed, but the vendor profile is not verified.
            Conflict: The catalogue is not published, the data agreement is not accepted, or data of a product to list must not
                leave the organisation.
        """
        catalogue = await get_catalogue_id(tx)
        visibility = Visibility(request["visibility"])
        products = list(dict.fromkeys(request["products"]))
        before = await self._change_visibility(tx, catalogue, dict.fromkeys(products, visibility))
        found = before.keys()
        changed = [id for id, previous in before.items() if previous != visibility]
        return VisibilityChange(len(changed), len(found) - len(changed), [id for id in products if id not in found])

    async def undo_visibility(self, tx: Tx, act: AuditAct) -> None:
        """Restore the visibilities before the act, except of products whose visibility has changed since."""
        catalogue = await get_catalogue_id(tx)
        for _, change in act.list_changes("catalogue"):
            current = await self._find_visibilities(tx, list(change.after))
            restored = {
                id: Visibility(value) for id, value in change.before.items() if current.get(id) == change.after[id]
            }
            await self._change_visibility(tx, catalogue, restored)

    async def _find_visibilities(self, tx: Tx, products: Sequence[str]) -> dict[str, Visibility]:
        return {state.id: state.visibility for state in await tx[PublishedCopies].lock_states(sorted(products))}

    async def _change_visibility(
        self, tx: Tx, catalogue: str, visibility_by_product: dict[str, Visibility]
    ) -> dict[str, Visibility]:
        """Change the visibility of products; return the previous visibilities of all products that exist.

        Raises BrandUnverified; Conflict if a run is open, or products cannot be listed.
        """
        await tx[PublicationStore].lock_creation()
        sizes = await tx[PublishedCopies].measure(list(visibility_by_product))
        if sum(sizes.values()) > MAX_REQUEST_BYTES:
            detail = f"The products have more than {MAX_REQUEST_BYTES // MIB} MiB of data. Name fewer products."
            raise Unprocessable.for_field("products", "too_large", detail)
        if Visibility.LISTED in visibility_by_product.values():
            await _require_publishable(tx)
            if await self._licensing.find_publication_time(tx) is None:
                raise Conflict("The catalogue is not published. Publish the catalogue first.")
        await tx[CatalogueStore].lock_for_writing()
        before = await self._find_visibilities(tx, list(visibility_by_product))
        changed: set[str] = set()
        for visibility in sorted(set(visibility_by_product.values())):
            ids = [id for id in before if visibility_by_product[id] == visibility]
            outcome = await change_visibility(tx, ids, visibility)
            if outcome.unshareable:
                raise Conflict(
                    f"The product {outcome.unshareable[0]} has data that must not leave the organisation, because of the licence "
                    "basis of a source. Set another licence basis first."
                )
            await tx[EventLog].append(outcome.events)
            changed.update(outcome.changed)
        if changed:
            old = {id: before[id] for id in sorted(changed)}
            new = {id: visibility_by_product[id] for id in sorted(changed)}
            await tx[AuditLog].add(Change("catalogue", catalogue, "update", old, new))
            await tx[JobStore].add(create_assessment_job(tx.tenant))
        return before


async def _preview(tx: Tx, run: PublicationRun) -> dict[str, Any]:
    """Return what a run would make visible, to whom, and with which fields."""
    unshareable = await tx[PublicationStore].count_unshareable(run.products)
    return {
        "products": run.total - unshareable,
        "not_shareable": unshareable,
        "visible_to": "every organisation",
        "field_groups": sorted(NETWORK_GROUPS),
        "licences": [
            {"holder": licence.holder, "field_groups": sorted(licence.groups)}
            for licence in await tx[LicenceStore].list_licences()
            if licence.holder != EVERYONE
        ],
    }


async def _require_publishable(tx: Tx) -> None:
    """Raise BrandUnverified, or Conflict if the data agreement is not accepted."""
    profile = await tx[VendorProfileStore].find_own()
    if profile is None or not profile.verified:
        raise BrandUnverified
    standing = await AgreementService().get_standing(tx, AgreementKind.VENDOR_DATA)
    if not standing.is_sufficient:
        raise Conflict(
            "The data agreement is not accepted. An owner or admin must accept the newest version first."
            if standing != AgreementStanding.UNPUBLISHED
            else "The service has not published a data agreement yet. Ask the operator."
        )
