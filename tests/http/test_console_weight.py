"""Size limits of console pages with large data; omitted items are reachable by links."""

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from html import unescape

import pytest
import pytest_asyncio

from domain.people.model import AuthMethod
from domain.people.usecases.sessions import ClientInfo
from tests.http.browser import ConsoleBrowser
from tests.http.sources import SourceHarness, open_source_harness
from tests.http.test_console_pages import check_markup
from tests.support.console_large import OFFERS, VARIANTS, LargeOrganisation, create_large_organisation
from tests.support.console_paths import build_paths

MAX_PAGE_BYTES = 120_000
"""Bytes of a page, unpacked."""


@dataclass
class LargeConsole:
    """Browser of an owner of an organisation with large data."""

    sources: SourceHarness
    data: LargeOrganisation
    owner: ConsoleBrowser

    async def read_pages(self, place: str, link: str) -> list[str]:
        """Return the texts of a page and its successors, by next links that contain `link`."""
        texts = []
        while place:
            page = await self.owner.get(place)
            assert page.status == 200 and len(page.body) <= MAX_PAGE_BYTES, place
            self.sources.application.clock.advance(timedelta(seconds=1))
            texts.append(page.text)
            following = [unescape(one) for one in re.findall(r'rel="next" href="([^"]+)"', page.text) if link in one]
            place = place.partition("?")[0] + following[0].partition("#")[0] if following else ""
        return texts


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def harness() -> AsyncIterator[LargeConsole]:
    async with open_source_harness() as at:
        at.application.database.execute("UPDATE organisations SET kind = 'vendor'")  # vendors have all pages
        made = await create_large_organisation(at.application.dependencies, at.application.orgs["Fjord"], 1_500)
        _, cookie = await at.application.sessions.start(made.owner, [AuthMethod.PASSWORD], ClientInfo("203.0.113.7"))
        yield LargeConsole(at, made, ConsoleBrowser(at.application.app, cookie, made.owner))


@pytest.mark.asyncio(loop_scope="module")
async def test_every_page_is_within_the_size_limit(harness: LargeConsole) -> None:
    heavy, seen = {}, 0
    for place in build_paths(harness.data):
        harness.sources.application.clock.advance(timedelta(milliseconds=200))
        page = await harness.owner.get(place)
        assert page.status < 500, (place, page.status, page.text[-400:])
        seen += page.status == 200
        check_markup(page.text)
        if len(page.body) > MAX_PAGE_BYTES:
            heavy[place] = len(page.body)
    assert seen > 100 and not heavy, heavy


@pytest.mark.asyncio(loop_scope="module")
async def test_every_variant_and_offer_is_reachable(harness: LargeConsole) -> None:
    place = f"/console/catalogue/{harness.data.product.id}"
    variants = await harness.read_pages(place, "variants=")
    found = {name for text in variants for name in re.findall(r'<span class="mono">(OAK-\d+)</span>', text)}
    assert len(found) == VARIANTS
    offers = await harness.read_pages(place, "offers=")
    assert len({name for text in offers for name in re.findall(r"warehouse (\d+) at", text)}) == OFFERS


@pytest.mark.asyncio(loop_scope="module")
async def test_every_image_is_reachable(harness: LargeConsole) -> None:
    texts = await harness.read_pages(f"/console/catalogue/{harness.data.product.id}?part=pictures", "pictures=")
    found = {name for text in texts for name in re.findall(r'<img src="/console/pictures/img_(\d+)\?', text)}
    assert len(found) == 60


@pytest.mark.asyncio(loop_scope="module")
async def test_every_problem_is_reachable_as_text_and_in_the_sheet(harness: LargeConsole) -> None:
    few = harness.data.runs[1]
    groups = "".join(await harness.read_pages(f"/console/runs/{few.id}", "groups="))
    shown = []
    for link in dict.fromkeys(re.findall(r'href="(\?kind=[^"]+)#group"', groups)):
        shown += await harness.read_pages(f"/console/runs/{few.id}{unescape(link)}", "from=")
    assert len({key for text in shown for key in re.findall(r'class="mono">(OAK-\d+)<', text)}) == len(few.problems)
    sheets = await harness.read_pages(f"/console/runs/{few.id}/sheet", "from=")
    lines = {line for text in sheets for line in re.findall(r"line=(\d+)", text)}
    assert {str(one.line) for one in few.problems} <= lines


@pytest.mark.asyncio(loop_scope="module")
async def test_a_row_of_the_sheet_is_shown_completely(harness: LargeConsole) -> None:
    texts = await harness.read_pages(f"/console/runs/{harness.data.runs[0].id}/sheet?line=700", "from=")
    assert sum(text.count("<dt>") for text in texts) == 200


@pytest.mark.asyncio(loop_scope="module")
async def test_complete_events_and_audit_entries_are_reachable(harness: LargeConsole) -> None:
    event, entry = harness.data.event, harness.data.audited[0]
    shown = "".join(await harness.read_pages(f"/console/developers/events/{event.subject}/{event.id}", "from="))
    assert "attributes.field_39" in shown
    fields = "".join(await harness.read_pages(f"/console/organisation/audit/{entry}", "from="))
    assert len(set(re.findall(r"<code>(field_\d+)</code>", fields))) == 40
    other = await harness.sources.application.open_browser("Oak")
    for place in (f"/console/developers/events/{event.subject}/{event.id}", f"/console/organisation/audit/{entry}"):
        assert (await other.get(place)).status == 404


@pytest.mark.asyncio(loop_scope="module")
async def test_selected_columns_are_kept_across_pages_and_confirmed_together(harness: LargeConsole) -> None:
    mapping, owner = harness.data.mappings[1], harness.owner
    place = f"/console/mappings/{mapping.id}"
    first = await owner.get(place)
    changed = {"field.0.1": "Product name"}
    further = await owner.submit(first, place, **{"from": "50"}, **changed)
    assert further.status == 200 and 'name="field.0.50"' in further.text and len(further.body) <= MAX_PAGE_BYTES
    assert 'type="hidden" name="field.0.1" value="Product name"' in further.text
    kept = await owner.submit(further, place, **changed, **{"field.0.51": "brand"})
    assert kept.status == 303, kept.text
    stored = (await harness.sources.client.get(f"/v1/mappings/{mapping.id}")).json()
    fields = {column["position"]: column["field"] for column in stored["columns"]}
    assert (fields[1], fields[51]) == ("title", "brand")
    other = await harness.sources.application.open_browser("Oak")
    assert (await other.submit(await other.get("/console/sources/new"), f"{place}/preview")).status == 404
