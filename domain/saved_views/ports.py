"""Port of the store of saved views."""

from collections.abc import Sequence
from typing import Protocol

from domain.saved_views.model import SavedView
from ports.unit_of_work import Store


class SavedViewStore(Store[SavedView], Protocol):
    """Store of the saved views of a tenant."""

    async def list_visible(self, person: str) -> Sequence[SavedView]:
        """Return the views of a person and the shared ones, by name."""
        ...

    async def count_of(self, person: str, is_shared: bool) -> int:
        """Return the number of shared views, or of a person's own ones."""
        ...

    async def delete_of_person(self, person: str) -> None:
        """Delete a person's own views and preferences. Shared views remain."""
        ...
