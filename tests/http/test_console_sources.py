"""Console pages of sources: previews, changes by version, and problems in the cells of the sheet."""

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from html import unescape
from typing import Any

import pytest
import pytest_asyncio

from domain.catalogue.model import Stream
from domain.ingestion.ports import FetchFailed
from domain.kernel.problems import Problem
from domain.kernel.resource import require_found
from domain.kernel.tenancy import Tenant
from domain.mappings.ports import MappingStore
from domain.publishing.usecases.licences import LicenceService
from domain.runs.ports import RunStore
from domain.sources.model import StatusReason
from domain.sources.usecases.network_connector import CombinedConnectors
from tests.http.application import OPERATOR
from tests.http.browser import HOST, BrowserPage, ConsoleBrowser
from tests.http.sources import FILE_SOURCE, URL_SOURCE, SourceHarness, open_source_harness
from tests.support import builders

pytestmark = pytest.mark.asyncio
HOSTILE = '"><script>alert(1)</script><img src=x onerror=y>'
FEED = b"SKU,Title,Price,Width\nA-1,Oak chair,99.00,45 cm\nA-2,Oak table,199.00,ca. wide\n"
EDGE = "edge"


@dataclass
class SourceConsole:
    """Running application with browsers of its members."""

    sources: SourceHarness
    owner: ConsoleBrowser

    async def open_viewer(self) -> ConsoleBrowser:
        return await self.sources.application.open_browser(role="viewer")


@pytest_asyncio.fixture
async def harness() -> AsyncIterator[SourceConsole]:
    async with open_source_harness() as harness:
        yield SourceConsole(harness, await harness.application.open_browser())


async def send_file(
    browser: ConsoleBrowser, page: BrowserPage, target: str, content: bytes, name: str = "prices.csv"
) -> BrowserPage:
    """Submit a form with a file."""
    parts = [("csrf", page.field("csrf")), ("submission_id", page.field("submission_id"))]
    body = "".join(
        f'--{EDGE}\r\nContent-Disposition: form-data; name="{key}"\r\n\r\n{value}\r\n' for key, value in parts
    ).encode()
    body += f'--{EDGE}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\nContent-Type: text/csv\r\n\r\n'.encode()
    body += content + f"\r\n--{EDGE}--\r\n".encode()
    headers = {
        "content-type": f"multipart/form-data; boundary={EDGE}",
        "origin": f"https://{HOST}",
        "sec-fetch-site": "same-origin",
    }
    return await browser.send("POST", target, body, headers)


async def test_a_file_is_previewed_and_connected(harness: SourceConsole) -> None:
    owner = harness.owner
    empty = await owner.get("/console/sources")
    assert "Upload a file" in empty.text
    form = await owner.get("/console/sources/new/file")
    assert (await send_file(owner, form, "/console/sources/new/file", b"")).status == 422
    looked = await owner.follow(await send_file(owner, form, "/console/sources/new/file", FEED, "../oak-2026.csv"))
    assert "Oak 2026" in looked.text and "Oak chair" in looked.text and "not a length" in unescape(looked.text)
    assert (await harness.sources.client.get("/v1/sources")).json()["data"] == [], "nothing is kept yet"
    draft = looked.field("draft")
    priced = await owner.get(
        f"/console/sources/new/file?draft={draft}&name=Oak&currency=usd", hx_request="true", hx_target="preview"
    )
    assert "$99.00" in priced.text and "<html" not in priced.text
    wrong = await owner.submit(looked, "/console/sources/new/file/connect", draft=draft, name="Oak", currency="zzzz")
    assert wrong.status == 400 and 'id="f-currency-error"' in wrong.text
    made = await owner.submit(
        looked, "/console/sources/new/file/connect", draft=draft, name="Oak", currency="usd", licence_basis="own_data"
    )
    run = await owner.follow(made)
    assert "Oak is connected" in run.text and 'data-events="/console/runs/' in run.text
    [source] = (await harness.sources.client.get("/v1/sources")).json()["data"]
    assert (source["name"], source["config"], source["licence_basis"]) == ("Oak", {"currency": "usd"}, "own_data")
    assert (await harness.sources.list_audit_entries(source["id"]))[0].context.actor.kind == "user"
    [upload] = [
        key for key in harness.sources.services.objects._objects if key.startswith("uploads/") and draft not in key
    ][-1:]
    assert harness.sources.services.objects._objects[upload] == FEED


