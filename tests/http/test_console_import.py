"""Console pages for connecting files: the editor of columns, fixes of groups of problems, and problems of runs."""

import re
from collections.abc import AsyncIterator
from dataclasses import replace
from html import unescape
from io import BytesIO

import pytest
import pytest_asyncio
from openpyxl import load_workbook

from adapters.pluggy.host import load_connectors
from domain.catalogue.model import Stream
from domain.ingestion.mapping.learned import compute_header_digest
from domain.kernel.problems import Problem, ProblemKind
from domain.mappings.ports import MappingStore
from domain.runs.model import Run
from domain.runs.ports import RunStore
from entrypoints.reader import RejectingHttpClient
from tests.flows.service_processes import ROOT
from tests.http.application import OPERATOR
from tests.http.browser import BrowserPage
from tests.http.sources import FILE_SOURCE, open_source_harness
from tests.http.test_console_sources import HOSTILE, SourceConsole, send_file
from tests.support import builders

pytestmark = pytest.mark.asyncio
HEADER = "Artikelnummer;Bezeichnung;EK netto;Breite;Zorb\n"
PRICES = (HEADER + "".join(f"A-{n};Stuhl {n};{100 + n},50;{40 + n} cm;beech nat.\n" for n in range(1, 41))).encode(
    "cp1252"
)
PREVIEW = "/console/sources/new/file/preview"
UPDATE = {"hx-request": "true", "hx-target": "preview"}
PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + bytes(range(200))


@pytest_asyncio.fixture
async def harness() -> AsyncIterator[SourceConsole]:
    async with open_source_harness() as harness:
        fakes = harness.services.connectors
        real = load_connectors(ROOT / "plugins.toml", RejectingHttpClient(), release_version="0.1.0")
        fakes.known[:], fakes.parse_tables = real.list_connectors(), real.parse_tables  # type: ignore[method-assign]
        yield SourceConsole(harness, await harness.application.open_browser())


async def upload(harness: SourceConsole, content: bytes, name: str = "preise.csv") -> BrowserPage:
    """Upload a file and return its preview."""
    form = await harness.owner.get("/console/sources/new/file")
    return await harness.owner.follow(await send_file(harness.owner, form, "/console/sources/new/file", content, name))


async def test_a_fix_shows_its_effect_and_is_stored_with_the_source(harness: SourceConsole) -> None:
    owner = harness.owner
    shown = await upload(harness, PRICES)
    text = unescape(shown.text)
    assert "No column is mapped to the product name." not in text
    nameless = await upload(harness, PRICES.replace(b"Bezeichnung", b"Quux"))
    assert "No column is mapped to the product name." in nameless.text
    assert '<span class="count">40</span> <strong>Unknown currency</strong> <span>EK netto</span>' in text
    assert text.count("has no currency") < 8, "the 40 problems are one group with samples"
    assert "line 2" in text and "Use for all 40" in text
    draft = shown.field("draft")
    fixed = await owner.submit(
        shown, PREVIEW, draft=draft, name="Preise", problem_count="40", fix="currency", **{"fix.currency": "EUR"}
    )
    assert "<strong>40 problems → 0</strong>" in fixed.text and "€101.50" in fixed.text
    assert re.search(r'id="f-currency" name="currency" type="text" value="EUR"', fixed.text)
    assert (await harness.sources.client.get("/v1/sources")).json()["data"] == [], "nothing is stored yet"
    sent = {"draft": draft, "name": "Preise", "currency": "EUR", "field.0.4": "Materials", "from.0.4": "Beech nat."}
    changed = await owner.submit(fixed, PREVIEW, UPDATE, **sent, **{"to.0.4": "beech"})
    assert "<html" not in changed.text and 'id="r-0-4" hx-swap-oob="true"' in changed.text
    connected = await owner.submit(
        fixed, "/console/sources/new/file/connect", **sent, **{"to.0.4": "beech", "set.0.3.unit": "cm"}
    )
    assert connected.status == 303 and "/console/runs/" in (connected.header("location") or "")
    [source] = (await harness.sources.client.get("/v1/sources")).json()["data"]
    assert source["config"] == {"currency": "eur"}
    [mapping] = (await harness.sources.client.get(f"/v1/sources/{source['id']}/mappings")).json()["data"]
    columns = {column["column"]: column for column in mapping["columns"]}
    assert mapping["status"] == "confirmed" and mapping["confirmed_at"]
    assert columns["Zorb"]["field"] == "materials" and columns["Zorb"]["values"] == {"Beech nat.": "beech"}
    assert columns["Zorb"]["tier"] == "person" and columns["EK netto"]["field"] == "cost"
    [entry] = await harness.sources.list_audit_entries(mapping["id"])
    assert entry.context.actor.kind == "user" and entry.change.after["status"] == "confirmed"


