"""The operation table equals the contract of the API (operations.csv)."""

import csv
from collections.abc import Mapping
from pathlib import Path

import pytest

from entrypoints.operations.operation import Operation
from tests.support.operation_table import load_operation_table

ROWS = list(csv.DictReader(Path(__file__).with_name("operations.csv").open(encoding="utf-8")))
SPECIFIED = {(row["method"], row["path"]): row for row in ROWS}
OPERATIONS = tuple(load_operation_table())


def _name(operation: Operation) -> str:
    return operation.id


def test_the_list_is_complete() -> None:
    assert len(ROWS) == len(SPECIFIED) == 134


@pytest.mark.parametrize("operation", OPERATIONS, ids=_name)
def test_rows_match_the_contract(operation: Operation) -> None:
    row: Mapping[str, str] | None = SPECIFIED.get((operation.method, operation.path))
    assert row is not None, "the contract has no such operation"
    own_permission = "the change's own"
    assert (operation.scope or "") == ("" if row["scope"] == own_permission else row["scope"])
    assert operation.caller_kind == row["who"]
    assert operation.rate == row["rate_class"]
    assert operation.requires_idempotency_key == (row["idempotency"] == "required")
    assert (operation.method == "POST") == bool(row["idempotency"])
    assert (operation.paging or "") == row["paging"]
    assert operation.status == int(row["success"])


@pytest.mark.parametrize("operation", OPERATIONS, ids=_name)
def test_every_row_is_described(operation: Operation) -> None:
    assert operation.summary
    assert not operation.summary.endswith(".")
    assert operation.description
    parameters = {part[1:-1] for part in operation.path.split("/") if part.startswith("{")}
    assert set(operation.ids) <= parameters
    assert (operation.reply is None) == (operation.status == 204)


def test_only_operations_without_writes_need_no_idempotency_key() -> None:
    assert {
        path for (method, path), row in SPECIFIED.items() if method == "POST" and row["idempotency"] != "required"
    } == {
        "/v1/sources/{id}/test",
        "/v1/brand/invitations/preview",
    }


def test_agents_cannot_buy_credits() -> None:
    assert not [row.id for row in OPERATIONS if row.path.startswith("/v1/billing/credits") and row.agent]