async def test_files_and_sources_of_others_are_not_found(harness: SourceConsole) -> None:
    owner, other = harness.owner, await harness.sources.application.open_browser("Oak")
    form = await owner.get("/console/sources/new/file")
    looked = await owner.follow(await send_file(owner, form, "/console/sources/new/file", FEED))
    token = looked.field("draft")
    for stolen in (token, token[:-2] + "AA", "x", "." + token.partition(".")[2]):
        assert (await other.get(f"/console/sources/new/file?draft={stolen}")).status == 404
    source = await harness.sources.create_source()
    run = (await harness.sources.client.post(f"/v1/sources/{source['id']}/runs", {})).json()
    for path in (
        f"/console/sources/{source['id']}", f"/console/sources/{source['id']}/settings", f"/console/sources/{source['id']}/runs",
        f"/console/sources/{source['id']}/columns", f"/console/sources/{source['id']}/categories", f"/console/sources/{source['id']}/mail",
        f"/console/runs/{run['id']}", f"/console/runs/{run['id']}/sheet", f"/console/runs/{run['id']}/progress",
        "/console/mappings/map_0000000000000000000000", "/console/probes/prb_0000000000000000000000",
    ):  # fmt: skip
        assert (await other.get(path)).status == 404, path
    page = await other.get("/console/sources/new")
    for what in ("pause", "run", "test", "replay"):
        assert (await other.submit(page, f"/console/sources/{source['id']}/{what}")).status == 404
    assert (await owner.post(f"/console/sources/{source['id']}/pause")).status == 403, "without the form's token"


async def test_viewers_see_no_forms(harness: SourceConsole) -> None:
    source = await harness.sources.create_source()
    run = (await harness.sources.client.post(f"/v1/sources/{source['id']}/runs", {})).json()
    viewer = await harness.open_viewer()
    for path in (
        "/console/sources", f"/console/sources/{source['id']}", f"/console/sources/{source['id']}/runs",
        f"/console/sources/{source['id']}/columns", f"/console/sources/{source['id']}/categories", f"/console/runs/{run['id']}",
    ):  # fmt: skip
        page = await viewer.get(path)
        main = page.text.partition("<main")[2]
        assert page.status == 200 and "<form" not in main and "/sources/new" not in main, path
    for path in ("/console/sources/new", "/console/sources/new/file", f"/console/sources/{source['id']}/settings"):
        assert (await viewer.get(path)).status == 403
    start = await viewer.get("/console/sources")
    assert (await viewer.submit(start, f"/console/sources/{source['id']}/pause")).status == 403


async def test_settings_are_saved_at_their_version_only(harness: SourceConsole) -> None:
    source = await harness.sources.create_source(schedule={"interval_minutes": 90})
    path, owner = f"/console/sources/{source['id']}", harness.owner
    form = await owner.get(f"{path}/settings")
    fields = {"version": form.field("version"), "config.url": URL_SOURCE["config"]["url"], "licence_basis": "own_data"}
    saved = await owner.submit(form, f"{path}/settings", name="Lindgren AB", **fields)
    assert "Saved" in (await owner.follow(saved)).text
    assert (await harness.sources.load_source(source["id"])).schedule.interval_minutes == 90
    late = await owner.submit(form, f"{path}/settings", name="Mine", **fields)
    assert late.status == 412 and "another person changed this source" in late.text and 'value="Mine"' in late.text
    assert "Lindgren AB" in late.text and (await harness.sources.load_source(source["id"])).name == "Lindgren AB"
    again = await owner.submit(late, f"{path}/settings", name="", **(fields | {"version": late.field("version")}))
    assert again.status == 400 and 'id="f-name-error"' in again.text
    stale = await owner.submit(late, f"{path}/pause", version="1")
    assert stale.status == 412


