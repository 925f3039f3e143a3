"""Console pages of a vendor's catalogue: publication, variants, licences, and products as other organisations see them."""

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta

import pytest
import pytest_asyncio

from domain.agreements.model import AgreementKind
from domain.agreements.usecases.publication import AgreementPublisher
from domain.catalogue.model import LicenceBasis
from domain.jobs.ports import JobDispatcher
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from entrypoints.areas.publishing import AREA
from tests.http.application import ApplicationHarness, create_plan, list_audit_entries, run_application
from tests.http.browser import BrowserPage, ConsoleBrowser
from tests.http.test_console_pages import check_markup
from tests.support.merged_catalogues import MergedCatalogue

pytestmark = pytest.mark.asyncio
PAGE = "/console/publishing"
VARIANTS, LICENCES = f"{PAGE}/variants", f"{PAGE}/licences"
HOSTILE = '"><script>evil()</script>'


@dataclass
class Vendor:
    """Vendor with two products that can be published and one that cannot, and a browser of its owner."""

    application: ApplicationHarness
    shop: MergedCatalogue
    owner: ConsoleBrowser

    @property
    def tenant(self) -> Tenant:
        return self.shop.tenant

    async def verify(self) -> None:
        """Create a verified vendor profile."""
        client = await self.application.create_client("Lindgren")
        answer = await client.send_json("PATCH", "/v1/brand", {"name": "Lindgren"})
        assert answer.status == 200, answer.body
        self.application.database.execute("UPDATE vendor_profiles SET verified = true, verified_at = created_at")

    async def sign(self) -> None:
        """Publish a data agreement and sign it in the console."""
        publisher = self.application.dependencies[AgreementPublisher]
        agreement = await publisher.publish(AgreementKind.VENDOR_DATA, "Data agreement", b"# Agreement\n\nText.\n", 30)
        place = "/console/organisation/agreement"
        fields = {"version": "1", "sha256": agreement.sha256, "signer_name": "Ada", "signer_title": "CEO"}
        signed = await self.owner.submit(await self.owner.get(place), place, **fields, authority_confirmed="true")
        assert signed.status == 303, signed.text

    async def work(self) -> None:
        """Execute the vendor's jobs of publication."""
        lane = f"{self.tenant.org}/publishing:{self.tenant.mode}"
        while jobs := await self.application.dependencies[JobDispatcher].claim(lane, 10, timedelta(seconds=30)):
            for job in jobs:
                await AREA.handler_factories[job.kind](self.application.uow)(job, asyncio.Event())

    async def publish(self) -> None:
        """Verify the brand, sign the agreement, and publish all products in the console."""
        await self.verify()
        await self.sign()
        started = await self.owner.submit(await self.owner.get(f"{PAGE}/publish"), f"{PAGE}/publish")
        assert started.status == 303, started.text
        await self.work()

    async def grant(self, holder: str, *groups: str, browser: ConsoleBrowser | None = None) -> BrowserPage:
        """Submit the form that grants a licence."""
        person = browser or self.owner
        fields: dict[str, str] = {"groups": groups[0]} if groups else {}
        page = await person.get("/console/account")
        return await person.submit(page, LICENCES, None, holder=holder, **fields)


@pytest_asyncio.fixture
async def vendor() -> AsyncIterator[Vendor]:
    async with run_application() as application:
        made = await application.create_organisation("Lindgren", create_plan("standard", "standard"), "vendor")
        shop = MergedCatalogue(application.uow, Tenant(made.id, True))
        catalogue = made.get_catalogue_id(True)
        own = await shop.create_source(catalogue=catalogue, licence_basis=LicenceBasis.OWN_DATA)
        gathered = await shop.create_source(name="Gathered prices", catalogue=catalogue)
        await shop.load_product(own, "A", "red", "blue", title=f"Sofa {HOSTILE}", brand="Lindgren")
        await shop.load_product(own, "B", "red", title="Chair", brand="Lindgren")
        await shop.load_product(gathered, "C", "red", title="Lamp")
        yield Vendor(application, shop, await application.open_browser("Lindgren"))


async def test_missing_requirements_replace_the_button(vendor: Vendor) -> None:
    page = await vendor.owner.get(PAGE)
    check_markup(page.text)
    assert '<a href="/console/brand">Verify your brand</a>' in page.text and "Data agreement not available" in page.text
    assert f"{PAGE}/publish" not in page.text and f"{PAGE}/withdraw" not in page.text
    refused = await vendor.owner.get(f"{PAGE}/publish")
    assert refused.status == 409 and "not verified" in refused.text and "<button" not in _get_main(refused)
    await vendor.verify()
    await vendor.sign()
    page = await vendor.owner.get(PAGE)
    assert "Before you publish" not in page.text and f"{PAGE}/publish" in page.text


def _get_main(page: BrowserPage) -> str:
    return page.text.partition("<main")[2]


