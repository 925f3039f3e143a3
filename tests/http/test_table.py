"""Operation table: lookup of rows and refusal of conflicting rows."""

from typing import Any, get_args, get_origin, get_type_hints

import pytest

from entrypoints.operations.operation import (
    Area,
    DetachedContext,
    DetachedRead,
    ExternalCall,
    Operation,
    Read,
    ReadContext,
    StreamContext,
    Write,
    WriteContext,
)
from entrypoints.operations.table import NO_MATCH, OperationTable
from tests.http.application import ApplicationHarness
from tests.http.example_area import AREA, read
from tests.support.operation_table import load_operation_table


def _build_row(id_: str, method: str, path: str) -> Operation:
    if method == "GET":
        return Read(id=id_, path=path, summary=id_, handler=read, scope=None, reply=None)
    return Write(id=id_, method=method, path=path, summary=id_, handler=read, scope=None, reply=None)


def _build_table(*rows: Operation) -> OperationTable:
    return OperationTable([Area(row.id, row.id, row.id, lambda _: None, (row,)) for row in rows])


def test_every_row_is_found() -> None:
    table = load_operation_table()
    for row in table:
        path = row.path.replace("{", "x").replace("}", "x")
        found = table.match_request(row.method, path)
        assert found.route is not None
        assert found.route.operation is row


def test_static_segments_precede_parameters() -> None:
    rows = [
        _build_row("a", "GET", "/v1/x/{id}/y"),
        _build_row("b", "GET", "/v1/x/me/z"),
        _build_row("c", "POST", "/v1/x/me/y"),
    ]
    table = _build_table(*rows)
    assert table.match_request("GET", "/v1/x/me/z").route.operation.id == "b"  # type: ignore[union-attr]
    assert table.match_request("GET", "/v1/x/me/y").ids == {"id": "me"}
    assert table.match_request("POST", "/v1/x/me/y").route.operation.id == "c"  # type: ignore[union-attr]
    assert table.match_request("PUT", "/v1/x/me/y").allowed_methods == ("OPTIONS", "POST")


@pytest.mark.parametrize(
    "path", ["", "/", "/v1", "/v1/", "/v1/things//", "/v1/things/a/b/c", "//v1/things", "/v1/things/"]
)
def test_unknown_paths_have_no_row(path: str) -> None:
    assert OperationTable([AREA]).match_request("GET", path) == NO_MATCH


def test_conflicting_rows_are_refused() -> None:
    with pytest.raises(ValueError, match="have the same ID"):
        _build_table(_build_row("a", "GET", "/v1/a"), _build_row("a", "GET", "/v1/b"))
    with pytest.raises(ValueError, match="Two operations have"):
        _build_table(_build_row("a", "GET", "/v1/a/{id}"), _build_row("b", "GET", "/v1/a/{other}"))


@pytest.mark.asyncio
async def test_handlers_receive_the_services_that_they_declare(application: ApplicationHarness) -> None:
    services = application.app.asgi_app._pipeline.services
    contexts = {Read: ReadContext, Write: WriteContext, DetachedRead: DetachedContext, ExternalCall: WriteContext}
    for row in load_operation_table():
        [given] = [kind for name, kind in get_type_hints(row.handler).items() if name != "return"]
        assert get_origin(given) is contexts.get(type(row), StreamContext), row.id
        [service] = get_args(given)
        if service is not Any:  # rows of a collection declare a method of their service instead
            assert isinstance(services[row.area], get_origin(service) or service), row.id