async def test_credentials_are_stored_and_never_shown(harness: SourceConsole) -> None:
    source = await harness.sources.create_source(kind="api", connector="shop", config={"url": "https://shop.example"})
    path, owner = f"/console/sources/{source['id']}", harness.owner
    form = await owner.get(f"{path}/settings")
    assert 'type="password"' in form.text
    missing = await owner.submit(form, f"{path}/credentials")
    assert missing.status == 400 and "credentials" in missing.text
    stored = await owner.submit(form, f"{path}/credentials", **{"credentials.0.token": "tok-very-secret"})
    assert "Credentials saved" in (await owner.follow(stored)).text
    assert "tok-very-secret" not in (await owner.get(f"{path}/settings")).text
    await owner.submit(form, f"{path}/credentials", delete_credentials="true")
    assert not (await harness.sources.load_source(source["id"])).has_credentials


async def test_a_shop_is_tested_before_it_is_connected(harness: SourceConsole) -> None:
    harness.sources.services.connectors.feed = [FEED]
    owner = harness.owner
    form = await owner.get("/console/sources/new/shop?connector=shop")
    typed = {
        "connector": "shop",
        "name": HOSTILE,
        "config.url": "https://shop.example",
        "credentials.0.token": "tok-secret",
    }
    looked = await owner.submit(form, "/console/sources/new/shop", action="preview", **typed)
    assert "Oak chair" in looked.text and "tok-secret" not in looked.text and "<script>alert" not in looked.text
    assert harness.sources.services.connectors.tasks[-1].credentials == {"token": "tok-secret"}
    assert (await harness.sources.client.get("/v1/sources")).json()["data"] == []
    harness.sources.services.connectors.feed = FetchFailed("credentials_refused", "The shop refuses the token.")
    refused = await owner.submit(looked, "/console/sources/new/shop", action="connect", **typed)
    assert "refuses the token" in refused.text and "Ignore failed preview" in refused.text
    harness.sources.services.connectors.feed = [FEED]
    made = await owner.submit(refused, "/console/sources/new/shop", action="connect", **typed)
    [source] = (await harness.sources.client.get("/v1/sources")).json()["data"]
    assert made.header("location") == f"/console/sources/{source['id']}" and source["has_credentials"]
    private = await owner.submit(
        refused, "/console/sources/new/shop", action="preview", **(typed | {"config.url": "http://10.0.0.1/"})
    )
    assert private.status == 422


async def test_mail_push_and_addresses(harness: SourceConsole) -> None:
    owner = harness.owner
    form = await owner.get("/console/sources/new/mail")
    made = await owner.submit(
        form, "/console/sources/new/mail", name="By mail", senders="orders@vendor.example\n vendor.example"
    )
    page = await owner.follow(made)
    [address] = re.findall(r"[a-z0-9]{20}@in\.joinery\.test", page.text)[:1]
    place = made.header("location") or ""
    mail = await owner.get(f"{place}/mail")
    assert address in mail.text and "No emails yet" in mail.text
    await owner.submit(mail, f"{place}/mail/rotate")
    assert address not in (await owner.get(f"{place}/mail")).text
    bad = await owner.submit(form, "/console/sources/new/mail", name="X", senders="not an address")
    assert bad.status == 400 and "senders" in bad.text
    pushed = await owner.submit(form, "/console/sources/new/push", name="Ours", currency="USD")
    assert pushed.status == 303
    probe = await owner.submit(form, "/console/sources/new/address", url="vendor.example")
    looking = await owner.follow(probe)
    assert "Waiting to start" in looking.text and "/progress" in looking.text and "Refresh" in looking.text
    assert (await owner.submit(form, "/console/sources/new/address", url="http://127.0.0.1/")).status == 422


