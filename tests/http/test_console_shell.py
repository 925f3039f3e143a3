"""Console shell: access, form tokens, response headers and redirects."""

import asyncio
import gc
import gzip
import os
import re
import tempfile
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio

from domain.kernel.errors import InvalidRequest, PayloadTooLarge
from domain.orgs.ports import Memberships
from entrypoints.areas.registry import AREAS
from entrypoints.console.console import Console
from entrypoints.console.pages import PAGES
from entrypoints.console.request import ConsoleRequest, parse_query
from entrypoints.console.security import choose_safe_target
from entrypoints.http.body import IncomingBody
from entrypoints.http.exchange import Response
from entrypoints.http.pipeline import Pipeline
from entrypoints.operations.table import OperationTable
from tests.http.application import ApplicationHarness, run_application
from tests.http.browser import COOKIE, HOST, ConsoleBrowser

pytestmark = pytest.mark.asyncio
PLAIN = [page.path_pattern for page in PAGES if "GET" in page.methods and "<" not in page.path_pattern]


@pytest_asyncio.fixture
async def application() -> AsyncIterator[ApplicationHarness]:
    async with run_application() as application:
        yield application


async def test_pages_require_a_sign_in_that_returns_to_them(application: ApplicationHarness) -> None:
    signed_out = ConsoleBrowser(application.app)
    for rule in PLAIN:
        page = next(page for page in PAGES if page.path_pattern == rule)
        found = await signed_out.get(rule)
        if page.audience != "anybody":
            assert found.status == 303 and (found.header("location") or "").startswith("/console/sign-in"), rule
    found = await signed_out.get("/console/catalogue?q=oak%20table")
    assert found.header("location") == "/console/sign-in?next=/console/catalogue%3Fq%3Doak%2520table"
    for cookie in ("svc_session_nonsense", "x" * 9000, 'a"; b'):
        assert (await ConsoleBrowser(application.app, cookie).get("/console")).status == 303


async def test_every_page_has_its_headers_and_nothing_inline(application: ApplicationHarness) -> None:
    browser = await application.open_browser()
    for rule in [*PLAIN, "/console/nowhere"]:
        page = await browser.get(rule)
        page = await browser.follow(page) if page.status == 303 else page
        policy = page.header("content-security-policy") or ""
        for rule_of_it in (
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "frame-ancestors 'none'",
            "form-action 'self'",
            "base-uri 'none'",
        ):
            assert rule_of_it in policy
        assert "unsafe" not in policy
        assert page.header("x-content-type-options") == "nosniff" and page.header("cache-control") == "no-store"
        assert (
            page.header("referrer-policy") == "same-origin"
            and page.header("cross-origin-opener-policy") == "same-origin"
        )
        assert not re.search(r"<[^>]*\s(style|on[a-z]+)\s*=", page.text), rule
        assert not re.search(r"<script(?![^>]*\ssrc=)|<style|javascript:", page.text), rule
        for form in re.findall(r"<form[^>]*method=\"post\".*?</form>", page.text, re.S):
            assert 'name="csrf"' in form and 'name="submission_id"' in form, form


async def test_a_form_requires_its_sessions_token_and_origin(application: ApplicationHarness) -> None:
    browser, other = await application.open_browser(), await application.open_browser("Oak")
    page, foreign = await browser.get("/console"), await other.get("/console")
    assert (await browser.post("/console/theme", theme="dark")).status == 403
    assert (await browser.submit(foreign, "/console/theme", theme="dark")).status == 403
    for headers in (
        {"origin": "https://evil.test"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"origin": "", "sec-fetch-site": ""},
    ):
        refused = await browser.submit(page, "/console/theme", headers, theme="dark")
        assert refused.status == 403 and "Reload the page" in refused.text.replace("reload", "Reload"), headers
    assert (await browser.submit(page, "/console/theme", {"sec-fetch-site": ""}, theme="dark")).status == 303
    by_header = {"x-csrf": page.field("csrf"), "hx-request": "true"}
    changed = await browser.post("/console/theme", by_header, theme="light")
    assert changed.status == 200 and changed.header("hx-redirect") == "/console"


