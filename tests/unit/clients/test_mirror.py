"""The mirror beside answers that are none of the service's."""

from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from entrypoints.clients.python.runtime.async_core import AsyncCore
from entrypoints.clients.python.runtime.errors import UnreadableAnswer
from entrypoints.mirror.copies import opened
from entrypoints.mirror.replication import Mirror

pytestmark = pytest.mark.asyncio
NOTHING = {"data": [], "next_cursor": "c", "caught_up": True}


def service(products: Callable[[], httpx.Response]) -> httpx.MockTransport:
    """A service without exports and changes, whose pages of products are given."""

    def answer(request: httpx.Request) -> httpx.Response:
        match request.url.path:
            case "/v1/changes":
                return httpx.Response(200, json=NOTHING)
            case "/v1/products":
                return products()
        return httpx.Response(403, json={"code": "feature_unavailable"})

    return httpx.MockTransport(answer)


async def mirrored(path: Path, products: Callable[[], httpx.Response]) -> int:
    """Mirror the service once; return how many products the copy holds."""
    core = AsyncCore("http://x", "k", version="v", agent="tests", transport=service(products))
    async with httpx.AsyncClient() as files:
        with opened(path / "copy.sqlite") as copy:
            await Mirror(core, files, copy, lambda _: None, once=True).run()
            return copy.count()


@pytest.mark.parametrize("body", [b"<html>Sign in</html>", b'{"data": [{}], "has_more": false}', b"[]"])
async def test_pages_of_others_are_told(tmp_path: Path, body: bytes) -> None:
    with pytest.raises(UnreadableAnswer, match="not what the service answers"):
        await mirrored(tmp_path, lambda: httpx.Response(200, content=body))


async def test_a_page_without_a_cursor_is_the_last(tmp_path: Path) -> None:
    pages: Iterator[str] = iter(["prod_1"])  # a second page would raise StopIteration
    page = {"has_more": True, "next_cursor": None}
    assert await mirrored(tmp_path, lambda: httpx.Response(200, json={**page, "data": [{"id": next(pages)}]})) == 1
