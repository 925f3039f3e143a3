"""Export of a view in Chromium: filter, choose columns, export a workbook and open it; and a schedule."""

import asyncio
import io
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from adapters.files.objects import FileObjects
from adapters.files.workspaces import FileWorkspaces
from domain.exports.model import EXECUTE_EXPORT
from domain.jobs.model import build_lane_name
from domain.jobs.ports import JobDispatcher
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from domain.people.model import AuthMethod, User
from domain.people.usecases.sessions import ClientInfo
from domain.secrets.keys import SigningKeys, derive_link_key
from domain.sources.ports import SourceStore
from entrypoints.areas import exports
from entrypoints.operations.operation import create_handlers
from ports.workspaces import Workspaces
from tests.browser.page_checks import check_page
from tests.browser.service import LiveService, run_service
from tests.http.application import OPERATOR, ApplicationHarness
from tests.support import builders, catalogues

pytestmark = pytest.mark.browser


async def _prepare(application: ApplicationHarness) -> dict[str, Any]:
    """Create an owner and products of two brands."""
    now = datetime.now(UTC)
    application.clock.set(now)
    user = await application.people.add(User(new_id("usr"), "ada@elm.example", "Ada Moreau", now, now))
    await application.add_member(user, "Elm")
    container, tenant = application.dependencies, Tenant(application.orgs["Elm"].id, True)
    container[Workspaces] = FileWorkspaces()
    source = builders.source(name="Oak & Co.")
    products = [builders.product(source.id, application.orgs["Elm"].catalogues[0], f"P{n}") for n in range(30)]
    for number, product in enumerate(products):
        product.data = {"title": f"=Sofa {number}", "brand": "Lindgren" if number % 2 else "Other"}
        builders.offer(builders.variant(product, f"{product.key}-1"), source=source.id)
    async with application.uow.begin(tenant, OPERATOR) as tx:
        await tx[SourceStore].add(source)
    await catalogues.add_products(application.uow, tenant, *products)
    return {"owner": user, "tenant": tenant}


@pytest.fixture(scope="module")
def service() -> Iterator[LiveService]:
    # without a base URL, links are relative to the page
    objects = FileObjects(Path(tempfile.mkdtemp()), "", SigningKeys(derive_link_key("s" * 32)))
    with run_service(_prepare, objects=objects) as made:
        yield made


async def _run_exports(service: LiveService) -> None:
    container = service.application.dependencies
    lane = build_lane_name(service.prepared["tenant"].org, "exports:live")
    for job in await container[JobDispatcher].claim(lane, 5, timedelta(minutes=1)):
        await create_handlers([exports.AREA], container)[EXECUTE_EXPORT](job, asyncio.Event())


def _open_page(browser: Any, service: LiveService, **more: Any) -> Any:
    _, cookie = service.run(
        service.application.sessions.start(service.prepared["owner"], [AuthMethod.PASSWORD], ClientInfo("127.0.0.1"))
    )
    context = browser.new_context(reduced_motion="reduce", accept_downloads=True, **more)
    context.add_cookies([{"name": "joinery", "value": cookie, "url": service.address}])
    return context.new_page()


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without"])
def test_a_view_is_exported_as_a_workbook(browser: Any, service: LiveService, scripts: bool) -> None:
    page = _open_page(
        browser, service, java_script_enabled=scripts, locale="en-GB", viewport={"width": 1200, "height": 900}
    )
    page.goto(f"{service.address}/console/catalogue?brand=Lindgren")
    assert page.locator("tbody tr").count() == 15
    page.goto(f"{service.address}/console/catalogue/export?brand=Lindgren")
    page.get_by_text("Columns of Excel and CSV").click()
    values = page.eval_on_selector_all(".column-choice input:checked", "boxes => boxes.map(box => box.value)")
    for value in set(values) - {"title", "sku", "price"}:
        page.locator(f".column-choice input[value={value}]").uncheck()
    if not scripts:
        page.get_by_role("button", name="Update preview").click()
    headings = page.locator("#preview th")
    for _ in range(50):
        if headings.all_inner_texts() == ["Title", "SKU", "Price"]:
            break
        page.wait_for_timeout(100)
    assert headings.all_inner_texts() == ["Title", "SKU", "Price"]
    page.get_by_role("button", name="Export", exact=True).click()
    page.wait_for_url("**/console/organisation/exports")
    assert page.get_by_text("Brand: Lindgren").first.is_visible()
    service.run(_run_exports(service))
    if not scripts:
        page.reload()
    link = page.locator("section.export").first.get_by_role("link", name="Download").first
    link.wait_for()
    with page.expect_download() as downloading:
        link.click()
    assert downloading.value.suggested_filename.endswith(".xlsx")
    sheet = openpyxl.load_workbook(io.BytesIO(Path(downloading.value.path()).read_bytes())).active
    rows = list(sheet.iter_rows(values_only=True))
    assert rows[0] == ("Title", "SKU", "Price") and len(rows) == 16
    assert {row[0] for row in rows[1:]} == {f"=Sofa {number}" for number in range(1, 30, 2)}
    assert all(cell.data_type != "f" for row in sheet.iter_rows() for cell in row)


@pytest.mark.parametrize("width", [1200, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_pages_are_accessible(browser: Any, service: LiveService, width: int, scheme: str) -> None:
    page = _open_page(browser, service, viewport={"width": width, "height": 900}, color_scheme=scheme, bypass_csp=True)
    for name, path in (
        ("export", "/console/catalogue/export?brand=Lindgren"),
        ("export-shopify", "/console/catalogue/export?format=shopify_csv"),
        ("schedule", "/console/organisation/exports/schedules/new?brand=Lindgren"),
        ("schedules", "/console/organisation/exports/schedules"),
    ):
        page.goto(service.address + path)
        page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
        check_page(page, f"{name}-{width}-{scheme}")


def test_a_schedule_is_created_with_the_keyboard(browser: Any, service: LiveService) -> None:
    page = _open_page(browser, service, viewport={"width": 1200, "height": 900}, locale="en-GB")
    page.goto(f"{service.address}/console/catalogue/export?brand=Lindgren")
    page.get_by_role("button", name="Schedule").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/schedules/new?**")
    page.get_by_label("Name", exact=True).fill("Weekly list")
    page.get_by_label("Time zone").fill("Europe/Berlin")
    page.get_by_label("ada@elm.example").check()
    page.get_by_role("button", name="Test target").click()
    page.get_by_text("The target works.").wait_for()
    assert page.get_by_label("Name", exact=True).input_value() == "Weekly list"
    page.get_by_role("button", name="Create schedule").click()
    page.wait_for_url("**/exports/schedules")
    assert page.get_by_text("07:00 Europe/Berlin").is_visible()
    check_page(page, "schedules-filled")
    page.get_by_role("button", name="Run now").click()
    page.get_by_text("Exporting", exact=True).wait_for()
    service.run(_run_exports(service))
    page.get_by_text("Sending", exact=True).wait_for(timeout=10_000)
