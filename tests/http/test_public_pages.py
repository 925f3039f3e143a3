"""Public pages: built once under concurrent requests, and searches in their own thread."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from domain.kernel.errors import Overloaded
from entrypoints.api import pages
from entrypoints.api import pages as client_files
from entrypoints.api.pages import CLIENTS_PATH as PLACE
from entrypoints.api.pages import PublicPages
from entrypoints.http.representations import SingleThreadExecutor
from tests.support.built_site import build_site
from tests.support.operation_table import load_operation_table

ADDRESS = "https://api.joinery.test"


def run_concurrently(count, work):
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(lambda _: work(), range(count)))


@pytest.mark.parametrize("fails", [False, True])
def test_client_files_are_built_once(monkeypatch: pytest.MonkeyPatch, fails: bool) -> None:
    made, under_way, most, real = [], [], [], client_files.build_distribution

    def slowly(document):
        made.append(1)
        under_way.append(1)
        most.append(len(under_way))
        time.sleep(0.02)
        under_way.pop()
        if fails and len(made) == 1:
            raise OSError("the disk is full")
        return real(document)

    monkeypatch.setattr(client_files, "build_distribution", slowly)
    files = PublicPages(load_operation_table(), ADDRESS, ADDRESS)

    def request_file() -> int | None:
        try:
            found = files.find_response(PLACE + "joinery.postman_collection.json", "", "")
        except OSError:
            return None
        return found.status if found else 404

    responses = run_concurrently(8, request_file)
    assert len(made) == 1 + fails and max(most) == 1
    assert sorted(responses, key=str) == [200] * (8 - fails) + [None] * fails


@pytest.mark.parametrize("path", ["/openapi.json", "/docs/quickstart"])
def test_pages_are_built_once(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    build_site()
    rendered, real = [], PublicPages._render

    def counted(self, path):
        rendered.append(path)
        time.sleep(0.02)
        return real(self, path)

    monkeypatch.setattr(pages.PublicPages, "_render", counted)
    served = PublicPages(load_operation_table(), ADDRESS, ADDRESS)
    assert {response.status for response in run_concurrently(8, lambda: served.find_response(path, ""))} == {200}
    assert rendered == [path]


@pytest.mark.asyncio
async def test_requests_queued_for_the_thread_are_limited() -> None:
    go, thread = threading.Event(), SingleThreadExecutor("test", max_tasks=2)
    waiting = [asyncio.create_task(thread.run(go.wait)) for _ in range(2)]
    await asyncio.sleep(0)
    with pytest.raises(Overloaded) as refused:
        await thread.run(go.wait)
    assert refused.value.retry_after == 1
    go.set()
    assert await asyncio.gather(*waiting) == [True, True]
    assert await thread.run(go.wait)


@pytest.mark.asyncio
async def test_cancelled_requests_release_their_slot() -> None:
    go, thread = threading.Event(), SingleThreadExecutor("test", max_tasks=2)
    waiting = [asyncio.create_task(thread.run(go.wait)) for _ in range(2)]
    await asyncio.sleep(0)
    waiting[1].cancel()
    await asyncio.sleep(0)
    go.set()
    assert await waiting[0] and await thread.run(go.wait)


def test_the_front_page_leads_to_console_and_documentation() -> None:
    page = PublicPages(load_operation_table(), ADDRESS, ADDRESS).find_response("/", "")
    assert page is not None and page.status == 200
    text = page.body.decode()
    assert 'href="/console"' in text and 'href="/docs/quickstart"' in text and "<script" not in text
    policy = dict(page.headers)[b"content-security-policy"]
    assert b"font-src 'self'" in policy and b"unsafe-inline" not in policy
