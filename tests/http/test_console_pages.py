"""Console home and catalogue pages: content, permissions, use without scripts, and hostile texts."""

import re
from collections.abc import AsyncIterator
from html.parser import HTMLParser

import pytest
import pytest_asyncio

from domain.catalogue.model import Stream
from domain.media.ports import MediaStore
from domain.runs.ports import RunStore
from entrypoints.console.pages import PAGES
from entrypoints.console.products import sum_quantities
from tests.http.application import ApplicationHarness, run_application
from tests.http.sources import open_source_harness
from tests.support import builders
from tests.support.catalogues import add_image, add_products
from tests.support.console_seed import HOSTILE, SeededOrganisation, seed_console

pytestmark = pytest.mark.asyncio
VOID = {"br", "hr", "img", "input", "link", "meta", "circle", "line", "path", "rect"}


class MarkupChecker(HTMLParser):
    """Parser that fails on markup that a console page must not contain."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        assert len(given) == len(attrs), f"an attribute twice: {attrs}"
        assert tag not in ("iframe", "object", "base", "style", "x", "b"), tag
        assert not [
            name
            for name in given
            if name.startswith("on") or name == "style" or not re.fullmatch(r"[a-zA-Z0-9:-]+", name)
        ], attrs
        assert tag != "script" or (given.get("src") or "").startswith("/console/static/")
        for name in ("href", "src", "action"):
            assert not (given.get(name) or "").strip().lower().startswith(("javascript:", "data:", "vbscript:")), attrs
        if "id" in given:
            self.ids.append(given["id"] or "")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open and self.open.pop() == tag, f"</{tag}> closes nothing"

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")


def check_markup(text: str) -> None:
    parser = MarkupChecker()
    parser.feed(text)
    parser.close()
    assert not parser.open and len(parser.ids) == len(set(parser.ids)), (parser.open, parser.ids)


@pytest_asyncio.fixture
async def application() -> AsyncIterator[ApplicationHarness]:
    async with run_application() as application:
        yield application


def list_paths(made: SeededOrganisation) -> list[str]:
    """List the paths of all pages that show these objects."""
    plain = [
        page.path_pattern
        for page in PAGES
        if "GET" in page.methods
        and "<" not in page.path_pattern
        and page.path_pattern.startswith("/console/catalogue")
        and not page.path_pattern.endswith("/pdf")
    ]
    products = [f"/console/catalogue/{product.id}" for product in made.products]
    return ["/console", *plain, *products, *(f"{place}?part=history" for place in products[:3])]


async def test_no_text_breaks_out_of_any_page(application: ApplicationHarness) -> None:
    made = await seed_console(application, HOSTILE)
    browser = await application.open_browser(person=HOSTILE[0])
    for place in list_paths(made):
        page = await browser.get(place)
        assert page.status == 200, (place, page.text[-600:])
        check_markup(page.text)
        assert len(page.body) < 60_000
        policy = page.header("content-security-policy") or ""
        assert "*" not in policy and "evil" not in policy and policy.count("script-src") == 1
    for text in HOSTILE[:7]:
        from urllib.parse import quote

        page = await browser.get(
            f"/console/catalogue?q={quote(text)}&brand={quote(text)}&cursor={quote(text)}&variant={quote(text)}"
        )
        assert page.status == 200
        check_markup(page.text)


async def test_the_first_page_shows_what_needs_attention(application: ApplicationHarness) -> None:
    made = await seed_console(application)
    text = (await (await application.open_browser()).get("/console")).text
    assert ": Degraded" in text and f"/console/sources/{made.sources[1]}" in text and "It said Oak table" in text
    assert "https://receiver.example/&lt;b&gt; is failing" in text
    assert 'hx-get="/console/changes/summary"' in text
    strips = re.findall(r'<svg class="status-bars".*?</svg>', text, re.S)
    days = [re.findall(r'class="(good|warn|bad|none)"', strip)[-4:] for strip in strips]
    assert ["bad", "none", "warn", "good"] in days
    viewer = (await (await application.open_browser(role="billing")).get("/console")).text
    assert ": Degraded" not in viewer and "/console/changes" not in viewer


async def test_an_empty_organisation_is_guided_to_its_first_source(application: ApplicationHarness) -> None:
    assert 'href="/console/sources/new"' in (await (await application.open_browser()).get("/console")).text
    assert (
        'href="/console/sources/new"'
        not in (await (await application.open_browser(role="viewer")).get("/console")).text
    )


async def test_products_are_found_with_and_without_a_script(application: ApplicationHarness) -> None:
    await seed_console(application, ("Oak table", "Walnut chair", "Oak bench"))
    browser = await application.open_browser()
    whole = await browser.get("/console/catalogue?q=oak")
    assert "Oak bench" in whole.text and "Walnut chair" not in whole.text and "<nav" in whole.text
    part = await browser.get("/console/catalogue?q=oak", hx_request="true", hx_target="results")
    assert part.text.startswith('<section id="results"') and "Oak bench" in part.text and "<aside" not in part.text
    filters = await browser.get("/console/catalogue?q=oak", hx_request="true", hx_target="filters")
    assert filters.text.lstrip().startswith('<aside id="filters"') and "Oak bench</a>" not in filters.text
    assert "HX-Request" in (part.header("vary") or "")
    assert "No products found" in (await browser.get("/console/catalogue?q=nothing")).text
    for q in ("o", "--", "a b c d e f g h i j"):
        assert (await browser.get(f"/console/catalogue?q={q.replace(' ', '+')}")).status == 200


async def test_filters_show_counts_and_narrow_the_list(application: ApplicationHarness) -> None:
    await seed_console(application, ("Oak table", "Oak table", "Walnut chair"))
    browser = await application.open_browser()
    text = (await browser.get("/console/catalogue")).text
    assert re.search(
        r'name="brand" value="Oak table" form="list-form"><span>Oak table</span><span class="count numbers">2<', text
    )
    narrowed = (await browser.get("/console/catalogue?brand=Oak+table")).text
    assert "Walnut chair</a>" not in narrowed and 'value="Oak table" form="list-form" checked' in narrowed


async def test_a_product_shows_its_offers_and_their_history(application: ApplicationHarness) -> None:
    made = await seed_console(application)
    [product] = made.products
    browser = await application.open_browser()
    place = f"/console/catalogue/{product.id}"
    page = await browser.get(place)
    assert "€499.00" in page.text and "€459.00" in page.text and page.text.count("Lowest") == 1
    assert 'hx-trigger="load"' in page.text and "part=history" in page.text
    policy = page.header("content-security-policy") or ""
    assert "cdn.example" not in policy + page.text and "3 images of the vendor are not stored yet" in page.text
    history = await browser.get(f"{place}?part=history")
    assert "€529.00" in history.text and "<del>" in history.text and 'class="line s0"' in history.text
    part = await browser.get(f"{place}?variant={product.variants[0].id}", hx_request="true", hx_target="history")
    assert part.text.startswith('<section id="history"') and "<del>" in part.text
    other = (await browser.get(f"{place}?variant={product.variants[1].id}")).text
    assert "Offers of Walnut Oak table" in other
    outsider = await application.open_browser("Oak")
    assert (await outsider.get(place)).status == 404
    assert (await (await application.open_browser(role="billing")).get(place)).status == 403


async def test_a_stored_image_is_served_by_the_console() -> None:
    async with open_source_harness() as at:
        product = builders.product(
            "src_" + "0" * 22,
            at.application.orgs["Fjord"].get_catalogue_id(True),
            "k",
            data={
                "title": "Sofa",
                "media": [{"url": "https://a.example/1.mp4", "role": "video"}, {"url": "https://a.example/1.jpg"}],
            },
        )
        await add_products(at.application.uow, at.tenant, product)
        image = await add_image(at.application.uow, at.tenant, product.id)
        async with at.application.uow.begin(at.tenant, builders.CALL) as tx:
            await tx[MediaStore].rebuild_documents(100)
        browser = await at.application.open_browser()
        text = (await browser.get(f"/console/catalogue/{product.id}")).text
        assert f"/console/pictures/{image.id}?w=" in text and "a.example" not in text
        for place in ("/console/search?q=sofa", f"/console/catalogue/compare?products={product.id}"):
            text = (await browser.get(place)).text
            assert f"/console/pictures/{image.id}?w=" in text and "a.example" not in text, place
        led = await browser.get(f"/console/pictures/{image.id}?w=320")
        assert (
            led.status == 302
            and "320" in (led.header("location") or "")
            and "private" in (led.header("cache-control") or "")
        )
        assert (await (await at.application.open_browser("Oak")).get(f"/console/pictures/{image.id}")).status == 404


async def test_the_source_row_of_a_product_is_shown() -> None:
    async with open_source_harness() as at:
        made = await at.create_source(kind="file", name="Price list", config={"currency": "eur", "format": "csv"})
        product = builders.product(made["id"], made["catalogue"], "SOFA-1", data={"title": "Sofa"})
        builders.offer(builders.variant(product, "SOFA-1"))
        await add_products(at.application.uow, at.tenant, product)
        place = f"/console/catalogue/{product.id}?part=origin&source={made['id']}"
        browser = await at.application.open_browser()
        assert "No data of the source is stored. Start a run first." in (await browser.get(place)).text
        key = "snapshots/x"
        run = builders.run(made["id"], status="succeeded", snapshot=key, stream=Stream.CATALOGUE)
        async with at.application.uow.begin(at.tenant, builders.CALL) as tx:
            await tx[RunStore].add(run)
        assert "no longer exists" in (await browser.get(place)).text

        async def sent() -> AsyncIterator[bytes]:
            yield b"SKU,Memo\nSOFA-2,other\nSOFA-1,<b>as sent</b>\n"

        await at.services.objects.put_stream(key, sent())
        text = (await browser.get(place)).text
        assert "&lt;b&gt;as sent" in text and "other" not in text and f"/console/runs/{run.id}" in text
        check_markup(text)


@pytest.mark.parametrize(
    ("offers", "pieces"),
    [
        ([("in_stock", 3), ("out_of_stock", 0)], 3),
        ([("in_stock", None), ("out_of_stock", 0)], None),
        ([("out_of_stock", None), ("low_stock", 2)], 2),
        ([("in_stock", None)], None),
    ],
)
async def test_no_total_stock_is_shown_where_a_quantity_is_unknown(
    offers: list[tuple[str, int | None]], pieces: int | None
) -> None:
    assert sum_quantities([{"availability": one, "quantity": known} for one, known in offers]) == pieces
