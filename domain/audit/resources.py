"""List, create, read, update, delete and undo resources of one kind, with version check and audit entries."""

from collections.abc import Collection, Mapping
from typing import Any, ClassVar, Final, Generic, TypeVar

from domain.audit.model import Act, Audited
from domain.audit.ports import AuditLog
from domain.kernel.ids import new_id
from domain.kernel.paging import Filter, Page, PageRequest
from domain.kernel.resource import changed, differing, existing, fields_of, load, refuse_stale
from ports.unit_of_work import Tx

R = TypeVar("R")
NOTHING: Final[Mapping[str, Any]] = {}


class ResourceService(Generic[R]):
    """The resources of one kind of a tenant. What a kind does beyond this is a subclass's, by the methods named `_…`.

    Attributes:
        kind: the dataclass (`domain.kernel.resource`), with `id`, `version`, `created_at` and `updated_at`.
        prefix: of its ids.
        audited: what the audit log records of it.
    """

    kind: ClassVar[type]
    prefix: ClassVar[str]
    audited: ClassVar[Audited]

    def _store(self, tx: Tx) -> Any:
        """Return the Store[R], or one that gets, saves and pages like it."""
        return tx.store(self.kind)

    async def page(self, tx: Tx, request: PageRequest, filter: Filter | None = None) -> Page[R]:
        """Return a page of the tenant's resources, newest first."""
        page: Page[R] = await (self._store(tx).page(request, filter) if filter else self._store(tx).page(request))
        return page

    async def get(self, tx: Tx, id: str, *, lock: bool = False) -> R:
        """Return a resource. Raises NotFound."""
        row: R | None = await self._store(tx).get(id, lock=lock)
        return existing(row)

    async def create(self, tx: Tx, new: Mapping[str, Any]) -> R:
        """Create a resource from the fields of a body. Raises what `_complete` raises."""
        return await self._insert(tx, await self._with_defaults(tx, new), fields_of(self.kind).keys())

    async def _insert(self, tx: Tx, values: Mapping[str, Any], names: Collection[str]) -> R:
        """Make a row of the values, complete it, and write it with its audit entry."""
        row = await self._complete(tx, self._row(tx, values), names)
        await self._store(tx).add(row)
        await tx[AuditLog].add(self.audited.created(row))
        return row

    def _row(self, tx: Tx, values: Mapping[str, Any]) -> R:
        row: R = self.kind(**{"id": new_id(self.prefix), "created_at": tx.now, "updated_at": tx.now, **values})
        return row

    async def update(
        self,
        tx: Tx,
        id: str,
        changes: Mapping[str, Any],
        expected: int | None = None,
        exact: Mapping[str, Any] = NOTHING,
    ) -> R:
        """Change one; nothing is written where nothing differs.

        Args:
            tx: the transaction.
            id: of the resource.
            changes: what a body sets.
            expected: the version that it must be at; None for any.
            exact: fields that no body sets, for undoing.

        Raises:
            NotFound: there is none.
            PreconditionFailed: it is at another version.
        """
        before = await self.get(tx, id, lock=True)
        refuse_stale(before, expected)
        values = differing(before, {**self._derive(before, differing(before, changes)), **exact})
        if not values:
            return before
        return await self._save(tx, before, await self._complete(tx, changed(before, tx.now, **values), values.keys()))

    async def delete(self, tx: Tx, id: str) -> None:
        """Delete one. Raises NotFound."""
        row = await self.get(tx, id, lock=True)
        await self._store(tx).remove(id)
        await tx[AuditLog].add(self.audited.deleted(row))

    async def undo(self, tx: Tx, act: Act) -> None:
        """Restore every resource of this kind to its state before the act. Raises what the changes raise."""
        for entry, change in act.changes(self.audited.object):
            if change.action == "create":
                await self.delete(tx, change.id)
                continue
            names = change.before.keys() | change.after.keys()
            values = self._load({name: change.before.get(name) for name in self.audited.fields if name in names})
            if change.action == "delete":
                await self._restore(tx, change.id, values, entry)
                continue
            settable = {name for name, field in fields_of(self.kind).items() if field.is_settable}
            changes = {name: value for name, value in values.items() if name in settable}
            exact = {name: value for name, value in values.items() if name not in settable}
            await self._revert(tx, change.id, changes, exact, entry)

    def _load(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields of a resource that these values in the audit log stand for."""
        return load(self.kind, values)

    async def _with_defaults(self, tx: Tx, new: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return what a new resource is made of, with the defaults that its dataclass cannot state."""
        return new

    def _derive(self, before: R, changes: dict[str, Any]) -> Mapping[str, Any]:
        """Return the changes with what follows from them in other fields."""
        return changes

    async def _complete(self, tx: Tx, row: R, names: Collection[str]) -> R:
        """Refuse values of the fields `names` that the resource cannot have; return it with what follows from them."""
        return row

    async def _save(self, tx: Tx, before: R, after: R) -> R:
        """Write the new state with its audit entry."""
        await self._store(tx).save(after)
        await tx[AuditLog].add(self.audited.updated(before, after))
        return after

    async def _revert(self, tx: Tx, id: str, changes: Mapping[str, Any], exact: Mapping[str, Any], entry: str) -> None:
        """Undo a change that `entry` recorded: set the fields to what they were."""
        await self.update(tx, id, changes, exact=exact)

    async def _restore(self, tx: Tx, id: str, values: Mapping[str, Any], entry: str) -> None:
        """Undo a deletion that `entry` recorded."""
        await self._insert(tx, {**values, "id": id}, values.keys())