async def test_a_form_is_not_read_before_its_sender_is_known(application: ApplicationHarness) -> None:
    found = await ConsoleBrowser(application.app).post("/console/sign-out", csrf="x", submission_id="y")
    assert found.status == 303 and found.header("location") == "/console/sign-in"


async def test_signing_out_ends_the_session_on_browser_and_server(application: ApplicationHarness) -> None:
    browser = await application.open_browser()
    old = browser.cookies[COOKIE]
    gone = await browser.submit(await browser.get("/console"), "/console/sign-out")
    assert gone.header("location") == "/console/sign-in" and COOKIE not in browser.cookies
    assert '"cache"' in (gone.header("clear-site-data") or "")
    assert await application.sessions.find(old) is None


async def test_a_person_chooses_organisation_and_mode(application: ApplicationHarness) -> None:
    browser = await application.open_browser()
    oak = application.orgs["Oak"]
    assert (await browser.submit(await browser.get("/console"), "/console/switch", org=oak.id)).status == 404
    await application.add_member(browser.user, "Oak", "viewer")
    moved = await browser.submit(await browser.get("/console"), "/console/switch", org=oak.id)
    shown = await browser.follow(moved)
    assert "Oak" in shown.text and "Fjord" not in shown.text
    tested = await browser.submit(shown, "/console/switch", mode="test", next="/console/catalogue")
    assert tested.header("location") == "/console/catalogue"
    assert "Test mode" in (await browser.follow(tested)).text


async def test_a_page_that_fails_names_its_request(
    application: ApplicationHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: Any, **__: Any) -> None:
        raise ValueError("broken")

    browser = await application.open_browser()
    monkeypatch.setattr(type(application.dependencies[Memberships]), "list_organisations", broken)
    page = await browser.get("/console/organisations")
    assert page.status == 500 and "send the request ID below" in page.text
    assert (page.header("request-id") or "none") in page.text


async def test_a_person_without_an_organisation_sees_a_notice(application: ApplicationHarness) -> None:
    browser = await application.open_browser(None)
    page = await browser.get("/console")
    assert page.status == 403 and "open any organisation" in page.text
    assert (await browser.get("/console/organisations")).status == 200


async def test_the_menu_has_what_the_role_may_see(application: ApplicationHarness) -> None:
    seen = (await (await application.open_browser(role="viewer")).get("/console")).text
    assert 'href="/console/catalogue"' in seen
    billing = await application.open_browser(role="billing")
    assert 'href="/console/catalogue"' not in (await billing.get("/console")).text
    refused = await billing.get("/console/catalogue")
    assert refused.status == 403 and "role Owner, Admin, Developer, Editor, or Viewer" in refused.text


async def test_a_missing_page_has_a_404_page(application: ApplicationHarness) -> None:
    browser = await application.open_browser()
    lost = await browser.get("/console/nowhere/at/all")
    assert lost.status == 404 and "<nav" in lost.text
    signed_out = await ConsoleBrowser(application.app).get("/console/nowhere")
    assert signed_out.status == 404 and "<nav" not in signed_out.text
    assert (await browser.send("DELETE", "/console", b"", {})).status == 405
    assert (await browser.send("HEAD", "/console", b"", {})).body == b""


async def test_static_files_are_cached_and_compressed(application: ApplicationHarness) -> None:
    page = await (await application.open_browser()).get("/console")
    [style, *_] = re.findall(r'<link rel="stylesheet" href="([^"]+)"', page.text)
    found = await ConsoleBrowser(application.app).get(style, accept_encoding="gzip")
    assert (
        "immutable" in (found.header("cache-control") or "")
        and found.header("content-type") == "text/css; charset=utf-8"
    )
    assert b"--accent" in gzip.decompress(found.body)
    assert "immutable" not in (
        (await ConsoleBrowser(application.app).get("/console/static/0/console.css")).header("cache-control") or ""
    )
    for path in ("/console/static/x/../../console.py", "/console/static/x/..%2f", "/console/static/"):
        assert (await ConsoleBrowser(application.app).get(path)).status == 404
    for name in re.findall(r'(?:src|href)="(/console/static/[^"]+)"', page.text):
        assert (await ConsoleBrowser(application.app).get(name)).status == 200


