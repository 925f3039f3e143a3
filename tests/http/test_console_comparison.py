"""Comparison of products and vendors in the console: contents, other tenants, public links and attacks on them, and PDF."""

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import timedelta
from html import unescape
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
import pytest_asyncio

from domain.catalogue.model import LicenceBasis, Visibility
from domain.catalogue.ports import CatalogueStore
from domain.catalogue.usecases.publication import change_visibility
from domain.comparison.model import LINK_LIFETIME, MAX_OPEN_LINKS, ComparisonLink
from domain.comparison.ports import ComparisonUpkeep
from domain.events.ports import EventLog
from domain.kernel.paging import PageRequest
from domain.kernel.tenancy import Tenant
from domain.media.ports import MediaStore
from domain.orgs.ports import OrgStore
from domain.publishing.usecases.licences import LicenceService
from domain.sources.ports import SourceStore
from entrypoints.console.pages.comparison import SHARED_PATH
from entrypoints.console.security import ValueSigner
from tests.http.application import OPERATOR, ApplicationHarness, list_audit_entries, run_application
from tests.http.browser import BrowserPage, ConsoleBrowser
from tests.http.test_console_pages import check_markup
from tests.support import builders
from tests.support.catalogues import add_image, add_products
from tests.support.console_seed import HOSTILE
from tests.support.memory.objects import MemoryObjects
from tests.support.memory.printer import MemoryPrinter

pytestmark = pytest.mark.asyncio
PATH = "/console/catalogue/compare"
UNKNOWN = "prod_0000000000000000000000"


@dataclass
class Comparison:
    """Application with comparable products of two sources."""

    application: ApplicationHarness
    printer: MemoryPrinter
    objects: MemoryObjects
    tenant: Tenant
    products: dict[str, str] = field(default_factory=dict)
    """IDs of products by title."""
    variants: dict[str, list[str]] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)

    async def add_source(self, name: str, basis: LicenceBasis, org: str = "Fjord") -> Any:
        owner = self.application.orgs[org]
        source = builders.source(
            name=name,
            catalogue=owner.get_catalogue_id(True),
            licence_basis=basis,
            created_at=self.application.clock.now(),
        )
        async with self.application.uow.begin(Tenant(owner.id, True), OPERATOR) as tx:
            await tx[SourceStore].add(source)
        self.sources[name] = source.id
        return source

    async def add_product(
        self, source: Any, title: str, *offers: dict[str, Any], org: str = "Fjord", **data: Any
    ) -> str:
        product = builders.product(
            source.id, source.catalogue, f"key {title}", data={"title": title, "brand": "Lindgren"}
        )
        for number, offer in enumerate(offers):
            variant = builders.variant(
                product, f"{title}/{number}", data={"sku": f"S-{number}", "title": f"Colour {number}"} | data
            )
            stated = {"currency": "usd", "availability": "in_stock", **offer}
            builders.offer(variant, source=stated.pop("source", source.id), data=stated)
            self.variants.setdefault(title, []).append(variant.id)
        await add_products(self.application.uow, Tenant(self.application.orgs[org].id, True), product)
        self.products[title] = product.id
        return product.id

    def build_query(self, *titles: str) -> str:
        return f"{PATH}?products={','.join(self.products[title] for title in titles)}"

    async def share(self, browser: ConsoleBrowser, *titles: str, **fields: str) -> str:
        """Share a comparison; return the path of the link."""
        page = await browser.get(self.build_query(*titles))
        products = ",".join(self.products[title] for title in titles)
        created = await browser.submit(page, f"{PATH}/links", products=products, **fields)
        assert created.status == 303, created.text
        shown = await browser.follow(created)
        return find_links(shown)[0]


def find_links(page: BrowserPage) -> list[str]:
    """Return the paths of the public links that a page lists, the newest first."""
    urls = re.findall(r'href="([^"]*/console/shared/[^"]+)"', page.text)
    return [urlsplit(unescape(url)).path for url in urls]


