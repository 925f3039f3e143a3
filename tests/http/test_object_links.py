"""Objects by signed links: PUT and GET, refusals, broken uploads."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import pytest_asyncio

from adapters.files.objects import FileObjects
from domain.secrets.keys import SigningKeys, derive_link_key
from ports.objects import ObjectMissing
from tests.http.application import BASE, ApplicationHarness, run_application

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def served(tmp_path: Path) -> AsyncIterator[tuple[ApplicationHarness, FileObjects]]:
    """Run an application that serves its own objects."""
    objects = FileObjects(tmp_path, BASE, SigningKeys(derive_link_key("a secret of at least thirty-two characters")))
    async with run_application(objects=objects) as application:
        yield application, objects


async def _sign_put(
    application: ApplicationHarness, objects: FileObjects, key: str = "uploads/a.csv", limit: int = 10
) -> str:
    until = application.clock.now() + timedelta(minutes=15)
    signed = await objects.sign_put(key, content_type="text/csv", max_bytes=limit, expires_at=until)
    return _build_target(signed.url)


def _build_target(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.path}?{parts.query}"


async def test_put_then_get(served: tuple[ApplicationHarness, FileObjects]) -> None:
    application, objects = served
    anonymous = application.build_client()
    link = await _sign_put(application, objects)
    put = await anonymous.send("PUT", link, body=b"a,b\n1,2\n", headers={"content-type": "text/csv"})
    assert put.status == 200
    until = application.clock.now() + timedelta(minutes=15)
    link = _build_target(await objects.sign_get("uploads/a.csv", filename="Möbel.csv", expires_at=until))
    got = await anonymous.get(link)
    assert (got.status, got.body) == (200, b"a,b\n1,2\n")
    assert got.headers["content-length"] == "8"
    assert got.headers["content-disposition"] == "attachment; filename*=UTF-8''M%C3%B6bel.csv"
    head = await anonymous.send("HEAD", link)
    assert (head.status, head.body, head.headers["content-length"]) == (200, b"", "8")


async def test_refusals(served: tuple[ApplicationHarness, FileObjects]) -> None:
    application, objects = served
    anonymous = application.build_client()
    link = await _sign_put(application, objects)
    csv = {"content-type": "text/csv"}
    assert (await anonymous.send("PUT", link, body=b"x", headers={"content-type": "text/plain"})).status == 415
    assert (await anonymous.send("PUT", link, body=b"x" * 11, headers=csv)).status == 413
    assert (await anonymous.send("PUT", link, body=b"x" * 11, headers=csv | {"content-length": ""})).status == 413
    assert (await anonymous.send("PUT", link + "0", body=b"x", headers=csv)).status == 403
    assert (await anonymous.send("PUT", link.replace("a.csv", "b.csv"), body=b"x", headers=csv)).status == 403
    assert (await anonymous.send("GET", link)).status == 403
    assert (await anonymous.send("POST", link, body=b"x", headers=csv)).status == 405
    with pytest.raises(ObjectMissing):
        await objects.get_size("uploads/a.csv")
    until = application.clock.now() + timedelta(minutes=15)
    missing = await anonymous.get(
        _build_target(await objects.sign_get("uploads/none.csv", filename="x", expires_at=until))
    )
    assert (missing.status, missing.code) == (404, "not_found")
    application.clock.advance(timedelta(minutes=15, seconds=45))
    assert (await anonymous.send("PUT", link, body=b"x", headers=csv)).status == 200, "clocks may differ"
    application.clock.advance(timedelta(seconds=15))
    expired = await anonymous.send("PUT", link, body=b"x", headers=csv)
    assert (expired.status, expired.code) == (403, "permission_denied")
    assert expired.headers["request-id"] == expired.json()["request_id"]


async def test_preflight(served: tuple[ApplicationHarness, FileObjects]) -> None:
    response = await served[0].build_client().send("OPTIONS", "/objects/anything")
    assert response.status == 204
    assert "PUT" in response.headers["access-control-allow-methods"]


async def test_an_interrupted_upload_leaves_nothing(served: tuple[ApplicationHarness, FileObjects]) -> None:
    application, objects = served
    path, _, query = (await _sign_put(application, objects)).partition("?")
    messages: list[Any] = [{"type": "http.disconnect"}, {"type": "http.request", "body": b"half", "more_body": True}]
    sent: list[Any] = []

    async def receive() -> Any:
        return messages.pop()

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http", "method": "PUT", "path": path, "raw_path": path.encode(), "query_string": query.encode(),
        "headers": [(b"content-type", b"text/csv")], "client": ("203.0.113.7", 1),
    }  # fmt: skip
    await application.app(scope, receive, send)
    assert sent == []
    with pytest.raises(ObjectMissing):
        await objects.get_size("uploads/a.csv")


async def test_without_an_object_server(application: ApplicationHarness) -> None:
    assert (await application.build_client().get("/objects/a?x=1")).status == 404


async def test_the_connection_is_free_after_the_last_chunk(served: tuple[ApplicationHarness, FileObjects]) -> None:
    """The server does not wait for a request body that it has received already, as it waits for the rest of refused ones."""
    application, objects = served
    link = await _sign_put(application, objects)
    await application.build_client().send("PUT", link, body=b"a,b\n", headers={"content-type": "text/csv"})
    until = application.clock.now() + timedelta(minutes=15)
    link = _build_target(await objects.sign_get("uploads/a.csv", filename="a.csv", expires_at=until))
    messages: list[Any] = [{"type": "http.request", "body": b"", "more_body": False}]
    sent: list[Any] = []

    async def receive() -> Any:
        return messages.pop() if messages else await asyncio.Event().wait()

    async def send(message: Any) -> None:
        await asyncio.sleep(0)
        sent.append(message)

    await application.build_client().connect(link, {}, receive, send)
    assert [message.get("more_body") for message in sent] == [None, True, False]