async def test_the_order_of_dimensions_is_fixed_for_a_column(harness: SourceConsole) -> None:
    content = "SKU;Name;Maße\n" + "".join(f"A-{n};Stuhl {n};4{n} x 82 x 50 cm\n" for n in range(1, 6))
    shown = await upload(harness, content.encode())
    assert "<strong>Contradictory values</strong>" in shown.text and "Use for all 5" in shown.text
    fixed = await harness.owner.submit(
        shown, PREVIEW, draft=shown.field("draft"), name="Stühle", problem_count="5", fix="order:0.2",
        **{"fix.order.0.2": "bht"},
    )  # fmt: skip
    assert "<strong>5 problems → 0</strong>" in fixed.text


async def test_uncertain_columns_are_open_and_first(harness: SourceConsole) -> None:
    shown = await upload(harness, PRICES)
    order = re.findall(r'<details class="editor-column" id="c-0-(\d)"( open)?>', shown.text)
    assert [position for position, is_open in order if is_open] == [position for position, _ in order][
        : sum(map(bool, dict(order).values()))
    ]
    assert order[-1][1] == "" and 'href="#mapped-0"' in shown.text and 'href="#unmapped-0"' in shown.text
    assert '<option value="Cost price (net)">cost</option>' in shown.text
    assert re.search(r'<select name="set\.0\.3\.unit">.*?<option value="cm" selected>', shown.text, re.DOTALL)


async def test_a_new_field_has_its_settings_as_selects(harness: SourceConsole) -> None:
    shown = await upload(harness, PRICES)
    draft, owner = shown.field("draft"), harness.owner

    changed = await owner.submit(
        shown, PREVIEW, UPDATE, draft=draft, name="P", **{"shown.0.4": "", "field.0.4": "Carton width", "part.0.4": "2"}
    )
    options = changed.text.partition('id="o-0-4"')[2]
    assert '<select name="set.0.4.unit">' in options and '<select name="set.0.4.decimal">' in options
    assert 'name="part.0.4" value="2"' in options and 'name="set.0.4.currency"' not in options
    axes = await owner.submit(
        shown, PREVIEW, UPDATE, draft=draft, name="P", **{"shown.0.4": "", "field.0.4": "Variant option"}
    )
    assert 'name="part.0.4" value="Zorb"' in axes.text


@pytest.mark.parametrize(
    ("content", "name"),
    [(PNG, "preise.csv"), (b"\n\n", "leer.csv"), (b"PK\x03\x04" + bytes(60), "x.xlsx"), (HEADER.encode(), "nur.csv")],
)
async def test_a_file_without_rows_cannot_be_connected(harness: SourceConsole, content: bytes, name: str) -> None:
    shown = await upload(harness, content, name)
    assert "Connect and import" not in shown.text and 'class="notice bad"' in shown.text
    assert "/console/sources/new/file" in shown.text
    refused = await harness.owner.submit(
        shown, "/console/sources/new/file/connect", draft=shown.field("draft"), name="Preise", currency="eur"
    )
    assert refused.status == 422 and "cannot be imported" in refused.text
    assert (await harness.sources.client.get("/v1/sources")).json()["data"] == []


async def test_columns_without_a_key_are_mapped_before_connecting(harness: SourceConsole) -> None:
    owner = harness.owner
    shown = await upload(harness, b"Zorb,Quix\nA-1,Oak chair\nA-2,Oak table\n")
    assert "Connect and import" not in shown.text and 'name="field.0.0"' in shown.text
    sent = {
        "draft": shown.field("draft"),
        "name": "Zorb",
        "field.0.0": "SKU (item number)",
        "field.0.1": "Product name",
    }
    mapped = await owner.submit(shown, PREVIEW, UPDATE, **sent)
    assert "Connect and import" in mapped.text and "Oak chair" in mapped.text
    twice = await owner.submit(shown, PREVIEW, UPDATE, **(sent | {"field.0.0": "Product name"}))
    assert "Connect and import" not in twice.text
    assert (await owner.submit(shown, "/console/sources/new/file/connect", **sent)).status == 303


async def test_hostile_cells_and_fields_are_escaped(harness: SourceConsole) -> None:
    content = f"SKU,Title,{HOSTILE.replace(chr(34), '')},Price\nA-1,Oak,x,{HOSTILE.replace(chr(34), '')}\n".encode()
    shown = await upload(harness, content)
    sent = {
        "draft": shown.field("draft"),
        "name": HOSTILE,
        "field.0.2": HOSTILE,
        "from.0.1": HOSTILE,
        "to.0.1": HOSTILE,
    }
    changed = await harness.owner.submit(shown, PREVIEW, **sent, **{"field.0.1": "Product name"})
    for page in (shown, changed):
        assert page.status == 200 and "<script>alert" not in page.text and "<img src=x" not in page.text


