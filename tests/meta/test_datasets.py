"""An organisation's export contains every list of the API, or states why not (entrypoints/datasets.py)."""

from collections import Counter

from entrypoints.areas.registry import AREAS
from entrypoints.datasets import _find_item_prefix

OPERATIONS = [row for area in AREAS for row in area.operations]
DATASETS = [row for row in OPERATIONS if row.dataset]


def _is_list(row: object) -> bool:
    reply = row.reply or {}
    return bool(reply.get("properties", {}).get("object", {}).get("const") == "list")


def test_every_list_is_a_dataset_or_has_a_reason_why_not() -> None:
    assert [row.id for row in OPERATIONS if _is_list(row) and not (row.dataset or row.no_dataset_reason)] == []


def test_datasets_are_reads_whose_owners_are_datasets_themselves() -> None:
    assert [name for name, count in Counter(row.dataset for row in DATASETS).items() if count > 1] == []
    owned = {_find_item_prefix(row) for row in DATASETS if not row.ids}
    assert all(row.method == "GET" and set(row.ids.values()) <= owned and len(row.ids) <= 1 for row in DATASETS)
    assert "products" in {row.dataset for row in DATASETS}, "what COPY copies"


def test_reading_them_takes_their_scopes() -> None:
    assert {row.scope for row in DATASETS if row.scope} == {
        "agents:read", "agreements:read", "audit:read", "billing:read", "brand:read", "org:read", "products:read", "proposals:read",
        "request_logs:read", "sources:read", "webhooks:read",
    }  # fmt: skip