async def test_a_catalogue_on_the_network_is_followed(harness: SourceConsole) -> None:
    unused: Any = None
    network = CombinedConnectors(unused, unused, unused, unused)
    harness.sources.services.connectors.known.append(require_found(network.find_connector("network")))
    application, owner, path = harness.sources.application, harness.owner, "/console/sources/new/network"
    plan = application.orgs["Fjord"].plan
    assert plan is not None
    vendor = await application.create_organisation("Falk", plan, "vendor")
    catalogue = vendor.get_catalogue_id(livemode=True)
    assert path in (await owner.get("/console/sources/new")).text
    form = await owner.get(f"{path}?catalogue={catalogue}")
    assert f'value="{catalogue}"' in form.text
    refused = await owner.submit(form, path, name="Falk", catalogue=catalogue)
    assert refused.status == 422 and "no such catalogue" in refused.text and f'value="{catalogue}"' in refused.text
    assert (await owner.submit(form, path, name="Falk", catalogue="Falk")).status == 400
    async with application.uow.begin(Tenant(vendor.id, True), OPERATOR) as tx:
        await LicenceService().grant_to_everyone(tx)
    made = await owner.submit(refused, path, name="Falk", catalogue=catalogue)
    place = made.header("location") or ""
    assert (await owner.follow(made)).status == 200 and "licence_basis" not in (
        await owner.get(f"{place}/settings")
    ).text
    source = await harness.sources.load_source(place.rpartition("/")[2])
    assert (source.connector, source.config, source.licence_basis) == ("network", {"catalogue": catalogue}, "unknown")
    renamed = await owner.submit(
        await owner.get(f"{place}/settings"),
        f"{place}/settings",
        name="Falk (network)",
        **{"config.catalogue": catalogue},
    )
    assert renamed.status == 303


async def test_errors_are_explained_and_feed_content_is_escaped(harness: SourceConsole) -> None:
    source = await harness.sources.create_source(name=HOSTILE)
    await harness.sources.change_source(
        source["id"], status="blocked", status_reason=StatusReason("fetch_refused", f"403 {HOSTILE}")
    )
    problems = (
        Problem("price", "unreadable", f"{HOSTILE} is not a price.", line=3, column="Price", external_id=HOSTILE),
    )
    run = builders.run(
        source["id"], status="failed", problems=problems, stats={"problems": 1}, created_at=harness.sources.application.clock.now(),
        snapshot="snapshots/x",
        stream=Stream.CATALOGUE,
    )  # fmt: skip
    async with harness.sources.application.uow.begin(harness.sources.tenant, OPERATOR) as tx:
        await tx[RunStore].add(run)
    harness.sources.services.objects._write("snapshots/x", f"SKU,Price\nA,1\nB,{HOSTILE}\nC,3\n".encode())
    listed = await harness.owner.get("/console/sources")
    assert "Access refused: 403" in listed.text and "<title>Nov 20: 1 failed</title>" in listed.text
    sheet = await harness.owner.get(f"/console/runs/{run.id}/sheet?kind=unreadable&field=price")
    assert 'class="cell-with-problem"' in sheet.text and ">4</a></th>" in sheet.text
    for path in ("/console/sources", f"/console/sources/{source['id']}", f"/console/sources/{source['id']}/settings",
                 f"/console/sources/{source['id']}/runs", f"/console/runs/{run.id}", f"/console/runs/{run.id}/sheet"):  # fmt: skip
        page = await harness.owner.get(path)
        assert page.status == 200 and "<script>alert" not in page.text and "&lt;script&gt;" in page.text, path