async def test_the_fix_of_a_run_is_previewed_in_the_mapping(harness: SourceConsole) -> None:
    _, run = await store_run(harness)
    owner, path = harness.owner, f"/console/runs/{run.id}"
    page = await owner.get(path)
    assert "Replace value" in page.text and unescape(page.text).count('"auf Anfrage" is not a price') == 6
    mapping = run.mappings[0]
    fixed = await owner.submit(
        page,
        f"/console/mappings/{mapping}/preview",
        fix="value:0.1",
        **{"fix.cell.0.1": "auf Anfrage", "fix.text.0.1": ""},
    )
    assert fixed.status == 200 and "<strong>3 problems → 0</strong>" in fixed.text
    assert 'name="from.0.1" value="auf Anfrage"' in fixed.text
    stored = (await harness.sources.client.get(f"/v1/mappings/{mapping}")).json()
    assert stored["status"] == "proposed", "nothing is stored before saving"
    saved = await owner.submit(
        fixed, f"/console/mappings/{mapping}", **{"field.0.1": "cost", "from.0.1": "auf Anfrage", "to.0.1": ""}
    )
    assert saved.status == 303, saved.text
    stored = (await harness.sources.client.get(f"/v1/mappings/{mapping}")).json()
    assert stored["status"] == "confirmed" and stored["columns"][1]["values"] == {"auf Anfrage": ""}


async def test_a_kind_of_problem_is_not_reported_in_a_column(harness: SourceConsole) -> None:
    _, run = await store_run(harness)
    page = await harness.owner.get(f"/console/runs/{run.id}")
    path = f"/console/mappings/{run.mappings[0]}"
    quiet = await harness.owner.submit(page, f"{path}/preview", fix="unreadable:0.1")
    assert (
        "<strong>3 problems → 0</strong>" in quiet.text
        and 'name="ignored.0.1" value="unreadable" checked' in quiet.text
    )
    without = await harness.owner.submit(page, f"{path}/preview", fix="column:0.1")
    assert "<strong>3 problems → 0</strong>" in without.text


async def test_a_fix_without_effect_is_reported(harness: SourceConsole) -> None:
    _, run = await store_run(harness)
    page = await harness.owner.get(f"/console/runs/{run.id}")
    same = await harness.owner.submit(
        page, f"/console/mappings/{run.mappings[0]}/preview", fix="currency", **{"fix.currency": "usd"}
    )
    assert "The change does not solve any problem." in same.text and "→ 0" not in same.text


async def test_defaults_are_saved_with_the_source(harness: SourceConsole) -> None:
    source, run = await store_run(harness)
    path = f"/console/mappings/{run.mappings[0]}"
    form = await harness.owner.get(path)
    saved = await harness.owner.submit(
        form,
        path,
        version=form.field("version"),
        currency="USD",
        decimal="dot",
        default_length_unit="cm",
        default_weight_unit="",
    )
    assert saved.status == 303, saved.text
    config = (await harness.sources.client.get(f"/v1/sources/{source}")).json()["config"]
    assert config == {"currency": "usd", "decimal": "dot", "default_length_unit": "cm"}


async def test_problems_are_ignored_and_restored(harness: SourceConsole) -> None:
    _, run = await store_run(harness)
    owner, path = harness.owner, f"/console/runs/{run.id}"
    page = await owner.get(path)
    ignored = await owner.follow(await owner.submit(page, f"{path}/problems", index="1"))
    assert ignored.status == 200 and "1 ignored" in ignored.text and ">Restore</button>" in ignored.text
    stored = (await harness.sources.client.get(f"/v1/runs/{run.id}")).json()
    assert [problem.get("ignored") for problem in stored["problems"]] == [None, True, None]
    assert stored["stats"]["problems"] == 3 and stored["stats"]["problems_ignored"] == 1
    [entry] = await harness.sources.list_audit_entries(run.id)
    assert entry.change.after == {"problems_ignored": 1}
    await owner.submit(page, f"{path}/problems", kind="unreadable", field="cost", column="EK")
    assert "0</span> <strong>Unreadable value" in (await owner.get(path)).text
    await owner.submit(page, f"{path}/problems", kind="unreadable", field="cost", column="EK", action="restore")
    stored = (await harness.sources.client.get(f"/v1/runs/{run.id}")).json()
    assert "problems_ignored" not in stored["stats"]
    viewer = await harness.open_viewer()
    assert (await viewer.submit(await viewer.get(path), f"{path}/problems", index="1")).status == 403
    other = await harness.sources.application.open_browser("Oak")
    start = await other.get("/console/sources/new")
    assert (await other.submit(start, f"{path}/problems", index="1")).status == 404
    assert (await other.get(f"{path}/vendor-file")).status == 404


