"""Store of corrections."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from domain.catalogue.corrections import Correction
from domain.corrections.model import CorrectionBatch, CorrectionChange
from ports.unit_of_work import Store


class CorrectionStore(Store[Correction], Protocol):
    """Corrections of the tenant."""

    async def list_of_objects(self, objects: Sequence[str]) -> Sequence[Correction]:
        """Return the corrections of these products, variants and offers."""
        ...

    async def remove_all(self, ids: Sequence[str]) -> None:
        """Delete the corrections with these IDs."""
        ...

    async def find_product(self, object: str) -> str | None:
        """Return the product to which the source of a product, variant or offer assigns it; None if it does not exist."""
        ...

    async def find_visible_products(self, ids: Sequence[str]) -> Sequence[str]:
        """Return the products that readers see for these IDs; unknown IDs are omitted."""
        ...

    async def find_source(self, connector: str) -> str | None:
        """Return the ID of the oldest source with the connector, or None."""
        ...

    async def count_by_state(self) -> Mapping[str, int]:
        """Return the number of corrections about which sources state something else than when they were made, by FeedState."""
        ...

    async def list_people(self) -> Sequence[str]:
        """Return the IDs of people who made corrections."""
        ...

    async def list_fields(self) -> Sequence[str]:
        """Return the names of corrected fields."""
        ...

    async def add_changes(self, batch: str, changes: Sequence[CorrectionChange]) -> None:
        """Store what a bulk correction has changed, for undoing."""
        ...

    async def list_changes(self, batch: str, products: Sequence[str]) -> Sequence[CorrectionChange]:
        """Return what a bulk correction has changed in these products."""
        ...


class CorrectionBatchStore(Store[CorrectionBatch], Protocol):
    """Bulk corrections of the tenant."""