async def test_redirects_lead_to_own_pages_only() -> None:
    for bad in (
        "https://evil.test/",
        "//evil.test",
        "/\\evil.test",
        "/console//evil.test",
        "/console/../x",
        "/v1/products",
        "javascript:x",
        "/console\n",
        "/consolex",
        "",
        "/console/\x00",
    ):
        assert choose_safe_target(bad) == "/console"
    for good in (
        "/console",
        "/console/catalogue?q=a%20b",
        "/oauth/authorize?client_id=x&redirect_uri=https://app.test/",
    ):
        assert choose_safe_target(good) == good


async def test_a_notice_is_shown_once_and_cannot_be_made_by_others(application: ApplicationHarness) -> None:
    browser = await application.open_browser()
    browser.cookies["joinery-notice"] = "0" * 32 + ".Z29vZDpIYWNrZWQ"
    assert "Hacked" not in (await browser.get("/console")).text
    gone = await browser.submit(await browser.get("/console"), "/console/sign-out")
    assert "You are signed out." in (await browser.follow(gone)).text
    assert "You are signed out." not in (await browser.follow(gone)).text


async def test_the_theme_is_stored(application: ApplicationHarness) -> None:
    browser = await application.open_browser()
    assert "data-theme" not in (await browser.get("/console")).text.partition("<body")[0]
    dark = await browser.follow(await browser.submit(await browser.get("/console"), "/console/theme", theme="dark"))
    assert 'data-theme="dark"' in dark.text
    plain = await browser.follow(await browser.submit(dark, "/console/theme", theme="system"))
    assert "data-theme" not in plain.text.partition("<body")[0]


def _create_receive(*parts: bytes) -> ConsoleRequest:
    pieces = list(parts)

    async def receive() -> Any:
        piece = pieces.pop(0)
        return {"type": "http.request", "body": piece, "more_body": bool(pieces)}

    headers = {"content-type": "multipart/form-data; boundary=edge"}
    return ConsoleRequest("POST", "/console/x", "", headers, "", IncomingBody(receive))


HEAD = b'--edge\r\nContent-Disposition: form-data; name="csrf"\r\n\r\ntok\xc3\xabn\r\n--edge\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\nContent-Type: text/csv\r\n\r\n'


async def test_a_form_with_files_is_limited() -> None:
    body = b"sku,price\r\n" * 300_000
    values, files = await _create_receive(HEAD, body[:1_000_000], body[1_000_000:], b"\r\n--edge--\r\n").read_form(
        8 << 20
    )
    assert values["csrf"] == "tokën" and files["file"].name == "a.csv" and files["file"].size == len(body)
    assert files["file"].file.read() == body
    with pytest.raises(PayloadTooLarge):
        await _create_receive(HEAD, body, b"\r\n--edge--\r\n").read_form(1 << 20)
    for broken in (
        [b"no form at all"],
        [HEAD],
        [b'--edge\r\nContent-Disposition: form-data; name="q"\r\n\r\n' + b"x" * (2 << 20), b"\r\n--edge--"],
    ):
        with pytest.raises((InvalidRequest, PayloadTooLarge)):
            await _create_receive(*broken).read_form(8 << 20)


def _build_form_scope(kind: str, *parts: bytes) -> ConsoleRequest:
    request = _create_receive(*parts)
    return replace(request, headers={"content-type": kind})