def read_rows(page: BrowserPage) -> dict[str, list[str]]:
    """Return the texts of a comparison's cells by the label of their row."""
    table = page.text[page.text.index('<table class="compared">') :].partition("</table>")[0]
    rows: dict[str, list[str]] = {}
    for row in re.findall(r"<tr.*?</tr>", table, re.S)[1:]:
        cells = [
            " ".join(unescape(re.sub(r"<[^>]+>", " ", cell)).split())
            for cell in re.findall(r"<t[hd].*?</t[hd]>", row, re.S)
        ]
        rows[cells[0].removesuffix(" (different)")] = cells[1:]
    return rows


@pytest_asyncio.fixture
async def made() -> AsyncIterator[Comparison]:
    printer, objects = MemoryPrinter(), MemoryObjects()
    async with run_application(printer=printer, objects=objects) as application:
        world = Comparison(application, printer, objects, Tenant(application.orgs["Fjord"].id, True))
        own = await world.add_source("Lindgren feed", LicenceBasis.VENDOR_AGREEMENT)
        other = await world.add_source("Nordhaus feed", LicenceBasis.VENDOR_AGREEMENT)
        width = {"width": {"hundredths_in": 3150, "given": {"value": 80.0, "unit": "cm"}}}
        inches = {"width": {"hundredths_in": 3150, "given": {"value": 31.5, "unit": "in"}}}
        await world.add_product(
            own, "Oak table", {"price": 50000, "cost": 30000, "quantity": 4, "lead_time_days": 14}, {"price": 70000, "availability": "backorder"},
            dimensions=width, materials=["Oak"], colour="Natural",
        )  # fmt: skip
        await world.add_product(
            other, "Walnut table", {"price": 45000, "msrp": 90000, "lead_time_days": 3, "quantity": 2}, dimensions=inches, materials=["Walnut"], colour="Natural",
        )  # fmt: skip
        await world.add_product(other, "Linen sofa", {"msrp": 12345, "availability": "out_of_stock"})
        yield world


async def test_products_are_compared_in_one_unit_with_margins(made: Comparison) -> None:
    browser = await made.application.open_browser()
    page = await browser.get(made.build_query("Oak table", "Walnut table", "Linen sofa") + "&units=metric")
    check_markup(page.text)
    rows = read_rows(page)
    assert rows["Width"] == ["80 cm", "80 cm 31.5″", "– No value"], "converted, with the stated value"
    assert rows["Materials"] == ["Oak", "Walnut", "– No value"]
    assert rows["Lowest selling price"] == ["$500.00", "$450.00 Lowest", "– No value"]
    assert rows["MSRP"] == ["– No value", "$900.00", "$123.45"]
    assert rows["Cost price"] == ["$300.00", "No cost", "– No value"]
    assert rows["Margin"] == ["$200.00 40% of the price", "No cost", "No selling price"]
    assert rows["Stock"] == ["In stock 4 units", "In stock 2 units", "Out of stock"]
    assert rows["Lead time"] == ["Ships in 14 days", "Ships in 3 days Shortest", "– No value"]
    assert rows["Sources"] == ["Lindgren feed", "Nordhaus feed", "Nordhaus feed"]
    imperial = read_rows(await browser.get(made.build_query("Oak table", "Walnut table") + "&units=imperial"))
    assert imperial["Width"] == ["31.5″ 80 cm", "31.5″"]
    again = read_rows(await browser.get(made.build_query("Oak table", "Walnut table")))
    assert again["Width"] == ["31.5″ 80 cm", "31.5″"], "the choice is kept"
    without = read_rows(await browser.get(made.build_query("Oak table", "Walnut table") + "&cost=0"))
    assert not {"Cost price", "Margin"} & without.keys()


async def test_only_differences_and_a_single_product_without_marks(made: Comparison) -> None:
    browser = await made.application.open_browser()
    rows = read_rows(await browser.get(made.build_query("Oak table", "Walnut table") + "&differences=1&units=metric"))
    assert not {"Brand", "Width", "Colour"} & rows.keys() and "Materials" in rows
    alone = await browser.get(made.build_query("Oak table"))
    assert (
        "Lowest</span>" not in alone.text
        and "Shortest</span>" not in alone.text
        and 'class="different"' not in alone.text
    )


