"""Console pages that export a view of the catalogue, once or by a schedule."""

import re
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
import pytest_asyncio

from adapters.http.sockets import VettedSockets
from adapters.sftp import SftpTarget
from domain.exports.ports import ExportStore, FileTargets, ScheduledExportStore
from domain.exports.schedules import TargetKind
from domain.kernel.paging import PageRequest
from domain.kernel.tenancy import Tenant
from domain.sources.ports import SourceStore
from entrypoints.console.pages.export_schedules import compute_fingerprint
from tests.http.application import OPERATOR, ApplicationHarness, run_application
from tests.http.browser import BrowserPage, ConsoleBrowser
from tests.support import builders, catalogues
from tests.support.sftp import PASSWORD, USER, run_sftp_server

pytestmark = pytest.mark.asyncio
PAGE = "/console/catalogue/export"
EXPORTS = "/console/organisation/exports"
SCHEDULES = f"{EXPORTS}/schedules"
HOSTILE = '=<script>alert("x")</script>'


@pytest_asyncio.fixture
async def application() -> AsyncIterator[ApplicationHarness]:
    async with run_application() as application:
        tenant = Tenant(application.orgs["Elm"].id, True)
        source = builders.source(name=f"Feed {HOSTILE}")
        products = [builders.product(source.id, application.orgs["Elm"].catalogues[0], f"P{n}") for n in range(3)]
        for number, product in enumerate(products):
            product.data = {
                "title": f"{HOSTILE} {number}",
                "brand": "Lindgren" if number else "Other",
                "description": "d",
            }
            builders.offer(builders.variant(product, f"{product.key}-1"), source=source.id)
        async with application.uow.begin(tenant, OPERATOR) as tx:
            await tx[SourceStore].add(source)
        await catalogues.add_products(application.uow, tenant, *products)
        yield application


async def list_exports(application: ApplicationHarness, name: str = "Elm") -> list[object]:
    async with application.uow.begin_reading(Tenant(application.orgs[name].id, True)) as tx:
        return list((await tx[ExportStore].page(PageRequest(limit=10))).items)


def read_cells(page: BrowserPage, tag: str = "td") -> list[str]:
    preview = page.text.split('id="preview"')[1]
    return re.findall(rf"<{tag}(?: [^>]*)?>(.*?)</{tag}>", preview)


async def test_a_view_is_previewed_and_exported(application: ApplicationHarness) -> None:
    browser = await application.open_browser("Elm", "owner")
    view = urlencode(
        [("brand", "Lindgren"), ("format", "csv"), ("columns", "title"), ("columns", "sku"), ("locale", "de")]
    )
    page = await browser.get(f"{PAGE}?{view}")
    assert page.status == 200 and "Brand: Lindgren" in page.text and "<script>alert" not in page.text
    assert read_cells(page, "th") == ["Titel", "SKU"] and len(read_cells(page)) == 4
    assert not await list_exports(application), "a preview exports nothing"
    part = await browser.get(f"{PAGE}?{view}&format=xlsx&columns=price", hx_request="true", hx_target="preview")
    assert part.text.startswith('<section id="preview"') and "Preis" in part.text and "csrf" not in part.text
    started = await browser.follow(
        await browser.post(
            PAGE, csrf=page.field("csrf"), submission_id=page.field("submission_id"), brand="Lindgren", format="xlsx",
            columns="title,sku", locale="de", row_by="product", units="metric", action="export",
        )
    )  # fmt: skip
    assert (
        "Excel (XLSX)" in started.text and "Brand: Lindgren" in started.text and 'hx-trigger="every 3s"' in started.text
    )
    [export] = await list_exports(application)
    assert (export.filters.brand, export.layout.columns, export.layout.row_by, export.layout.locale) == (  # type: ignore[attr-defined]
        "Lindgren", ("title", "sku"), "product", "de",
    )  # fmt: skip


