"""Every write operation states how it is undone or why it cannot be, also in the API description."""

import pytest

from entrypoints.operations.openapi import build_document
from entrypoints.operations.operation import Operation, UndoSupport
from tests.support.operation_table import load_operation_table

TABLE = load_operation_table()
WRITES = [operation for operation in TABLE if operation.is_write]


@pytest.mark.parametrize("operation", WRITES, ids=lambda row: row.id)
def test_every_write_states_whether_it_can_be_undone(operation: Operation) -> None:
    assert operation.undo is not None, "say how it is undone (Undoing), or in a sentence why it cannot be"
    sentence = operation.undo.description if isinstance(operation.undo, UndoSupport) else operation.undo
    assert sentence[0].isupper()
    assert sentence.endswith(".")


def test_reads_have_nothing_to_undo() -> None:
    assert not [operation.id for operation in TABLE if not operation.is_write and operation.undo is not None]


def test_the_description_states_whether_an_operation_can_be_undone() -> None:
    paths = build_document(TABLE, "https://api.example", "https://docs.example")["paths"]
    for operation in WRITES:
        described = paths[operation.path][operation.method.lower()]
        assert described["x-undo"]["reversible"] is operation.is_reversible
        assert "be undone through the audit log" in described["description"]