async def test_columns_are_added_moved_removed_and_limited_without_scripts(made: Comparison) -> None:
    browser = await made.application.open_browser()
    empty = await browser.get(PATH)
    assert empty.status == 200 and "Nothing to compare yet" in empty.text
    found = await browser.get(f"{PATH}?q=table")
    oak, walnut = made.products["Oak table"], made.products["Walnut table"]
    assert f'href="{PATH}?products={oak}&amp;' in found.text
    page = await browser.get(made.build_query("Oak table", "Walnut table"))
    links = [unescape(link) for link in re.findall(r'href="(/console/catalogue/compare\?[^"]+)"', page.text)]
    assert any(f"products={walnut},{oak}&" in link for link in links), "moved"
    assert any(f"products={walnut}&" in link for link in links) and any(f"products={oak}&" in link for link in links)
    first, second = made.variants["Oak table"]
    chosen = await browser.get(f"{PATH}?item={oak}:{second}&item={walnut}")
    assert read_rows(chosen)["Lowest selling price"][0] == "$700.00"
    assert f'value="{oak}:{second}" selected' in chosen.text
    both = await browser.get(f"{PATH}?products={oak}:{first},{oak}:{second}")
    assert read_rows(both)["Lowest selling price"] == ["$500.00 Lowest", "$700.00"]
    many = await browser.get(f"{PATH}?products={','.join(f'prod_{number:022}' for number in range(12))}")
    assert many.text.count(">Not found</span>") == 8 and "Only the first 8 products" in many.text
    assert (await browser.get(f"{PATH}?q={'a+' * 20}")).status == 400
    assert (await browser.get(f"{PATH}?q=nothinglikeit")).text.count("No products found") == 1


async def test_a_variant_beyond_the_first_ones_is_shown_and_offered(made: Comparison) -> None:
    source = await made.add_source("Large feed", LicenceBasis.OWN_DATA)
    product = await made.add_product(source, "Modular sofa", *({"price": 100 * number} for number in range(1, 41)))
    variants = sorted(made.variants["Modular sofa"])
    page = await (await made.application.open_browser()).get(f"{PATH}?products={product}:{variants[-1]}")
    assert read_rows(page)["Lowest selling price"] == ["$40.00"]
    assert (
        page.text.count(f'<option value="{product}:') == 31
        and f'value="{product}:{variants[-1]}" selected' in page.text
    )


async def test_ids_of_others_are_not_found_like_unknown_ones(made: Comparison) -> None:
    source = await made.add_source("Foreign feed", LicenceBasis.OWN_DATA, "Oak")
    foreign = await made.add_product(source, "Secret chair", {"price": 1, "cost": 1}, org="Oak")
    browser = await made.application.open_browser()
    own = made.products["Oak table"]
    texts = [
        (await browser.get(f"{PATH}?products={own},{other}")).text.replace(other, "")
        for other in (
            foreign,
            UNKNOWN,
            f"{UNKNOWN}:{made.variants['Secret chair'][0]}",
            "src_1",
            "x" * 500,
            "%00",
            "'\"><b>",
        )
    ]
    for text in texts:
        assert "Secret" not in text and text.count(">Not found</span>") == 1
    known = await browser.get(f"{PATH}?products={own}:{made.variants['Secret chair'][0]}")
    assert read_rows(known)["Lowest selling price"] == ["$500.00"], "a variant of another product selects nothing"
    assert (await browser.get(f"{PATH}?products={foreign}&by=source")).text.count("Secret") == 0
    assert (await browser.get(f"{PATH}/pdf?products={foreign}")).status == 200
    assert "Secret" not in made.printer.documents[-1][0]
    vendors = await browser.get(f"{PATH}/vendors?first={source.id}&second={made.sources['Lindgren feed']}")
    assert vendors.status == 200 and "Foreign feed" not in vendors.text
    foreigner = await made.application.open_browser(role="billing")
    for place in (PATH, f"{PATH}/pdf?products={own}", f"{PATH}/vendors"):
        assert (await foreigner.get(place)).status == 403