@pytest.mark.parametrize("format", ["xlsx", "csv", "jsonl", "shopify_csv", "google_merchant_xml"])
async def test_every_format_has_a_page(application: ApplicationHarness, format: str) -> None:
    browser = await application.open_browser("Elm", "owner")
    link = urlencode({"link_template": "https://shop.example/{handle}"})
    page = await browser.get(f"{PAGE}?format={format}&{link}")
    assert page.status == 200 and 'id="preview"' in page.text
    if format == "shopify_csv":
        assert "Handle" in read_cells(page, "th") and "&#39;=&lt;script" not in page.text
    if format == "google_merchant_xml":
        assert "There is no image." in page.text and "second file" in page.text
        assert "Enter the address" in (await browser.get(f"{PAGE}?format={format}")).text


async def test_selected_products_are_exported_by_id(application: ApplicationHarness) -> None:
    browser = await application.open_browser("Elm", "owner")
    ids = ",".join(f"prod_{number:022d}" for number in range(300))
    start = await browser.get(PAGE)
    page = await browser.submit(start, PAGE, id=ids, action="preview")
    assert page.status == 200 and "Selected products: 300" in page.text and "No products match" in page.text
    shown = await browser.follow(await browser.submit(page, PAGE, id=ids, format="csv", action="export"))
    assert "Selected products: 300" in shown.text
    [export] = await list_exports(application)
    assert len(export.filters.id) == 300  # type: ignore[attr-defined]
    rendered = (await (await application.create_client("Elm")).get("/v1/exports")).json()["data"][0]["filters"]
    assert len(rendered["id"]) == 100 and rendered["id_count"] == 300


async def test_invalid_filters_and_layouts_are_explained(application: ApplicationHarness) -> None:
    browser = await application.open_browser("Elm", "owner")
    page = await browser.get(f"{PAGE}?category=nonsense&format=csv")
    assert page.status == 400 and 'role="alert"' in page.text
    start = await browser.get(PAGE)
    refused = await browser.submit(
        start, PAGE, format="google_merchant_xml", link_template="javascript:{sku}", action="export"
    )
    assert refused.status == 422 and "f-link_template-error" in refused.text
    assert (await browser.get(f"{PAGE}?format=exe&columns=password&units=stone&row_by=x&locale=xx")).status == 200
    assert not await list_exports(application)


async def test_only_members_who_may_export_see_the_page(application: ApplicationHarness) -> None:
    editor, owner = await application.open_browser("Elm", "editor"), await application.open_browser("Elm", "owner")
    for path in (PAGE, f"{SCHEDULES}/new"):
        assert (await editor.get(path)).status == 403
        assert (await editor.post(path, csrf="x")).status == 403
        assert (await owner.post(path, csrf="x")).status == 403, "without the token of the session"
    listed = await editor.get(SCHEDULES)
    assert listed.status in (200, 403) and "New schedule" not in listed.text


async def submit_schedule(browser: ConsoleBrowser, page: BrowserPage, **fields: str) -> BrowserPage:
    standard = {
        "name": HOSTILE,
        "time": "07:30",
        "zone": "Europe/Berlin",
        "weekdays": "1",
        "file_name": "products-{date}",
        "format": "csv",
    }
    return await browser.submit(page, f"{SCHEDULES}/new", **standard | fields)