async def test_columns_are_reviewed_with_their_cells(harness: SourceConsole) -> None:
    source = await harness.sources.create_source(**FILE_SOURCE, config={"currency": "usd"})
    samples = (("A-1", "80 cm", HOSTILE),)
    mapping = builders.mapping(source["id"], "Item No.", "Breite", HOSTILE, samples=samples, stream=Stream.CATALOGUE)
    async with harness.sources.application.uow.begin(harness.sources.tenant, OPERATOR) as tx:
        await tx[MappingStore].add(mapping)
    path, owner = f"/console/mappings/{mapping.id}", harness.owner
    form = await owner.get(path)
    assert 'value="SKU (item number)"' in form.text and "<script>alert" not in form.text
    update = {"hx-request": "true", "hx-target": "preview"}
    tried = await owner.submit(form, f"{path}/preview", update, **{"shown.0.1": "", "field.0.1": "Width"})
    assert "80 cm" in tried.text and "<html" not in tried.text and 'name="set.0.1.unit"' in tried.text
    tried = await owner.submit(form, f"{path}/preview", update, **{"field.0.1": "nonsense"})
    assert "does not exist" in tried.text and "80 cm" not in tried.text
    wrong = await owner.submit(form, path, **{"field.0.0": "sku", "field.0.1": "widht", "field.0.2": ""})
    assert wrong.status == 400 and 'value="widht"' in wrong.text and "dimensions.width" in wrong.text
    none = await owner.submit(form, path, **{"field.0.0": "", "field.0.1": "", "field.0.2": ""})
    assert none.status == 422
    kept = await owner.submit(
        form,
        path,
        **{"field.0.0": "SKU (item number)", "field.0.1": "width", "set.0.1.unit": "cm", "field.0.2": ""},
    )
    assert kept.status == 303, kept.text
    stored = (await harness.sources.client.get(f"/v1/mappings/{mapping.id}")).json()
    assert stored["status"] == "confirmed" and [one["field"] for one in stored["columns"]] == [
        "sku",
        "dimensions.width",
    ]


async def test_the_stream_ends_with_its_run(harness: SourceConsole) -> None:
    source = await harness.sources.create_source()
    run = (await harness.sources.client.post(f"/v1/sources/{source['id']}/runs", {})).json()
    async with harness.sources.application.uow.begin(harness.sources.tenant, OPERATOR) as tx:
        stored: Any = await tx[RunStore].get(run["id"])
        await tx[RunStore].save(stored.with_end("succeeded", tx.now))
    stream = await harness.owner.get(f"/console/runs/{run['id']}/progress")
    assert stream.header("content-type") == "text/event-stream; charset=utf-8"
    assert stream.text.startswith("event: show\ndata: ") and stream.text.endswith("event: end\ndata: reload\n\n")
    assert "Succeeded" in stream.text


async def test_a_source_is_paused_imported_and_tested(harness: SourceConsole) -> None:
    source = await harness.sources.create_source()
    path, owner = f"/console/sources/{source['id']}", harness.owner
    page = await owner.get(path)
    assert (await owner.submit(page, f"{path}/run")).header(
        "location",
    ) != path
    busy = await owner.submit(page, f"{path}/run", stream="catalogue")
    assert busy.status in (303, 409)
    harness.sources.services.connectors.feed = [FEED]
    assert "Test succeeded" in (await owner.submit(page, f"{path}/test")).text
    paused = await owner.follow(await owner.submit(page, f"{path}/pause", version=page.field("version")))
    assert "Paused: no runs start" in paused.text and "Resume" in paused.text
    resumed = await owner.follow(await owner.submit(paused, f"{path}/resume", version=paused.field("version")))
    assert "Source resumed" in resumed.text
    assert (await owner.submit(page, f"{path}/destroy")).status == 404


async def test_category_rules_are_set(harness: SourceConsole) -> None:
    source = await harness.sources.create_source()
    page = await harness.owner.get(f"/console/sources/{source['id']}/categories")
    assert page.status == 200 and "No categories" in page.text
    none = await harness.owner.submit(
        await harness.owner.get("/console/sources/new"),
        f"/console/sources/{source['id']}/categories",
        path='["X"]',
        category="Seating",
    )
    assert none.status == 303