async def test_the_offers_of_a_product_are_compared_by_source(made: Comparison) -> None:
    source = builders.source(
        id=made.sources["Lindgren feed"], catalogue=made.application.orgs["Fjord"].get_catalogue_id(True)
    )
    product = builders.product(source.id, source.catalogue, "merged", data={"title": "Ash stool"})
    variant = builders.variant(product, "merged/1")
    for name, fields in (
        ("Lindgren feed", {"price": 500, "cost": 100}),
        ("Nordhaus feed", {"price": 400, "cost": 350, "lead_time_days": 2}),
    ):
        builders.offer(
            variant,
            source=made.sources[name],
            location=name,
            data={"currency": "usd", "availability": "in_stock"} | fields,
        )
    await add_products(made.application.uow, made.tenant, product)
    browser = await made.application.open_browser()
    page = await browser.get(f"/console/catalogue/{product.id}")
    place = unescape(re.findall(r'href="([^"]+by=source)"', page.text)[0])
    assert f'href="{PATH}?products={product.id}:{variant.id}"' in page.text
    rows = read_rows(await browser.get(place))
    assert rows["Lowest selling price"] == ["$5.00", "$4.00 Lowest"]
    assert rows["Margin"] == ["$4.00 80% of the price", "$0.50 12.5% of the price"]
    assert rows["Lead time"] == ["– No value", "Ships in 2 days"], "nothing to compare with"


async def test_two_vendors_are_compared_by_averages(made: Comparison) -> None:
    browser = await made.application.open_browser()
    pair = f"{PATH}/vendors?first={made.sources['Lindgren feed']}&second={made.sources['Nordhaus feed']}"
    page = await browser.get(pair)
    check_markup(page.text)
    rows = read_rows(page)
    assert rows["Products"] == ["1", "2"]
    assert rows["Average selling price"] == ["$600.00 2 variants", "$450.00 1 variant"]
    assert rows["Average MSRP"] == ["–", "$511.73 2 variants"]
    assert rows["Average lead time"] == ["14 days", "3 days"]
    assert rows["In stock"] == ["50% of variants", "50% of variants"]
    filtered = read_rows(await browser.get(f"{pair}&brand=nobody"))
    assert filtered["Products"] == ["0", "0"] and filtered["In stock"] == ["–", "–"]
    for place in (
        f"{PATH}/vendors",
        f"{PATH}/vendors?first=x&second=y",
        f"{pair}&category=x",
        f"{pair}&brand={quote(HOSTILE[1])}",
    ):
        page = await browser.get(place)
        assert page.status == 200
        check_markup(page.text)


async def test_hostile_texts_break_out_of_no_comparison(made: Comparison) -> None:
    source = await made.add_source(f"Feed {HOSTILE[0]}", LicenceBasis.OWN_DATA)
    browser, titles = await made.application.open_browser(), []
    for text in HOSTILE:
        await made.add_product(
            source, text, {"price": 5, "cost": 2, "location": text}, {"price": 5},
            materials=[text], colour=text, finish=text, mpn=text[:50], axes={text[:60]: text[:60]},
        )  # fmt: skip
        titles.append(text)
    for part in (titles[:7], titles[6:]):
        page = await browser.get(made.build_query(*part))
        check_markup(page.text)
        assert len(page.body) < 90_000
        await browser.get(made.build_query(*part).replace("?", "/pdf?"))
        html, files = made.printer.documents[-1]
        assert "<script>" not in html and "<img src=x" not in html
        assert {re.sub(r"\d+", "0", url) for url in files} <= {
            "https://files.invalid/comparison.css",
            "https://files.invalid/vendor/inter.woff0",
            "https://files.invalid/0.webp",
        }
        shared = await browser.get(await made.share(browser, *part, include_cost="true"))
        assert shared.status == 200
        check_markup(shared.text)
    for text in HOSTILE[:7]:
        page = await browser.get(f"{PATH}?products={quote(text)}&q={quote(text)}&units={quote(text)}&by={quote(text)}")
        check_markup(page.text)


