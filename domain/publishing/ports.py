"""Stores of publication runs, licences and a vendor's own catalogue."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from domain.catalogue.licences import Licence
from domain.kernel.paging import Page, PageRequest
from domain.publishing.model import (
    Assessment,
    CatalogueCounts,
    CatalogueImage,
    CatalogueVariant,
    PublicationKind,
    PublicationRun,
    VariantFilter,
)
from ports.unit_of_work import Store


class PublicationStore(Store[PublicationRun], Protocol):
    """Publication runs, and the tenant's own catalogue as its vendor sees it."""

    async def lock_creation(self) -> None:
        """Prevent other transactions from creating runs of this tenant until the transaction ends."""
        ...

    async def find_open_run(self) -> str | None:
        """Return the ID of the queued or running run, or None."""
        ...

    async def count_candidates(self, kind: PublicationKind, products: Sequence[str] | None) -> int:
        """Return the number of products whose visibility a run changes. `products` are the products to examine; None for all."""
        ...

    async def list_candidates(
        self, kind: PublicationKind, products: Sequence[str] | None, after: str, limit: int
    ) -> Sequence[str]:
        """Return up to `limit` IDs of products that come after the ID `after` and whose visibility a run changes, in order."""
        ...

    async def count_unshareable(self, products: Sequence[str] | None) -> int:
        """Return the number of unlisted products whose data must not leave the organisation."""
        ...

    async def count_catalogue(self) -> CatalogueCounts:
        """Return the numbers of products and variants."""
        ...

    async def get_assessment(self) -> Assessment | None:
        """Return the latest assessment of the catalogue, or None."""
        ...

    async def save_assessment(self, assessment: Assessment) -> None:
        """Replace the assessment of the catalogue."""
        ...

    async def list_documents(self, after: str, limit: int) -> Mapping[str, Mapping[str, Any]]:
        """Return up to `limit` decoded documents of products that come after the ID `after`, by ID."""
        ...

    async def list_variants(self, filter: VariantFilter, page_request: PageRequest) -> Page[CatalogueVariant]:
        """Return a page of variants, newest first; with the filter `missing` it may have fewer items than its limit."""
        ...

    async def list_images(self, page_request: PageRequest) -> Page[CatalogueImage]:
        """Return a page of stored images, newest first."""
        ...

    async def list_listed_products(self, after: str, limit: int) -> Sequence[str]:
        """Return up to `limit` IDs of listed products that come after the ID `after`, in order."""
        ...

    async def list_products_without_view(self, view: str, limit: int) -> Sequence[str]:
        """Return up to `limit` IDs of products with copies that have no document of the view."""
        ...


class LicenceStore(Protocol):
    """Licences to read the tenant's catalogue."""

    async def list_licences(self) -> Sequence[Licence]:
        """Return all licences, in the order of their creation."""
        ...

    async def save_licence(self, licence: Licence) -> None:
        """Store a licence; it replaces one of the same holder."""
        ...

    async def delete_licence(self, catalogue: str, holder: str) -> bool:
        """Delete a licence; return whether it existed."""
        ...

    async def set_view(self, view: str, groups: Sequence[str]) -> None:
        """Set the document view of all licences that have exactly these field groups."""
        ...
