"""Invalid numbers, dates and JSON in forms are refused without delaying other requests."""

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from domain.access.model import ROLES
from entrypoints.console.context import ConsolePage
from entrypoints.console.pages import PAGES
from entrypoints.console.request import FormData, convert_to_utc, parse_whole_number
from entrypoints.console.source_forms import read_settings_form
from tests.http.application import ApplicationHarness, run_application
from tests.http.browser import BrowserPage, ConsoleBrowser
from tests.http.sources import open_source_harness

pytestmark = pytest.mark.asyncio
_FOREIGN = {"types": "all", "operation": "catalogue.list_products"}
_UNRESTRICTED = {"/console/sign-out", "/console/switch", "/console/theme", "/console/catalogue/views"}
_WITHOUT_SCOPE = (
    "/console/developers/reference", "/console/assistant", "/console/organisation/notifications", "/console/catalogue/views",
)  # fmt: skip
_OWN_DATA = (
    "/console/assistant",
    "/console/assistant/conversations",
    "/console/assistant/memories",
    "/console/organisation/notifications",
    "/console/organisation/notifications/new",
)
"""Pages of conversations, memories, preferences, and rules about notifications by email, which every member has."""
LONG = "9" * 5000
NUMBERS = ("abc", "-1", LONG, "³", "1e900000", "NaN", "Infinity", "[" * 5000)


@pytest_asyncio.fixture
async def application() -> AsyncIterator[ApplicationHarness]:
    async with run_application() as application:
        application.database.execute("UPDATE organisations SET kind = 'vendor'")  # vendors have all pages
        yield application


async def _send(browser: ConsoleBrowser, target: str, **fields: str) -> BrowserPage:
    return await browser.submit(await browser.get("/console/account"), target, **fields)


async def test_invalid_numbers_cause_no_server_error() -> None:
    async with open_source_harness() as harness:
        await _try_numbers(await harness.application.open_browser(role="owner"))


async def _try_numbers(browser: ConsoleBrowser) -> None:
    made = await _send(browser, "/console/sources/new/push", name="Shop", currency="usd")
    source = (made.header("location") or "").rpartition("/")[2]
    for text in NUMBERS:
        for target, fields in (
            (f"/console/sources/{source}/settings", {"name": "Shop", "version": text}),
            (f"/console/sources/{source}/schedule", {"interval_minutes": text, "version": text}),
            (f"/console/sources/{source}/schedule", {"frequency": text, "stock_interval_minutes": text}),
            (
                f"/console/sources/{source}/schedule",
                {"frequency": "custom", "times": text, "weekdays": text, "time_zone": text},
            ),
            (f"/console/sources/{source}/pause", {"version": text}),
            ("/console/judge", {"daily_budget": text, "auto_merge_at": text, "auto_dismiss_at": text}),
            ("/console/developers/webhooks/new", {"url": "https://shop.test/", "coalesce_seconds": text}),
            ("/console/developers/reference/sources.create", {"body.config": text}),
        ):
            sent = await _send(browser, target, **fields)
            assert sent.status < 500, (target, text[:10], sent.text)
        for place in (
            f"/console/sources/{source}/categories?from=",
            "/console/sources?from=",
            "/console/sources/scorecard?sort=",
            "/console/organisation/audit?limit=",
        ):
            assert (await browser.get(place + text[:4000])).status < 500, (place, text[:10])
    assert [parse_whole_number(text) for text in ("0", "123456789", "1234567890", "³", "-1", "")] == [
        0,
        123456789,
        *[None] * 4,
    ]


async def test_a_numeric_setting_is_parsed_or_kept_as_text() -> None:
    schema = {"properties": {"page_size": {"type": "integer"}}}
    for text, value in (("12", 12), ("-3", -3), ("--3", "--3"), (LONG, LONG)):
        assert read_settings_form(schema, FormData([("config.page_size", text)]), {}) == {"page_size": value}


async def test_the_latest_possible_date_is_accepted(application: ApplicationHarness) -> None:
    browser = await application.open_browser(role="owner")
    for place in ("/console/organisation/audit?until=9999-12-31", "/console/organisation/audit?since=0001-01-01"):
        assert (await browser.get(place)).status < 500
    assert convert_to_utc("0001-01-01T00:00:00+14:00") == "0001-01-01T00:00:00+14:00"


async def test_a_key_without_expiry_is_requested_explicitly(application: ApplicationHarness) -> None:
    browser = await application.open_browser(role="owner")
    for text in (LONG, "-1", "soon", "³"):
        sent = await _send(browser, "/console/developers/keys/new", name="k", scope_selection="all", expires=text)
        assert sent.status not in (201, 500), text[:5]


