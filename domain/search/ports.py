"""Store that computes the facets of stored products."""

from typing import Protocol


class FacetStore(Protocol):
    """Facets of the tenant's catalogue."""

    async def fill_facets(self, after: str, limit: int) -> str | None:
        """Write the facets, and the words of colours and finishes, of up to `limit` products that come after the ID `after`.

        Returns:
            The ID of the last product; None if no product follows.
        """
        ...
