"""Corrections of single fields and of many products, and their undoing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from domain.audit.model import AuditAct, Change
from domain.audit.ports import AuditLog
from domain.catalogue.corrections import Correction, CorrectionAction, find_level
from domain.catalogue.usecases.writer import run_in_thread_if_large
from domain.corrections.model import (
    AUDITED_BATCH_FIELDS,
    MAX_PRODUCTS,
    BatchAction,
    BatchPreview,
    CorrectionBatch,
    CorrectionChange,
    CorrectionFilter,
    PreviewedChange,
    create_batch_job,
)
from domain.corrections.ports import CorrectionBatchStore, CorrectionStore
from domain.corrections.usecases.editing import CorrectionEditor
from domain.corrections.values import (
    FieldKind,
    check_value,
    compute_price,
    find_kind,
    require_correctable,
    restore_value,
    to_plain_value,
)
from domain.jobs.ports import JobStore
from domain.kernel.errors import Conflict, NotFound, Unprocessable
from domain.kernel.ids import new_id
from domain.kernel.paging import Page, PageRequest
from domain.kernel.resource import require_found
from ports.unit_of_work import Tx

_AUDITED = ("object", "field", "action", "value", "made_by")
_PREVIEWED_PRODUCTS = 100
_PREVIEWED_CHANGES = 20


@dataclass(frozen=True, slots=True)
class CorrectionService:
    """Use cases of corrections: values that people set, lock or clear."""

    async def page(self, tx: Tx, request: PageRequest, filter: CorrectionFilter) -> Page[Correction]:
        """Return a page of corrections, newest first."""
        return await tx[CorrectionStore].page(request, filter)

    async def count_by_state(self, tx: Tx) -> Mapping[str, int]:
        """Return the number of corrections about which sources state something else than when they were made, by FeedState."""
        return await tx[CorrectionStore].count_by_state()

    async def correct(self, tx: Tx, object: str, field: str, action: CorrectionAction, value: Any = None) -> bool:
        """Set, lock or clear one field of a product, variant or offer; return whether this changes anything.

        Args:
            tx: The transaction.
            object: The ID of the product, variant or offer.
            field: The field.
            action: The action.
            value: The value of an override, as in a pushed record.

        Raises:
            NotFound: The object does not exist.
            Unprocessable: The field cannot be corrected, or the value is invalid or contradicts others.
        """
        level = _find_level(object)
        require_correctable(level, field)
        checked = check_value(level, field, value) if action == CorrectionAction.OVERRIDE else None
        editor = await self._load(tx, object)
        editor.apply(object, field, action, checked)
        return await _save(tx, editor)

    async def override(self, tx: Tx, products: Sequence[str], values: Sequence[tuple[str, str, Any]]) -> None:
        """Set fields of products, or of their variants and offers, as one change.

        Args:
            tx: The transaction.
            products: The IDs of the products.
            values: The object, the field and the value of each override. A merged object stands for the one that is shown.

        Raises:
            NotFound: An object does not exist.
            Unprocessable: A field cannot be corrected, or a value is invalid or contradicts others.
        """
        editor = await CorrectionEditor.load(tx, products, tx.context.actor.responsible)
        for object, field, value in values:
            level = find_level(object)
            require_correctable(level, field)
            shown = editor.cluster.find_representative(object)
            editor.apply(shown, field, CorrectionAction.OVERRIDE, check_value(level, field, value))
        await _save(tx, editor)

    async def remove(self, tx: Tx, id: str) -> Correction:
        """Remove a correction, so that readers see what the sources state. Raises NotFound."""
        correction = require_found(await tx[CorrectionStore].get(id))
        editor = await self._load(tx, correction.object)
        editor.apply(correction.object, correction.field, "remove")
        if not await _save(tx, editor):  # removed meanwhile
            raise NotFound
        return correction

    async def remove_many(self, tx: Tx, ids: Sequence[str]) -> int:
        """Remove those of these corrections that still exist; return their number."""
        found = [one for id in ids if (one := await tx[CorrectionStore].get(id)) is not None]
        if not found:
            return 0
        editor = await CorrectionEditor.load(tx, sorted({one.product for one in found}), tx.context.actor.id)
        removed = sum(editor.apply(one.object, one.field, "remove") for one in found)
        await _save(tx, editor)
        return removed

    async def apply(
        self,
        tx: Tx,
        products: Sequence[str],
        field: str,
        action: BatchAction,
        value: Any = None,
        level: str = "product",
    ) -> CorrectionBatch:
        """Queue a correction of the same field of many products, or of all their variants or offers.

        Args:
            tx: The transaction.
            products: The IDs of 1 to MAX_PRODUCTS products; those that do not exist are ignored.
            field: The field.
            action: The action.
            value: For OVERRIDE, the value as in a pushed record; for ADJUST, a PriceAdjustment.
            level: `product`, `variant` or `offer`.

        Raises:
            Unprocessable: The field cannot be corrected, the value is invalid, or there are no products or too many.
        """
        checked = check_batch_value(level, field, action, value)
        return await _add_batch(tx, await select_products(tx, products), level, field, action, checked)

    async def get_batch(self, tx: Tx, id: str) -> CorrectionBatch:
        """Return a bulk correction. Raises NotFound."""
        return require_found(await tx[CorrectionBatchStore].get(id))

    async def preview(
        self,
        tx: Tx,
        products: Sequence[str],
        field: str,
        action: BatchAction,
        value: Any = None,
        level: str = "product",
    ) -> BatchPreview:
        """Return what a bulk correction would do with the first products; the caller must roll back.

        Raises the errors of `apply`.
        """
        checked = check_batch_value(level, field, action, value)
        examined = (await select_products(tx, products))[:_PREVIEWED_PRODUCTS]
        editor = await CorrectionEditor.load(tx, examined, tx.context.actor.id)
        return await run_in_thread_if_large(
            editor.cluster.size, lambda: _preview(editor, examined, level, field, action, checked)
        )

    async def undo(self, tx: Tx, act: AuditAct) -> None:
        """Undo the corrections of an audit act. A bulk correction is reversed by a job.

        Raises NotFound, Conflict if later changes prevent it, and Unprocessable if a previous value contradicts others now.
        """
        for _, change in act.list_changes("correction_batch"):
            if change.action == "create":
                await self._reverse_batch(tx, change.id)
        if changes := [change for _, change in act.list_changes("correction")]:
            await self._restore(tx, changes)

    async def _restore(self, tx: Tx, changes: Sequence[Change]) -> None:
        """Restore the corrections before some changes, of which the latest is first."""
        restored: list[tuple[Change, str, str]] = []
        products = set[str]()
        for change in changes:
            stored = await tx[CorrectionStore].get(change.id)
            recorded = _describe(stored) if stored else change.before
            if "object" not in recorded:
                raise Conflict("A correction was removed since. Undo its removal first.")
            object, field = recorded["object"], recorded["field"]
            products.add(require_found(await tx[CorrectionStore].find_product(object)))
            restored.append((change, object, field))
        editor = await CorrectionEditor.load(tx, sorted(products), tx.context.actor.id)
        for change, object, field in restored:
            current = editor.corrections.get(object).get(field)
            if current is not None and current.id != change.id:
                raise Conflict("The field has another correction now. Remove that correction first.")
            if change.action == "create":
                editor.restore(object, field, None)
                continue
            recorded = {**(_describe(current) if current else {}), **change.before}
            action = CorrectionAction(recorded["action"])
            value = (
                None
                if action == CorrectionAction.CLEAR
                else restore_value(find_level(object), field, recorded["value"])
            )
            editor.restore_values(object, field, change.id, action, value, recorded["made_by"])
        await _save(tx, editor)

    async def _reverse_batch(self, tx: Tx, id: str) -> None:
        batch = require_found(await tx[CorrectionBatchStore].get(id))
        if batch.is_open:
            raise Conflict("The bulk correction has not ended yet. Wait until it has.")
        await _add_batch(tx, batch.products, batch.level, batch.field, BatchAction.REVERSE, None, undoes=batch.id)

    async def _load(self, tx: Tx, object: str) -> CorrectionEditor:
        """Load the product of an object. Raises NotFound."""
        product = require_found(await tx[CorrectionStore].find_product(object))
        return await CorrectionEditor.load(tx, [product], tx.context.actor.id)


def _find_level(object: str) -> str:
    try:
        return find_level(object)
    except KeyError:
        raise NotFound from None


def check_batch_value(level: str, field: str, action: BatchAction, value: Any) -> Any:
    """Return the value of a bulk correction as it is stored. Raises Unprocessable."""
    require_correctable(level, field)
    if action == BatchAction.OVERRIDE:
        return check_value(level, field, value)
    if action == BatchAction.ADJUST and find_kind(field) != FieldKind.MONEY:
        raise Unprocessable.for_field(
            "action", "invalid_value", "Only prices can be changed by a percentage or an amount."
        )
    return value if action == BatchAction.ADJUST else None


async def select_products(tx: Tx, products: Sequence[str]) -> list[str]:
    """Return the existing products among these, in ascending order. Raises Unprocessable if there are none or too many."""
    if len(products) > MAX_PRODUCTS:
        detail = f"At most {MAX_PRODUCTS:,} products can be corrected at once. Select fewer products."
        raise Unprocessable.for_field("products", "too_many", detail)
    found = sorted(await tx[CorrectionStore].find_visible_products(list(dict.fromkeys(products))))
    if not found:
        raise Unprocessable.for_field(
            "products", "required", "None of the products exists. Select at least one product."
        )
    return found


def _preview(
    editor: CorrectionEditor, products: Sequence[str], level: str, field: str, action: BatchAction, value: Any
) -> BatchPreview:
    """Make a bulk correction of products in the editor, without storing it, and return what it changes."""
    unchanged, problems = 0, list[PreviewedChange]()
    for product in products:
        for object in editor.list_objects(product, level):
            shown = editor.get_shown_value(object, field)
            try:
                if not apply_action(editor, object, field, action, value, product):
                    unchanged += 1
            except Unprocessable as error:
                problems.append(PreviewedChange(product, object, shown, None, error.detail))
    changes = [
        PreviewedChange(one.product, one.object, editor.get_shown_value(one.object, field), _get_new_value(one))
        for one in editor.changes
    ]
    return BatchPreview(len(products), len(changes), unchanged, [*problems, *changes][:_PREVIEWED_CHANGES])


def apply_action(
    editor: CorrectionEditor, object: str, field: str, action: BatchAction, value: Any, product: str
) -> bool:
    """Make a bulk correction of one object; return whether this changes anything. Raises Unprocessable."""
    if action == BatchAction.ADJUST:
        shown = editor.get_shown_value(object, field)
        if shown is None:
            return False
        return editor.apply(object, field, BatchAction.OVERRIDE, compute_price(shown, value), product)
    if action == BatchAction.LOCK and editor.get_shown_value(object, field) is None:
        return False
    return editor.apply(object, field, action, value, product)


def _get_new_value(change: CorrectionChange) -> Any:
    correction = change.after
    if correction is not None:
        return correction.value
    return change.before.feed_value if change.before else None


async def _add_batch(
    tx: Tx,
    products: Sequence[str],
    level: str,
    field: str,
    action: BatchAction,
    value: Any,
    undoes: str | None = None,
) -> CorrectionBatch:
    batch = CorrectionBatch(
        id=new_id("cob"), level=level, field=field, action=action, value=value, products=tuple(products), undoes=undoes,
        made_by=tx.context.actor.id, created_at=tx.now, updated_at=tx.now,
    )  # fmt: skip
    await tx[CorrectionBatchStore].add(batch)
    await tx[AuditLog].add(AUDITED_BATCH_FIELDS.describe_creation(batch))
    await tx[JobStore].add(create_batch_job(batch, tx.tenant))
    return batch


async def _save(tx: Tx, editor: CorrectionEditor) -> bool:
    """Store the changes of single corrections with their audit entries; return whether there are any."""
    await editor.save()
    await tx[AuditLog].add_all([_describe_change(change) for change in editor.changes])
    return bool(editor.changes)


def _describe(correction: Correction) -> dict[str, Any]:
    """Return the audited fields of a correction as plain JSON; exact numbers are strings."""
    values = {name: to_plain_value(getattr(correction, name)) for name in _AUDITED}
    return {name: value for name, value in values.items() if value is not None}


def _describe_change(change: CorrectionChange) -> Change:
    before, after = (_describe(one) if one else {} for one in (change.before, change.after))
    action = "create" if change.before is None else "delete" if change.after is None else "update"
    id = (change.after or change.before).id  # type: ignore[union-attr]  # one of them exists
    if action != "update":
        return Change("correction", id, action, before, after)
    differing = {name for name in before | after if before.get(name) != after.get(name)}
    return Change(
        "correction",
        id,
        action,
        {name: value for name, value in before.items() if name in differing},
        {name: value for name, value in after.items() if name in differing},
    )
