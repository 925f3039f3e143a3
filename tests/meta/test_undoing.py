"""Every write says how it is undone, or why it cannot be, and the API's description says so too."""

import pytest

from entrypoints.operations.openapi import document
from entrypoints.operations.operation import Operation, Undoing
from tests.support.table import whole

TABLE = whole()
WRITES = [operation for operation in TABLE if operation.writes]


@pytest.mark.parametrize("operation", WRITES, ids=lambda row: row.id)
def test_every_write_says_whether_it_can_be_undone(operation: Operation) -> None:
    assert operation.undo is not None, "say how it is undone (Undoing), or in a sentence why it cannot be"
    sentence = operation.undo.how if isinstance(operation.undo, Undoing) else operation.undo
    assert sentence[0].isupper()
    assert sentence.endswith(".")


def test_reads_have_nothing_to_undo() -> None:
    assert not [operation.id for operation in TABLE if not operation.writes and operation.undo is not None]


def test_the_description_tells() -> None:
    paths = document(TABLE, "https://api.example", "https://docs.example")["paths"]
    for operation in WRITES:
        told = paths[operation.path][operation.method.lower()]
        assert told["x-undo"]["reversible"] is operation.reversible
        assert "be undone through the audit log" in told["description"]