async def test_a_public_link_shows_the_stored_copy_without_costs(made: Comparison) -> None:
    browser = await made.application.open_browser(role="viewer")
    path = await made.share(browser, "Oak table", "Walnut table", units="metric")
    anybody = ConsoleBrowser(made.application.app)
    page = await anybody.get(path)
    assert page.status == 200
    check_markup(page.text)
    rows = read_rows(page)
    assert rows["Lowest selling price"] == ["$500.00", "$450.00 Lowest"] and not {"Cost price", "Margin"} & rows.keys()
    assert rows["Width"] == ["80 cm", "80 cm 31.5″"]
    org = made.application.orgs["Fjord"]
    for secret in ("Fjord", org.id, "300.00", "prod_", "src_", "var_", browser.user.email, browser.user.display_name):
        assert secret not in page.text.replace(path, ""), secret
    assert page.header("x-robots-tag") == "noindex, nofollow" and 'content="noindex, nofollow"' in page.text
    assert page.header("cache-control") == "no-store" and "frame-ancestors 'none'" in (
        page.header("content-security-policy") or ""
    )
    async with made.application.uow.begin(made.tenant, OPERATOR) as tx:
        [link] = (await tx.store(ComparisonLink).page(PageRequest(limit=10))).items
        stored = await tx.store(ComparisonLink).get(link.id)
    assert stored is not None and [item.prices.cost for item in stored.items if item.prices] == [None, None], (
        "not even stored"
    )
    made.application.database.execute("UPDATE product_documents SET body = '{}'")
    assert read_rows(await anybody.get(path)) == rows, "later changes have no effect"
    [entry] = await list_audit_entries(made.application, made.tenant, link.id)
    assert entry.context.operation == "comparison_links.create" and entry.context.actor.id == browser.user.id


async def test_costs_are_shared_only_if_they_are_requested(made: Comparison) -> None:
    browser = await made.application.open_browser()
    path = await made.share(browser, "Oak table", "Walnut table", include_cost="true")
    rows = read_rows(await ConsoleBrowser(made.application.app).get(path))
    assert rows["Cost price"] == ["$300.00", "No cost"] and rows["Margin"][0] == "$200.00 40% of the price"
    page = await browser.get(made.build_query("Oak table"))
    assert 'name="include_cost" type="checkbox" value="true">' in page.text, "off by default"


async def test_a_link_ends_when_it_is_revoked_expires_or_its_author_leaves(made: Comparison) -> None:
    application, anybody = made.application, ConsoleBrowser(made.application.app)
    owner = await application.open_browser()
    author = await application.open_browser(role="editor")
    viewer = await application.open_browser(role="viewer")
    path = await made.share(author, "Oak table")
    link = find_links(await viewer.get(PATH))
    assert link == [path], "listed for every member"
    id = re.findall(r"/links/(cmp_\w+)/revoke", (await author.get(PATH)).text)[0]
    assert "/revoke" not in (await viewer.get(PATH)).text
    refused = await viewer.submit(await viewer.get("/console/account"), f"{PATH}/links/{id}/revoke")
    assert refused.status == 403 and (await anybody.get(path)).status == 200
    foreigner = await application.open_browser("Oak")
    assert (await foreigner.submit(await foreigner.get("/console/account"), f"{PATH}/links/{id}/revoke")).status == 404
    assert not find_links(await foreigner.get(PATH))
    revoked = await author.submit(await author.get(PATH), f"{PATH}/links/{id}/revoke")
    assert revoked.status == 303 and (await anybody.get(path)).status == 404
    assert (await author.submit(await author.get("/console/account"), f"{PATH}/links/{id}/revoke")).status == 404

    demoted = await made.share(author, "Oak table")
    async with application.uow.begin(made.tenant, OPERATOR) as tx:
        await tx[OrgStore].change_role(author.user.id, "billing")
    assert (await anybody.get(demoted)).status == 404, "the author may not read products any more"
    async with application.uow.begin(made.tenant, OPERATOR) as tx:
        await tx[OrgStore].remove_member(author.user.id)
    assert (await anybody.get(demoted)).status == 404

    lasting = await made.share(owner, "Oak table")
    application.clock.advance(LINK_LIFETIME - timedelta(seconds=1))
    assert (await anybody.get(lasting)).status == 200
    application.clock.advance(timedelta(seconds=1))
    ended = await anybody.get(lasting)
    assert ended.status == 404 and "expired or was revoked" in ended.text
    await application.dependencies[ComparisonUpkeep].delete_expired(application.clock.now())
    assert application.database.fetch_rows("SELECT count(*) FROM comparison_links") == [(0,)]