async def test_an_unknown_passkey_causes_no_server_error(application: ApplicationHarness) -> None:
    anonymous = ConsoleBrowser(application.app)
    page = await anonymous.get("/console/sign-in")
    async with asyncio.timeout(20):
        for response in ("[" * 15_000, "{}", "null", '{"a":' * 3000):
            sent: Any = await anonymous.submit(page, "/console/sign-in/passkey", credential=response, challenge="x")
            assert sent.status < 500, response[:5]


def _targets() -> list[tuple[str, str, ConsolePage]]:
    """List every page and method, with well-formed IDs of another tenant."""
    found = []
    for page in PAGES:
        if "/stream/" in page.path_pattern:
            continue  # an endless stream
        target = re.sub(r"<any\((\w+)[^>]*>", r"\1", page.path_pattern)
        target = re.sub(r"<(\w+)>", lambda name: _FOREIGN.get(name[1], "x_0352TOjGr8iGF1dXj5Qwyc"), target)
        found += [(method, target, page) for method in page.methods]
    return found


async def test_every_form_requires_its_token_and_origin(application: ApplicationHarness) -> None:
    browser, other = await application.open_browser(role="owner"), await application.open_browser("Oak", role="owner")
    foreign = await other.get("/console/account")
    own = await browser.get("/console/account")
    for method, target, page in _targets():
        if method != "POST" or page.has_signed_path:
            continue
        refused = [
            await browser.post(target),
            await browser.post(target, csrf=foreign.field("csrf")),
            await browser.submit(own, target, {"sec-fetch-site": "cross-site"}),
            await browser.submit(own, target, {"origin": "https://evil.test", "sec-fetch-site": ""}),
            await browser.submit(own, target, {"content-type": "text/plain"}),
        ]
        assert {one.status for one in refused} <= {400, 403}, (target, [one.status for one in refused])
        if page.audience != "anybody":
            assert (await ConsoleBrowser(application.app).post(target)).status == 303, target


async def test_no_page_exceeds_the_permissions_of_the_role(application: ApplicationHarness) -> None:
    for role in ("viewer", "billing"):
        browser = await application.open_browser(role=role)
        own = await browser.get("/console/account")
        for method, target, page in _targets():
            if page.scope is None or page.scope in ROLES[role]:
                continue
            found = await (browser.get(target) if method == "GET" else browser.submit(own, target))
            assert found.status == 403, (role, method, target, found.status)


async def test_a_viewer_is_shown_no_form_that_changes_anything(application: ApplicationHarness) -> None:
    browser = await application.open_browser(role="viewer")
    own = await browser.get("/console/account")
    for method, target, page in _targets():
        if method == "GET" and page.audience == "member" and "<" not in page.path_pattern and "stream" not in target:
            shown = await browser.get(target)
            places = re.findall(r'<form[^>]*method="post"[^>]*action="([^"]*)"', shown.text)
            assert target in _OWN_DATA or set(places) <= _UNRESTRICTED, (target, places)
        if method == "POST" and page.audience == "member" and not target.startswith(_WITHOUT_SCOPE):
            sent = await browser.submit(own, target, email="a@b.test", role="viewer")
            assert sent.status in (403, 404, 422), (target, sent.status)


async def test_no_page_fails_for_an_unknown_id(application: ApplicationHarness) -> None:
    browser = await application.open_browser(role="owner")
    own = await browser.get("/console/account")
    for method, target, page in _targets():
        if "<" not in page.path_pattern.replace("<any(", "") or page.audience != "member" or "reference/" in target:
            continue
        found = await (browser.get(target) if method == "GET" else browser.submit(own, target))
        assert found.status in (
            303,
            400,
            404,
            422,
            *((403,) if page.organisation_kind or target.endswith("/turns") else ()),
        ), (
            method,
            target,
            found.status,
        )


async def test_ids_cannot_inject_headers_or_redirects(application: ApplicationHarness) -> None:
    browser = await application.open_browser(role="owner")
    own = await browser.get("/console/account")
    for text in ("x\r\nSet-Cookie: a=b", "..", "?x=1", "#", "%2e%2e", "\\evil.test", '"><svg onload=x>'):
        for method, target, page in _targets():
            if "<" not in page.path_pattern.replace("<any(", ""):
                continue
            place = (
                re.sub(r"x_0352TOjGr8iGF1dXj5Qwyc", lambda _: text, target).replace("?", "\x01").replace("\x01", "%3F")
            )
            found = await (browser.get(place) if method == "GET" else browser.submit(own, place))
            assert found.status < 500, (method, place, found.status)
            assert "<svg onload" not in found.text and "a" not in browser.cookies, place
            led = found.header("location") or found.header("hx-redirect") or ""
            assert "\r" not in led and "\n" not in led, (place, led)
            assert all("\n" not in value for _, value in found.headers), place
