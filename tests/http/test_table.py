"""The table finds what its rows say, and refuses rows that contradict one another."""

import pytest

from entrypoints.http.operation import Operation
from entrypoints.http.table import NOTHING, Table, whole
from tests.http.toys import OPERATIONS, read


def _row(id_: str, method: str, path: str) -> Operation:
    return Operation(id_, method, path, id_, read, None, None, "read" if method == "GET" else "write")


def test_every_row_is_found() -> None:
    table = whole()
    for row in table:
        path = row.path.replace("{", "x").replace("}", "x")
        found = table.find(row.method, path)
        assert found.route is not None
        assert found.route.operation is row


def test_static_wins_and_falls_back() -> None:
    rows = [_row("a", "GET", "/v1/x/{id}/y"), _row("b", "GET", "/v1/x/me/z"), _row("c", "POST", "/v1/x/me/y")]
    table = Table(rows)
    assert table.find("GET", "/v1/x/me/z").route.operation.id == "b"  # type: ignore[union-attr]
    assert table.find("GET", "/v1/x/me/y").ids == {"id": "me"}
    assert table.find("POST", "/v1/x/me/y").route.operation.id == "c"  # type: ignore[union-attr]
    assert table.find("PUT", "/v1/x/me/y").allowed == ("OPTIONS", "POST")


@pytest.mark.parametrize(
    "path", ["", "/", "/v1", "/v1/", "/v1/things//", "/v1/things/a/b/c", "//v1/things", "/v1/things/"]
)
def test_nothing_there(path: str) -> None:
    assert Table(OPERATIONS).find("GET", path) == NOTHING


def test_clashes_are_refused() -> None:
    with pytest.raises(ValueError, match="share the ids"):
        Table([_row("a", "GET", "/v1/a"), _row("a", "GET", "/v1/b")])
    with pytest.raises(ValueError, match="Two operations answer"):
        Table([_row("a", "GET", "/v1/a/{id}"), _row("b", "GET", "/v1/a/{other}")])