async def test_links_cannot_be_guessed_or_forged(made: Comparison) -> None:
    application, anybody = made.application, ConsoleBrowser(made.application.app)
    browser = await application.open_browser()
    path = await made.share(browser, "Oak table")
    signed = path.removeprefix(SHARED_PATH)
    payload, _, signature = signed.rpartition(".")
    own, foreign = application.orgs["Fjord"].id, application.orgs["Oak"].id
    keys = application.keys
    async with application.uow.begin(made.tenant, OPERATOR) as tx:
        [link] = (await tx.store(ComparisonLink).page(PageRequest(limit=10))).items
    forged = [
        payload, f"{payload}.", f"{payload}.{signature[:-2]}", f"{payload}.{signature}x", f".{signature}", signature, "x", ".", "%00", "é", "a" * 3000,
        f"{payload[:-1]}.{signature}",
        ValueSigner(keys.cursor_keys).sign_value("notice", [own, True, link.id]),
        ValueSigner(keys.link_keys).sign_value("comparison link", [own, True, link.id]),
        ValueSigner(keys.cursor_keys).sign_value("comparison link", [foreign, True, link.id]),
        ValueSigner(keys.cursor_keys).sign_value("comparison link", [own, False, link.id]),
        ValueSigner(keys.cursor_keys).sign_value("comparison link", [own, True, "cmp_0000000000000000000000"]),
        ValueSigner(keys.cursor_keys).sign_value("comparison link", ["org_0000000000000000000000", True, link.id]),
    ]  # fmt: skip
    known = await anybody.get(f"{SHARED_PATH}unknown")
    for text in forged:
        page = await anybody.get(SHARED_PATH + text)
        assert page.status == 404, text
        assert "Oak table" not in page.text
        if re.fullmatch(r"[\w.-]+", text):
            assert "expired or was revoked" in page.text and len(page.body) == len(known.body), "one answer for all"
    assert (await anybody.get(path)).status == 200
    for place in (
        f"{path}/pictures/0",
        f"{path}/pictures/1",
        f"{path}/pictures/-1",
        f"{path}/pictures/x",
        f"{path}/pictures/{'9' * 500}",
    ):
        assert (await anybody.get(place)).status == 404
    for place in (PATH, f"{PATH}/pdf?products={UNKNOWN}", f"{PATH}/vendors"):
        assert (await anybody.get(place)).status == 303, "only for members"


async def test_public_pages_are_limited_by_address(made: Comparison) -> None:
    path = await made.share(await made.application.open_browser(), "Oak table")
    anybody = ConsoleBrowser(made.application.app)
    statuses = {(await anybody.get(f"{SHARED_PATH}guess{number}")).status for number in range(120)}
    limited = await anybody.get(path)
    assert statuses <= {404, 429} and limited.status == 429 and limited.header("retry-after")


async def test_open_links_are_limited(made: Comparison) -> None:
    browser = await made.application.open_browser()
    page = await browser.get(made.build_query("Oak table"))
    fields = {"csrf": page.field("csrf"), "products": made.products["Oak table"]}
    statuses = [(await browser.post(f"{PATH}/links", **fields)).status for _ in range(MAX_OPEN_LINKS + 1)]
    assert statuses == [303] * MAX_OPEN_LINKS + [409]


async def test_data_that_must_not_leave_the_organisation_is_not_shared(made: Comparison) -> None:
    application, browser = made.application, await made.application.open_browser()
    unknown = await made.add_source("Unknown rights", LicenceBasis.UNKNOWN)
    public = await made.add_source("Scraped", LicenceBasis.PUBLIC_DATA)
    await made.add_product(unknown, "Restricted chair", {"price": 100})
    await made.add_product(public, "Scraped chair", {"price": 90})
    mixed = builders.product(made.sources["Lindgren feed"], unknown.catalogue, "mixed", data={"title": "Mixed chair"})
    variant = builders.variant(mixed, "mixed/1")
    for source in (made.sources["Lindgren feed"], unknown.id):
        builders.offer(variant, source=source, location=source)
    await add_products(application.uow, made.tenant, mixed)
    made.products["Mixed chair"] = mixed.id
    vendor = Tenant(application.orgs["Elm"].id, True)
    foreign = await made.add_source("Vendor's own", LicenceBasis.OWN_DATA, "Elm")
    licensed = await made.add_product(foreign, "Licensed chair", {"price": 80}, org="Elm")
    async with application.uow.begin(vendor, OPERATOR) as tx:
        await LicenceService().grant_to_everyone(tx)
        await tx[CatalogueStore].lock_for_writing()
        await tx[EventLog].append((await change_visibility(tx, [licensed], Visibility.LISTED)).events)
    titles = ("Oak table", "Restricted chair", "Scraped chair", "Mixed chair", "Licensed chair")
    page = await browser.get(made.build_query(*titles))
    assert all(title in page.text for title in titles) and "must not leave your organisation" in page.text
    shared = await ConsoleBrowser(application.app).get(await made.share(browser, *titles))
    assert "Oak table" in shared.text and not [title for title in titles[1:] if title in shared.text]
    alone = await browser.get(made.build_query("Licensed chair"))
    assert f'action="{PATH}/links"' not in alone.text and "can't be shared" in alone.text
    refused = await browser.submit(alone, f"{PATH}/links", products=licensed)
    assert refused.status == 422