async def test_a_schedule_is_created_run_paused_and_deleted(application: ApplicationHarness, tmp_path: Path) -> None:
    browser, other = await application.open_browser("Elm", "owner"), await application.open_browser("Oak", "owner")
    application.dependencies[FileTargets][TargetKind.SFTP] = SftpTarget(VettedSockets(frozenset({"127.0.0.1"})))
    start = await browser.get(PAGE)
    new = await browser.follow(
        await browser.submit(start, PAGE, brand="Lindgren", format="csv", columns="sku", action="schedule")
    )
    assert "Brand: Lindgren" in new.text and 'name="brand" value="Lindgren"' in new.text
    assert "csrf" not in (new.header("location") or "")
    async with run_sftp_server(tmp_path) as server:
        sftp = {
            "target_kind": "sftp",
            "host": "127.0.0.1",
            "port": str(server.port),
            "user": USER,
            "brand": "Lindgren",
            "columns": "sku",
        }
        wrong = await submit_schedule(browser, new, **sftp, password="wrong secret", action="test")
        assert wrong.status == 422 and "refused the user name" in wrong.text and "wrong secret" not in wrong.text
        tested = await submit_schedule(browser, new, **sftp, password=PASSWORD, action="test")
        assert "The target works." in tested.text and "SHA256:" in tested.text and PASSWORD not in tested.text
        part = await browser.submit(
            new,
            f"{SCHEDULES}/new",
            {"hx-request": "true", "hx-target": "test_result"},
            **sftp,
            password="x",
            action="test",
        )
        assert part.status == 200 and part.text.startswith('<div id="test_result"') and "notice bad" in part.text
        saved = await submit_schedule(
            browser, tested, **sftp, password=PASSWORD, host_key=tested.field("host_key"), action="save"
        )
        listed = await browser.follow(saved)
    assert (
        "Schedule created" in listed.text
        and f"sftp://127.0.0.1:{server.port}" in listed.text
        and "<script>alert" not in listed.text
    )
    assert "07:30 Europe/Berlin" in listed.text and "Mon" in listed.text and PASSWORD not in listed.text
    async with application.uow.begin_reading(Tenant(application.orgs["Elm"].id, True)) as tx:
        [schedule] = (await tx[ScheduledExportStore].page(PageRequest(limit=10))).items
    assert (
        schedule.filters.brand == "Lindgren"
        and schedule.target.host_key
        and PASSWORD.encode() not in schedule.credentials
    )
    entry = (await (await application.create_client("Elm")).get("/v1/audit-events?object=scheduled_export")).json()[
        "data"
    ][0]
    assert entry["after"]["target"]["host"] == "127.0.0.1" and PASSWORD not in str(entry)
    path = f"{SCHEDULES}/{schedule.id}"
    for action in ("pause", "run", "delete"):
        assert (await other.submit(await other.get(PAGE), f"{path}/{action}", paused="true")).status == 404
    running = await browser.follow(await browser.submit(listed, f"{path}/run"))
    assert "Exporting" in running.text and 'hx-trigger="every 3s"' in running.text
    again = await browser.submit(running, f"{path}/run")
    assert again.status == 409 and "not sent yet" in again.text
    paused = await browser.follow(await browser.submit(running, f"{path}/pause", paused="true"))
    assert "Paused" in paused.text and "Resume" in paused.text
    resumed = await browser.follow(await browser.submit(paused, f"{path}/pause", paused="false"))
    assert "Schedule resumed" in resumed.text
    gone = await browser.follow(await browser.submit(resumed, f"{path}/delete"))
    assert "No scheduled exports yet" in gone.text


@pytest.mark.parametrize("key", ["ssh-ed25519", "ssh-ed25519 ²", "ssh-ed25519 A"])
async def test_a_host_key_that_is_not_one_has_no_fingerprint(key: str) -> None:
    assert compute_fingerprint(key) == ""


async def test_invalid_schedules_show_the_errors_of_their_fields(application: ApplicationHarness) -> None:
    browser = await application.open_browser("Elm", "owner")
    page = await browser.get(f"{SCHEDULES}/new?brand=Lindgren&format=csv")
    mail = {"target_kind": "mail", "members": browser.user.id, "brand": "Lindgren", "action": "save"}
    for fields, field in (
        ({"name": " "}, "f-name-error"), ({"time": "25:00"}, "f-time-error"), ({"time": ""}, "f-time-error"), ({"zone": "Mars"}, "f-zone-error"),
        ({"file_name": "../x"}, "f-file_name-error"), ({"target_kind": "sftp", "host": "a b"}, "f-host-error"), ({"target_kind": "bucket"}, "f-bucket-error"),
    ):  # fmt: skip
        refused = await submit_schedule(browser, page, **mail | fields)
        assert refused.status in (400, 422) and field in refused.text, fields
        assert 'name="brand" value="Lindgren"' in refused.text
    private = {"target_kind": "sftp", "host": "127.0.0.1", "port": "22", "user": "root", "password": "p"}
    refused = await submit_schedule(browser, page, **mail | private)
    assert refused.status == 422 and "not public" in refused.text
    saved = await browser.follow(await submit_schedule(browser, page, **mail))
    assert "Schedule created" in saved.text and browser.user.email in saved.text
