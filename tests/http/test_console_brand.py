"""Pages of the vendor's profile, the claim wizard and the directory."""

import pytest

from domain.brand.usecases.profiles import ProfileService
from domain.kernel.tenancy import Tenant
from tests.http.application import OPERATOR, ApplicationHarness, create_plan

pytestmark = pytest.mark.asyncio


async def create_gathered(application: ApplicationHarness) -> str:
    async with application.uow.begin(Tenant("", True), OPERATOR) as tx:
        values = {"name": "Fjord", "brands": ("Fjord",), "website_domain": "fjord.example"}
        return str((await application.dependencies[ProfileService].create_gathered(tx, values)).id)


async def test_a_vendor_proves_its_brand_in_the_console(application: ApplicationHarness) -> None:
    profile = await create_gathered(application)
    await application.create_organisation("Vendor", create_plan("standard", "standard"), "vendor")
    browser = await application.open_browser("Vendor")
    page = await browser.get("/console/brand")
    assert (page.status, "Not verified" in page.text) == (200, True)
    taken = await browser.submit(page, "/console/brand", name="Own", brands="Nordlys\nFJORD")
    assert (taken.status, profile in taken.text) == (409, True)
    saved = await browser.submit(page, "/console/brand", name="Own", brands="Nordlys\n\n", website_domain="")
    assert saved.status == 303
    directory = await browser.get("/console/vendors?q=fjrod&domain=fjord.example&status=unclaimed&verified=false")
    assert f"/console/brand/claims/new?profile={profile}" in directory.text
    assert (await browser.get("/console/vendors?q=x")).status == 400
    wizard = await browser.get(f"/console/brand/claims/new?profile={profile}")
    assert "DNS record" in wizard.text
    refused = await browser.submit(page, "/console/brand/claims/new", profile=profile, kinds="document")
    assert refused.status == 400
    created = await browser.submit(page, "/console/brand/claims/new", profile=profile, kinds="dns_txt")
    assert created.status == 303, created.text
    claim = created.header("location") or ""
    shown = (await browser.get(claim)).text
    assert "_joinery.fjord.example" in shown
    value = shown.partition("joinery-verification=")[2][:32]
    application.name_records.put("_joinery.fjord.example", "TXT", f"joinery-verification={value}")
    assert (await browser.submit(page, f"{claim}/check")).status == 303
    assert "Approved" in (await browser.get(claim)).text
    assert "Ask the operator" in (await browser.get("/console/brand")).text
    assert (await browser.submit(page, f"{claim}/withdraw")).status == 409


async def test_retailers_see_the_directory_only(application: ApplicationHarness) -> None:
    await create_gathered(application)
    browser = await application.open_browser()
    directory = await browser.get("/console/vendors")
    assert "fjord.example" in directory.text
    assert "/console/brand" not in directory.text
    assert (await browser.get("/console/brand")).status == 403