async def test_the_spreadsheet_for_the_vendor_marks_the_cells(harness: SourceConsole) -> None:
    formula = '=HYPERLINK("http://evil.example")'
    _, run = await store_run(harness, extra=f"A-4;{formula.replace(chr(34), '')};Stuhl\n")
    owner, path = harness.owner, f"/console/runs/{run.id}"
    await owner.submit(await owner.get(path), f"{path}/problems", index="0")
    response = await owner.get(f"{path}/vendor-file?language=de")
    assert response.status == 200 and "attachment" in (response.header("content-disposition") or "")
    book = load_workbook(BytesIO(response.body))
    rows, listed = book.worksheets
    assert [cell.value for cell in rows[1]][1:] == ["Nr", "EK", "Name"]
    assert [cell.value for cell in rows[2]] == ["3", "A-2", "auf Anfrage", "Stuhl 2"], "line 2 is ignored"
    marked = rows["C2"]
    assert marked.fill.fgColor.rgb == "FFFFC7CE" and marked.comment is not None
    assert rows["B2"].comment is None and rows["B2"].fill.fgColor.rgb != "FFFFC7CE"
    assert all(cell.data_type != "f" for sheet in book for row in sheet for cell in row), "no text is a formula"
    assert listed["B2"].value == "3" and listed["E2"].value == "auf Anfrage"
    assert "auf Anfrage" in listed["G2"].value


async def test_the_heading_of_a_run_states_its_failure(harness: SourceConsole) -> None:
    source = await harness.sources.create_source(**FILE_SOURCE)
    run = builders.run(
        source["id"], status="failed", created_at=harness.sources.application.clock.now(), stream=Stream.CATALOGUE
    )
    async with harness.sources.application.uow.begin(harness.sources.tenant, OPERATOR) as tx:
        await tx[RunStore].add(run)
    assert "<h1>Catalogue import failed</h1>" in (await harness.owner.get(f"/console/runs/{run.id}")).text


async def test_home_lists_open_problems_and_unconfirmed_mappings(harness: SourceConsole) -> None:
    _, run = await store_run(harness)
    home = await harness.owner.get("/console")
    assert f'href="/console/runs/{run.id}#problems"' in home.text and "3 problems to review" in home.text
    assert f'href="/console/mappings/{run.mappings[0]}"' in home.text
    link = f'<a href="/console/runs/{run.id}#problems">3</a>'
    assert link in (await harness.owner.get("/console/sources")).text
    page = await harness.owner.get(f"/console/runs/{run.id}")
    await harness.owner.submit(page, f"/console/runs/{run.id}/problems", kind="unreadable", field="cost", column="EK")
    assert "problems to review" not in (await harness.owner.get("/console")).text
    assert link not in (await harness.owner.get("/console/sources")).text


async def store_run(harness: SourceConsole, extra: str = "") -> tuple[str, Run]:
    """Store a source with a file of three prices that cannot be read, its mapping and its run."""
    source = (await harness.sources.create_source(**FILE_SOURCE, config={"currency": "eur"}))["id"]
    content = "Nr;EK;Name\n" + "".join(f"A-{n};auf Anfrage;Stuhl {n}\n" for n in (1, 2, 3)) + extra
    harness.sources.services.objects._write("snapshots/prices", content.encode())
    mapping = builders.mapping(
        source, "Nr", "EK", "Name", samples=(("A-1", "auf Anfrage", "Stuhl 1"),), stream=Stream.CATALOGUE
    )
    columns = tuple(
        replace(mapping.columns[0], position=at, column=header, field=field, confidence=0.95)
        for at, (header, field) in enumerate((("Nr", "sku"), ("EK", "cost"), ("Name", "title")))
    )
    mapping = replace(mapping, columns=columns, unmapped=(), digest=compute_header_digest(mapping.headers))
    detail = '"auf Anfrage" is not a price.'
    problems = tuple(
        Problem("cost", ProblemKind.UNREADABLE, detail, n + 1, "EK", None, f"A-{n}", "auf Anfrage") for n in (1, 2, 3)
    )
    now = harness.sources.application.clock.now()
    run = builders.run(
        source, status="succeeded", problems=problems, stats={"problems": 3, "rows": 3}, snapshot="snapshots/prices",
        stream=Stream.CATALOGUE, mappings=(mapping.id,), created_at=now, finished_at=now,
    )  # fmt: skip
    async with harness.sources.application.uow.begin(harness.sources.tenant, OPERATOR) as tx:
        await tx[MappingStore].add(mapping)
        await tx[RunStore].add(run)
    return source, run
