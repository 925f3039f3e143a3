"""Use cases of all resources: list, create, read, update, delete and undo, with version check and audit entries."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Final, Generic, TypeVar

from domain.audit.model import AuditAct, AuditedFields
from domain.audit.ports import AuditLog
from domain.kernel.ids import new_id
from domain.kernel.paging import Filter, Page, PageRequest
from domain.kernel.resource import (
    convert_json_values,
    fields_of,
    require_found,
    require_version,
    select_differing,
    with_changes,
)
from ports.unit_of_work import Tx

R = TypeVar("R")
NOTHING: Final[Mapping[str, Any]] = {}


class ResourceService(Generic[R]):
    """Use cases of a tenant's resources of one type; subclasses override methods that start with an underscore.

    Attributes:
        kind: The resources' dataclass (`domain.kernel.resource`), with `id`, `version`, `created_at` and `updated_at`.
        prefix: The prefix of the resources' IDs.
        audited: The fields that the audit log records.
    """

    kind: ClassVar[type]
    prefix: ClassVar[str]
    audited: ClassVar[AuditedFields]

    def _store(self, tx: Tx) -> Any:
        """Return the store of the resources, a Store[R] or one with the same get, save and page methods."""
        return tx.store(self.kind)

    async def page(self, tx: Tx, request: PageRequest, filter: Filter | None = None) -> Page[R]:
        """Return a page of the tenant's resources, newest first."""
        page: Page[R] = await (self._store(tx).page(request, filter) if filter else self._store(tx).page(request))
        return page

    async def get(self, tx: Tx, id: str, *, lock: bool = False) -> R:
        """Return a resource. Raises NotFound."""
        row: R | None = await self._store(tx).get(id, lock=lock)
        return require_found(row)

    async def create(self, tx: Tx, new: Mapping[str, Any]) -> R:
        """Create a resource from the fields of a request body. Raises the errors of `_validate`."""
        return await self._insert(tx, await self._with_defaults(tx, new), fields_of(self.kind).keys())

    async def _insert(self, tx: Tx, values: Mapping[str, Any], names: Collection[str]) -> R:
        """Create a resource from the values, validate the fields `names`, and store the resource and an audit entry."""
        row = await self._validate(tx, self._create_row(tx, values), names)
        await self._store(tx).add(row)
        await tx[AuditLog].add(self.audited.describe_creation(row))
        return row

    def _create_row(self, tx: Tx, values: Mapping[str, Any]) -> R:
        row: R = self.kind(**{"id": new_id(self.prefix), "created_at": tx.now, "updated_at": tx.now, **values})
        return row

    async def update(
        self,
        tx: Tx,
        id: str,
        changes: Mapping[str, Any],
        expected_version: int | None = None,
        restored_values: Mapping[str, Any] = NOTHING,
    ) -> R:
        """Change a resource and return it; if no value differs, nothing is stored.

        Args:
            tx: The transaction.
            id: The ID of the resource.
            changes: New values of fields that request bodies can set.
            expected_version: The required version; None for any.
            restored_values: Previous values to restore, of fields that request bodies cannot set.

        Raises:
            NotFound: The resource does not exist.
            PreconditionFailed: The resource has another version.
        """
        before = await self.get(tx, id, lock=True)
        require_version(before, expected_version)
        values = select_differing(
            before, {**self._with_derived_fields(before, select_differing(before, changes)), **restored_values}
        )
        if not values:
            return before
        return await self._save(
            tx, before, await self._validate(tx, with_changes(before, tx.now, **values), values.keys())
        )

    async def delete(self, tx: Tx, id: str) -> None:
        """Delete a resource. Raises NotFound."""
        row = await self.get(tx, id, lock=True)
        await self._store(tx).remove(id)
        await tx[AuditLog].add(self.audited.describe_deletion(row))

    async def undo(self, tx: Tx, act: AuditAct) -> None:
        """Restore the resources of this type to their state before the act. Raises the errors of the use cases."""
        for entry, change in act.list_changes(self.audited.object):
            if change.action == "create":
                await self.delete(tx, change.id)
                continue
            names = change.before.keys() | change.after.keys()
            values = self._decode_recorded(
                {name: change.before.get(name) for name in self.audited.fields if name in names}
            )
            if change.action == "delete":
                await self._restore(tx, change.id, values, entry)
                continue
            settable = {name for name, field in fields_of(self.kind).items() if field.is_settable}
            changes = {name: value for name, value in values.items() if name in settable}
            restored_values = {name: value for name, value in values.items() if name not in settable}
            await self._revert(tx, change.id, changes, restored_values, entry)

    def _decode_recorded(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values that the audit log recorded, converted to the types of the resource's fields."""
        return convert_json_values(self.kind, values)

    async def _with_defaults(self, tx: Tx, new: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the values of a new resource, with defaults that depend on the tenant added."""
        return new

    def _with_derived_fields(self, before: R, changes: dict[str, Any]) -> Mapping[str, Any]:
        """Return the changes, with the new values of fields that depend on the changed fields added."""
        return changes

    async def _validate(self, tx: Tx, row: R, names: Collection[str]) -> R:
        """Validate the fields `names` of the resource; return the resource with its derived fields."""
        return row

    async def _save(self, tx: Tx, before: R, after: R) -> R:
        """Store the changed resource and an audit entry; return the resource."""
        await self._store(tx).save(after)
        await tx[AuditLog].add(self.audited.describe_update(before, after))
        return after

    async def _revert(
        self, tx: Tx, id: str, changes: Mapping[str, Any], restored_values: Mapping[str, Any], entry: str
    ) -> None:
        """Restore the field values from before an update.

        Args:
            tx: The transaction.
            id: The ID of the resource.
            changes: The previous values of fields that request bodies can set.
            restored_values: The previous values of other fields.
            entry: The ID of the audit entry that records the update.
        """
        await self.update(tx, id, changes, restored_values=restored_values)

    async def _restore(self, tx: Tx, id: str, values: Mapping[str, Any], entry: str) -> None:
        """Recreate the resource whose deletion the audit entry `entry` records, with the same ID."""
        await self._insert(tx, {**values, "id": id}, values.keys())


class SettingsService(ResourceService[R]):
    """Use cases of settings, of which a row is stored at the first change; until then, the defaults of the dataclass apply."""

    async def get(self, tx: Tx, id: str, *, lock: bool = False) -> R:
        """Return the settings, or the defaults if none are stored."""
        row: R = await self._store(tx).get(id, lock=lock) or self.kind(id=id)
        return row

    async def _save(self, tx: Tx, before: R, after: R) -> R:
        stored: Any = before
        if stored.created_at is not None:
            return await super()._save(tx, before, after)
        settings: Any = after
        after = replace(settings, created_at=tx.now)
        await self._store(tx).add(after)
        await tx[AuditLog].add(self.audited.describe_update(before, after))
        return after
