"""What people type, or what pretends to be a browser sends, that is neither number, day nor JSON: refused, and never held up by."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from entrypoints.console.asked import whole_number
from entrypoints.console.pages.webhooks import moment_of
from entrypoints.console.schema_forms import settings_given
from entrypoints.console.asked import Values
from tests.http.browser import Browser, Page
from tests.http.fakes import World, running
from tests.http.sources import shop

pytestmark = pytest.mark.asyncio
LONG = "9" * 5000
NUMBERS = ("abc", "-1", LONG, "³", "1e900000", "NaN", "Infinity", "[" * 5000)


@pytest_asyncio.fixture
async def world() -> AsyncIterator[World]:
    async with running() as made:
        yield made


async def _send(browser: Browser, target: str, **fields: str) -> Page:
    return await browser.submit(await browser.get("/console/account"), target, **fields)


async def test_numbers_that_are_none_are_no_fault_of_ours() -> None:
    async with shop() as made:
        await _try_numbers(await made.world.browser(role="owner"))


async def _try_numbers(browser: Browser) -> None:
    made = await _send(browser, "/console/sources/new/push", name="Shop", currency="usd")
    source = (made.header("location") or "").rpartition("/")[2]
    for text in NUMBERS:
        for target, fields in (
            (f"/console/sources/{source}/settings", {"name": "Shop", "version": text}),
            (f"/console/sources/{source}/settings", {"name": "Shop", "interval_minutes": text}),
            (f"/console/sources/{source}/pause", {"version": text}),
            ("/console/judge", {"daily_budget": text, "auto_merge_at": text, "auto_dismiss_at": text}),
            ("/console/developers/webhooks/new", {"url": "https://shop.test/", "coalesce_seconds": text}),
            ("/console/developers/reference/sources.create", {"body.config": text}),
        ):
            sent = await _send(browser, target, **fields)
            assert sent.status < 500, (target, text[:10], sent.text)
        for place in (f"/console/sources/{source}/categories?from=", "/console/organisation/audit?limit="):
            assert (await browser.get(place + text[:4000])).status < 500, (place, text[:10])
    assert [whole_number(text) for text in ("0", "123456789", "1234567890", "³", "-1", "")] == [
        0,
        123456789,
        *[None] * 4,
    ]


async def test_a_number_of_settings_is_one_or_goes_on_as_text() -> None:
    schema = {"properties": {"page_size": {"type": "integer"}}}
    for text, value in (("12", 12), ("-3", -3), ("--3", "--3"), (LONG, LONG)):
        assert settings_given(schema, Values([("config.page_size", text)]), {}) == {"page_size": value}


async def test_the_last_day_there_is_has_no_day_after(world: World) -> None:
    browser = await world.browser(role="owner")
    for place in ("/console/organisation/audit?until=9999-12-31", "/console/organisation/audit?since=0001-01-01"):
        assert (await browser.get(place)).status < 500
    assert moment_of("0001-01-01T00:00:00+14:00") == "0001-01-01T00:00:00+14:00"


async def test_a_key_without_an_end_is_asked_for_as_such(world: World) -> None:
    browser = await world.browser(role="owner")
    for text in (LONG, "-1", "soon", "³"):
        sent = await _send(browser, "/console/developers/keys/new", name="k", what="all", expires=text)
        assert sent.status not in (201, 500), text[:5]


async def test_a_stranger_s_passkey_is_no_fault_of_ours(world: World) -> None:
    stranger = Browser(world.app)
    page = await stranger.get("/console/sign-in")
    async with asyncio.timeout(20):
        for answer in ("[" * 15_000, "{}", "null", '{"a":' * 3000):
            sent: Any = await stranger.submit(page, "/console/sign-in/passkey", answer=answer, challenge="x")
            assert sent.status < 500, answer[:5]
