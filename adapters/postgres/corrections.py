"""Corrections in PostgreSQL."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from adapters.postgres.catalogue_rows import decode_data, encode_exactly
from adapters.postgres.session import encode_texts
from adapters.postgres.stores import fetch_all, fetch_scalar, load_statements
from adapters.postgres.table import ColumnCodec, Table, TableStore
from domain.catalogue.corrections import Correction
from domain.corrections.model import CorrectionBatch, CorrectionChange
from domain.corrections.ports import CorrectionBatchStore, CorrectionStore


def _create_json_codec(name: str) -> ColumnCodec:
    """Return the codec of a field that is stored as a text with exact numbers."""
    return ColumnCodec(name, _encode, decode_data)


def _encode(value: Any) -> str:
    return encode_exactly(value).decode()


CORRECTIONS = Table(
    Correction,
    "corrections",
    special_codecs={name: _create_json_codec(name) for name in ("value", "stated_value", "feed_value")},
    conflicts={"corrections_object": "The field has another correction. Reload the page and try again."},
)
CORRECTION_BATCHES = Table(CorrectionBatch, "correction_batches", special_codecs={"value": _create_json_codec("value")})
SQL = load_statements("corrections", correction=CORRECTIONS.build_column_list())


def _encode_correction(correction: Correction | None) -> str | None:
    """Return the columns of a correction as JSON; None for None."""
    return None if correction is None else _encode(CORRECTIONS.build_params(correction))


def _decode_correction(text: str | None) -> Correction | None:
    """Return the correction that `_encode_correction` has encoded."""
    if text is None:
        return None
    columns = decode_data(text)
    for name in ("feed_changed_at", "made_at", "created_at", "updated_at"):
        columns[name] = columns[name] and datetime.fromisoformat(columns[name])
    return CORRECTIONS.build_from_row(*(columns[name] for name in CORRECTIONS.stored_columns))


def _build_change(product: str, object: str, field: str, before: str | None, after: str | None) -> CorrectionChange:
    return CorrectionChange(product, object, field, _decode_correction(before), _decode_correction(after))


class PostgresCorrectionStore(TableStore[Correction], CorrectionStore):
    """Corrections of the tenant."""

    _sql, _table = SQL, CORRECTIONS
    find_product = fetch_scalar()
    find_source = fetch_scalar()
    list_people = fetch_all(str)
    list_fields = fetch_all(str)

    async def list_of_objects(self, objects: Sequence[str]) -> Sequence[Correction]:
        return await self._fetch_all(CORRECTIONS.build_from_row, "list_of_objects", ids=encode_texts(objects))

    async def remove_all(self, ids: Sequence[str]) -> None:
        await self._run("remove_all", ids=encode_texts(ids))

    async def find_visible_products(self, ids: Sequence[str]) -> Sequence[str]:
        return [id for (id,) in await self._fetch_rows("find_visible_products", ids=encode_texts(ids))]

    async def count_by_state(self) -> Mapping[str, int]:
        return dict(await self._fetch_rows("count_by_state"))

    async def add_changes(self, batch: str, changes: Sequence[CorrectionChange]) -> None:
        rows = [
            {
                "batch": batch,
                "product": change.product,
                "object": change.object,
                "field": change.field,
                "before": _encode_correction(change.before),
                "after": _encode_correction(change.after),
            }
            for change in changes
        ]
        await self._session.insert_all("correction_changes", rows)

    async def list_changes(self, batch: str, products: Sequence[str]) -> Sequence[CorrectionChange]:
        return await self._fetch_all(_build_change, "list_changes", batch=batch, ids=encode_texts(products))


class PostgresCorrectionBatchStore(TableStore[CorrectionBatch], CorrectionBatchStore):
    """Bulk corrections of the tenant."""

    _table = CORRECTION_BATCHES