async def test_a_publication_is_previewed_confirmed_and_followed(vendor: Vendor) -> None:
    await vendor.verify()
    await vendor.sign()
    preview = await vendor.owner.get(f"{PAGE}/publish")
    check_markup(preview.text)
    for text in ("<dd>2 products</dd>", "<dd>1 product</dd>", "Every organisation", "MSRP", "Gathered prices"):
        assert text in preview.text, text
    assert "Not published." in (await vendor.owner.get(PAGE)).text, "a preview changes nothing"
    started = await vendor.owner.follow(await vendor.owner.submit(preview, f"{PAGE}/publish"))
    assert "Publication started" in started.text and "Queued" in started.text
    [place] = re.findall(r'data-events="([^"]+)"', started.text)
    again = await vendor.owner.submit(started, f"{PAGE}/publish")
    assert again.status == 409 and "has not ended yet" in again.text
    await vendor.work()
    stream = await vendor.owner.get(place)
    assert "event: show" in stream.text and "3 of 3 products" in stream.text and "event: end" in stream.text
    page = await vendor.owner.get(PAGE)
    check_markup(page.text)
    assert "Published since" in page.text and "2 of 3 products" in page.text and "1 product not published" in page.text
    assert "data-events" not in page.text
    preview = await vendor.owner.get(f"{PAGE}/publish")
    assert "All products are already published." in preview.text and "<button" not in _get_main(preview)
    retailer = await vendor.application.open_browser("Fjord")
    assert (await retailer.get(place)).status == 403


async def test_a_withdrawal_is_confirmed(vendor: Vendor) -> None:
    await vendor.publish()
    confirmation = await vendor.owner.get(f"{PAGE}/withdraw")
    assert "2 listed products become unlisted" in confirmation.text
    await vendor.owner.submit(confirmation, f"{PAGE}/withdraw")
    await vendor.work()
    page = await vendor.owner.get(PAGE)
    assert "Not published." in page.text and "Withdrawal" in page.text and "0 of 3 products" in page.text


async def test_the_first_missing_field_is_the_next_step(vendor: Vendor) -> None:
    assert "The score appears here" in (await vendor.owner.get(PAGE)).text
    await vendor.publish()
    page = await vendor.owner.get(PAGE)
    [step] = re.findall(r"Next step: [^<]*<a href=\"([^\"]+)\">([^<]+)</a>", page.text)
    assert step == (f"{VARIANTS}?missing=media", "Images") and f"{VARIANTS}?missing=brand" in page.text
    listed = await vendor.owner.get(f"{VARIANTS}?missing=brand")
    assert "Lamp" in listed.text and "Chair" not in listed.text


async def test_variants_are_filtered_hidden_and_listed(vendor: Vendor) -> None:
    page = await vendor.owner.get(VARIANTS)
    check_markup(page.text)
    assert page.text.count('class="mono"') == 4 and "Country of origin" in page.text
    assert 'value="listed" aria-label' not in page.text, "the catalogue is not published"
    assert "Chair" not in (await vendor.owner.get(f"{VARIANTS}?q=sofa")).text
    assert "No variants found" in (await vendor.owner.get(f"{VARIANTS}?visibility=hidden")).text
    for query in ("q=x", "missing=x", "visibility=x", "cursor=x"):
        assert (await vendor.owner.get(f"{VARIANTS}?{query}")).status == 400
    await vendor.publish()
    chair, place = vendor.shop.products[1], f"{VARIANTS}?visibility=listed&q=chair"
    listed = await vendor.owner.get(place)
    hidden = await vendor.owner.submit(listed, place, product=chair.id, visibility="hidden")
    assert hidden.header("location") == place
    assert "Product hidden" in (await vendor.owner.follow(hidden)).text
    place = f"{VARIANTS}?visibility=hidden"
    shown = await vendor.owner.follow(await vendor.owner.submit(listed, place, product=chair.id, visibility="listed"))
    assert "Product listed" in shown.text and "Chair" not in shown.text
    lamp = vendor.shop.products[2]
    refused = await vendor.owner.submit(listed, VARIANTS, product=lamp.id, visibility="listed")
    assert refused.status == 409 and "must not leave the organisation" in refused.text and "Chair" in refused.text
    viewer = await vendor.application.open_browser("Lindgren", "viewer")
    shown = await viewer.get(VARIANTS)
    assert "Chair" in shown.text and 'name="product"' not in shown.text
    refused = await viewer.submit(await viewer.get("/console/account"), VARIANTS, product=chair.id, visibility="hidden")
    assert refused.status == 403