async def test_pictures_of_links_and_pdfs_are_stored_ones(made: Comparison) -> None:
    application, browser = made.application, await made.application.open_browser()
    url = "https://a.example/1.jpg"
    product = builders.product(
        made.sources["Lindgren feed"], application.orgs["Fjord"].get_catalogue_id(True), "picture",
        data={"title": "Lamp", "media": [{"url": url, "role": "hero"}, {"url": "https://evil.example/2.jpg"}]},
    )  # fmt: skip
    builders.offer(builders.variant(product, "picture/1"))
    await add_products(application.uow, made.tenant, product)
    made.products["Lamp"] = product.id
    image = await add_image(application.uow, made.tenant, product.id, url)
    async with application.uow.begin(made.tenant, builders.CALL) as tx:
        await tx[MediaStore].rebuild_documents(100)

    async def chunks() -> AsyncIterator[bytes]:
        yield b"webp"

    await made.objects.put_stream(image.renditions[0].key, chunks())
    page = await browser.get(made.build_query("Lamp"))
    assert f"/console/pictures/{image.id}?w=320" in page.text and "example" not in page.text
    assert (await browser.get(made.build_query("Lamp", "Oak table").replace("?", "/pdf?"))).status == 200
    html, files = made.printer.documents[-1]
    assert (
        files["https://files.invalid/0.webp"] == b"webp"
        and 'src="https://files.invalid/0.webp"' in html
        and "example" not in html
        and "https://files.invalid/1" not in html
    )
    path = await made.share(browser, "Lamp", "Oak table")
    anybody = ConsoleBrowser(application.app)
    shared = await anybody.get(path)
    assert f'src="{path}/pictures/0"' in shared.text and image.id not in shared.text and "example" not in shared.text
    led = await anybody.get(f"{path}/pictures/0")
    assert led.status == 302 and "320" in (led.header("location") or "")
    assert (await anybody.get(f"{path}/pictures/1")).status == 404, "an item without a picture"
    assert (await anybody.get(f"/console/pictures/{image.id}")).status == 303, "pictures of the console need a session"


async def test_a_pdf_has_the_shown_table(made: Comparison) -> None:
    browser = await made.application.open_browser()
    query = made.build_query("Oak table", "Walnut table").partition("?")[2]
    page = await browser.get(f"{PATH}?{query}")
    link = unescape(re.findall(r'href="([^"]+/pdf\?[^"]+)"', page.text)[0])
    pdf = await browser.get(link)
    assert pdf.status == 200 and pdf.body.startswith(b"%PDF-") and pdf.header("content-type") == "application/pdf"
    assert (pdf.header("content-disposition") or "").startswith("attachment; filename=")
    shown, printed = read_rows(page), read_rows(pdf)
    assert printed == shown
    assert "Cost price" not in read_rows(await browser.get(f"{link}&cost=0"))
    made.printer.fails = True
    failed = await browser.get(link)
    assert failed.status == 503 and "could not be created" in failed.text
    made.printer.is_installed = False
    assert "/pdf?" not in (await browser.get(f"{PATH}?{query}")).text
    assert (await browser.get(link)).status == 404
    assert (await browser.get(f"{PATH}/pdf")).status == 404
    assert {(await browser.get(link)).status for _ in range(8)} == {404, 429}