async def test_no_form_delays_others() -> None:
    plain, mixed = "application/x-www-form-urlencoded", "multipart/form-data; boundary=edge"
    disposition = b"--edge\r\nContent-Disposition: form-data"
    for refused in (
        _build_form_scope(
            plain, b"a=" + b"x" * (2 << 20)
        ),  # forms without files are limited on pages with uploads, too
        _build_form_scope(plain, b"a=" + b"%ff" * 5000),
        _build_form_scope(plain, b"a=" + b"\xff" * 5000),
        _build_form_scope(mixed, disposition + b"; a=b" * 3000 + b"\r\n\r\nv\r\n--edge--\r\n"),
        _build_form_scope(mixed, b"--edge\r\n" + b"X: y\r\n" * 3000 + b"\r\nv\r\n--edge--\r\n"),
        _build_form_scope(mixed, disposition + b'; name="' + b"a" * 9000, b'"\r\n\r\nv\r\n--edge--\r\n'),
        _build_form_scope(f"{mixed}{'; a=b' * 5000}".replace("=edge", "=" + "e" * 80)),
    ):
        with pytest.raises((InvalidRequest, PayloadTooLarge)):
            await refused.read_form(64 << 20)
    values, _ = await _build_form_scope(plain, b"a=" + b"%41" * 85_000 + b"&b=%00").read_form(64 << 20)
    assert values["a"] == "A" * 85_000 and values["b"] == "\ufffd"


async def test_an_anonymous_body_is_limited(application: ApplicationHarness) -> None:
    anonymous = ConsoleBrowser(application.app)
    page = await anonymous.get("/console/sign-in")
    assert (await anonymous.submit(page, "/console/sign-in", email="a@b.test", password="x" * 40_000)).status == 413


async def test_nul_characters_cause_no_server_error(application: ApplicationHarness) -> None:
    browser = await application.open_browser(role="owner")
    for place in ("/console/catalogue?brand=%00&status=%00", "/console/organisation/members?cursor=%00"):
        assert (await browser.get(place)).status < 500, place
    assert parse_query("a=x%00y")["a"] == "x\ufffdy"
    assert (await browser.send("GET", "/console/developers/keys/\0/revoke", b"", {})).status == 404


async def test_an_interrupted_upload_leaves_no_file(application: ApplicationHarness) -> None:
    browser = await application.open_browser("Elm")
    console = Console(application.dependencies, Pipeline(application.dependencies, OperationTable(AREAS)), PAGES)
    pieces, before = [HEAD, *[b"x" * 500_000] * 6], _list_unlinked_files()
    held: list[int] = []

    async def receive() -> Any:
        if pieces:
            return {"type": "http.request", "body": pieces.pop(0), "more_body": True}
        held.append(len(_list_unlinked_files()))
        return {"type": "http.disconnect"}

    headers = {"content-type": "multipart/form-data; boundary=edge", "origin": f"https://{HOST}", "host": HOST}
    request = ConsoleRequest(
        "POST",
        "/console/sources/new/file",
        "",
        headers,
        "",
        IncomingBody(receive),
        browser.cookies | {"joinery-notice": "x"},
    )
    gc.disable()  # it is released immediately, without garbage collection
    try:
        assert (await console.respond(request)).status == 400
        assert held == [len(before) + 1] and _list_unlinked_files() == before
    finally:
        gc.enable()


def _list_unlinked_files() -> list[str]:
    found = []
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            found.append(os.readlink(f"/proc/self/fd/{name}"))
    return sorted(one for one in found if one.startswith(tempfile.gettempdir()) and one.endswith("(deleted)"))


async def test_streams_require_get_and_are_limited_per_session(application: ApplicationHarness) -> None:
    browser, place = await application.open_browser("Elm"), "/console/developers/events/stream/all"
    async with asyncio.timeout(5):
        assert (await browser.send("HEAD", place, b"", {})).body == b""
    console = Console(application.dependencies, Pipeline(application.dependencies, OperationTable(AREAS)), PAGES)

    async def begun() -> Response:
        return await console.respond(
            replace(_create_receive(b""), method="GET", path=place, headers={}, cookies=browser.cookies)
        )

    responses = [await begun() for _ in range(8)]  # concurrently: none has been read yet
    streams = [response.stream for response in responses if response.stream is not None]
    first = [await anext(stream, None) for stream in streams]
    assert len([piece for piece in first if piece is not None]) == 6
    assert (await begun()).status == 204
    for stream in streams:
        await stream.aclose()
    assert (await begun()).status == 200