async def test_licences_are_granted_and_revoked(vendor: Vendor) -> None:
    assert "No licences yet" in (await vendor.owner.get(LICENCES)).text
    await vendor.publish()
    fjord = vendor.application.orgs["Fjord"].id
    granted = await vendor.owner.follow(await vendor.grant("Fjord", "stock"))
    check_markup(granted.text)
    assert "Licence of Fjord granted" in granted.text and "Every organisation" in granted.text
    assert ">Stock</span>" in granted.text and ">Trade</span>" not in granted.text
    assert granted.text.count(f"{LICENCES}/revoke") == 1, "the licence of every organisation has no button"
    changed = await vendor.owner.follow(await vendor.grant(fjord, "trade"))
    assert ">Trade</span>" in changed.text and ">Stock</span>" not in changed.text
    revoked = await vendor.owner.follow(await vendor.owner.submit(changed, f"{LICENCES}/revoke", holder=fjord))
    assert "Licence revoked" in revoked.text and "Fjord" not in revoked.text
    assert (await vendor.owner.submit(revoked, f"{LICENCES}/revoke", holder=fjord)).status == 404
    assert (await vendor.owner.submit(changed, f"{LICENCES}/revoke", holder="*")).status == 422
    entries = await list_audit_entries(
        vendor.application, vendor.tenant, vendor.application.orgs["Lindgren"].get_catalogue_id(True)
    )
    acts = [entry.context.operation for entry in entries if entry.change.object == "licence"]
    assert acts == ["publishing.publish", "licences.grant", "licences.grant", "licences.revoke"]


@pytest.mark.parametrize("holder", ["Fjor", "fjord", "*", "", HOSTILE, "org_0352TOjGr8iGF1dXj5Qwyc", "Twins"])
async def test_an_unknown_holder_is_refused_alike(vendor: Vendor, holder: str) -> None:
    for _ in range(2):
        await vendor.application.create_organisation("Twins", create_plan("standard", "standard"))
    refused = await vendor.grant(holder, "stock")
    check_markup(refused.text)
    assert refused.status == 422 and "There is no organisation with exactly this ID or name." in refused.text


async def test_invalid_grants_are_refused(vendor: Vendor) -> None:
    assert "Select Stock or Trade." in (await vendor.grant("Fjord")).text
    assert "There is no field group" in (await vendor.grant("Fjord", "all")).text
    assert "reads its own catalogue" in (await vendor.grant("Lindgren", "stock")).text
    for _ in range(10):
        answer = await vendor.grant(new_id("org"), "stock")
    assert answer.status == 429


async def test_only_managers_change_licences(vendor: Vendor) -> None:
    await vendor.publish()
    editor = await vendor.application.open_browser("Lindgren", "editor")
    page = await editor.get(LICENCES)
    assert "Every organisation" in page.text and 'name="holder"' not in page.text
    assert (await vendor.grant("Fjord", "stock", browser=editor)).status == 403
    sent = await editor.submit(await editor.get("/console/account"), f"{LICENCES}/revoke", holder="*")
    assert sent.status == 403


async def test_a_vendor_sees_a_product_as_a_retailer_does(vendor: Vendor) -> None:
    await vendor.publish()
    sofa, lamp = vendor.shop.products[0], vendor.shop.products[2]
    own = await vendor.owner.get(f"/console/catalogue/{sofa.id}")
    assert "Listed" in own.text and f"/console/catalogue/{sofa.id}/retailer" in own.text
    seen = await vendor.owner.get(f"/console/catalogue/{sofa.id}/retailer?part=fields")
    check_markup(seen.text)
    assert "Retailers without a licence of their own read" in seen.text and "$1.00" in seen.text
    for page, quantity in ((own, "4"), (seen, "–")):
        [row] = re.findall(r'Quantity</th><td class="numbers">(.*?)</td>', page.text, re.DOTALL)
        assert re.sub("<[^>]*>", "", row).split()[0] == quantity
    assert "/console/sources/src_" not in seen.text and vendor.shop.sources[0].id not in seen.text
    unlisted = await vendor.owner.get(f"/console/catalogue/{lamp.id}/retailer")
    assert "This product isn't listed." in unlisted.text


async def test_a_retailer_sees_a_licensed_product(vendor: Vendor) -> None:
    await vendor.publish()
    retailer, sofa = await vendor.application.open_browser("Fjord"), vendor.shop.products[0]
    listed = await retailer.get("/console/catalogue?q=sofa")
    check_markup(listed.text)
    assert f"/console/catalogue/{sofa.id}" in listed.text
    place, source = f"/console/catalogue/{sofa.id}", vendor.shop.sources[0].id
    for query in ("", "?part=fields", "?part=history", f"?part=origin&source={source}"):
        page = await retailer.get(place + query)
        check_markup(page.text)
        assert page.status == 200 and "From another organisation's catalogue: Lindgren." in page.text
        main = _get_main(page)
        assert source not in main and f"{place}/retailer" not in main and "<form" not in main
    assert (await retailer.get(f"{place}/retailer")).status == 403
    assert (await retailer.get(f"/console/catalogue/{vendor.shop.products[2].id}")).status == 404
    assert (await retailer.get(f"/console/catalogue?source={source}")).status == 200


async def test_retailers_have_no_pages(vendor: Vendor) -> None:
    retailer = await vendor.application.open_browser("Fjord")
    assert PAGE not in (await retailer.get("/console/catalogue")).text
    for path in (PAGE, f"{PAGE}/publish", f"{PAGE}/withdraw", VARIANTS, LICENCES):
        assert (await retailer.get(path)).status == 403
    assert (await vendor.grant("Oak", "stock", browser=retailer)).status == 403
