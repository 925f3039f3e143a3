"""Saved views of the product list in PostgreSQL."""

from adapters.postgres.stores import fetch_all, fetch_scalar, load_statements
from adapters.postgres.table import Table, TableStore
from domain.saved_views.model import ListPreferences, SavedView
from domain.saved_views.ports import SavedViewStore

VIEWS = Table(SavedView, "saved_views")
LIST_PREFERENCES = Table(
    ListPreferences,
    "list_preferences",
    conflicts={"list_preferences_pkey": "Another request changed the preferences at the same time. Try again."},
)
SQL = load_statements("saved_views", view=VIEWS.build_column_list())


class PostgresSavedViewStore(TableStore[SavedView], SavedViewStore):
    """Store of the saved views of a tenant."""

    _sql, _table = SQL, VIEWS
    list_visible = fetch_all(VIEWS.build_from_row)
    count_of = fetch_scalar()

    async def delete_of_person(self, person: str) -> None:
        for statement in ("delete_own_views", "delete_preferences"):
            await self._run(statement, person=person)
