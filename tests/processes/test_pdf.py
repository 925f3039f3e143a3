"""Rendering of PDF in processes: contents, what documents can load, and runaway documents."""

import asyncio
import ctypes
import io
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pypdfium2
import pytest
import pytest_asyncio
from PIL import Image

from adapters.files.workspaces import FileWorkspaces
from adapters.processes.pdf import PrinterLimits, ProcessPdfPrinter
from domain.comparison.model import ComparedItem, Measure, Prices
from domain.comparison.ports import PdfFailed
from entrypoints.console.comparison import ComparisonQuery
from entrypoints.console.pages.comparison import build_table_values
from entrypoints.console.rendering import get_static_files, render_template
from tests.support import printers
from tests.support.console_seed import HOSTILE

pytestmark = pytest.mark.asyncio
MEMORY_MIB = "1024"


def create_printer(folder: Path, *program: str, **limits: Any) -> ProcessPdfPrinter:
    """Return a printer whose processes run a program; the default is the service's own."""
    command = [sys.executable, "-P", *(program or ("-m", "entrypoints.printer")), str(os.getpid()), MEMORY_MIB]
    return ProcessPdfPrinter(command, FileWorkspaces(folder), PrinterLimits(**limits))


@pytest_asyncio.fixture
async def printer(tmp_path: Path) -> AsyncIterator[ProcessPdfPrinter]:
    made = create_printer(tmp_path)
    if not await made.is_available():
        pytest.skip("needs Pango (apt-get install libpango-1.0-0 libpangoft2-1.0-0 libharfbuzz-subset0)")
    yield made
    await made.close()


def read_text(document: pypdfium2.PdfDocument) -> str:
    return "\n".join(page.get_textpage().get_text_range() for page in document)


def list_fonts(page: pypdfium2.PdfPage) -> set[str]:
    """Return the names of the fonts of a page's characters."""
    text, names = page.get_textpage(), set()
    for index in range(text.count_chars()):
        buffer = ctypes.create_string_buffer(200)
        if pypdfium2.raw.FPDFText_GetFontInfo(text, index, buffer, len(buffer), None):
            names.add(buffer.value.decode())
    assert names
    return names


def list_left_files(folder: Path) -> set[str]:
    """Return the names of the files below a folder of workspaces; `lock` is the process's own."""
    return {path.name for path in folder.rglob("*") if path.is_file()}


def create_picture(colour: tuple[int, int, int]) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (320, 240), colour).save(buffer, "WEBP", lossless=True)
    return buffer.getvalue()


def build_item(number: int, title: str = "Oak table") -> ComparedItem:
    return ComparedItem(
        title=f"{title} {number}",
        image="img_1",
        facts={"brand": title, "materials": title, "sku": f"SKU-{number}"},
        measures={"width": Measure(str(80 + number), "cm")},
        prices=Prices("eur", 10_000 + number, 6_000, 20_000),
        availability="in_stock",
        quantity=number,
        lead_time_days=14 + number,
    )


def render_document(*items: ComparedItem) -> str:
    urls = [f"https://files.invalid/{number}.webp" for number in range(len(items))]
    values = build_table_values(items, urls, "metric", shows_cost=True, only_differences=False)
    query = ComparisonQuery((), by_source=False, units="metric", only_differences=False, shows_cost=True)
    given = {"query": query, "stylesheet": "https://files.invalid/comparison.css", "printed_at": "2026-11-29T12:00:00Z"}
    return render_template("comparison/print.html", None, given | values)


def list_files(*pictures: bytes) -> dict[str, bytes]:
    static = get_static_files()
    files = {f"https://files.invalid/{name}": static.read(name) for name in ("comparison.css", "vendor/inter.woff2")}
    return files | {f"https://files.invalid/{number}.webp": picture for number, picture in enumerate(pictures)}


async def test_eight_products_fit_on_a_landscape_page(printer: ProcessPdfPrinter, tmp_path: Path) -> None:
    pictures = [create_picture((255, 0, 0)) for _ in range(8)]
    pdf = await printer.print_pdf(render_document(*(build_item(number) for number in range(8))), list_files(*pictures))
    document = pypdfium2.PdfDocument(pdf)
    width, height = document[0].get_size()
    assert len(document) == 1 and round(width) == 842 and round(height) == 595
    text = read_text(document)
    for part in (
        "Product comparison",
        "Oak table 7",
        "SKU-0",
        "87 cm",
        "€100.07",
        "€40.00",
        "40% of the price",
        "Ships in 14 days",
        "Shortest",
        "Lowest",
    ):
        assert part in text, part
    assert all("Inter" in name for name in list_fonts(document[0])), "the shipped font"
    picture = document[0].render(scale=1).to_pil().convert("RGB")
    assert sum(count for count, colour in picture.getcolors(1 << 20) if colour == (255, 0, 0)) > 8 * 1000, (
        "the pictures"
    )  # type: ignore[union-attr]
    assert list_left_files(tmp_path) == {"lock"}, "temporary files are deleted"
    if folder := os.environ.get("JOINERY_PICTURES"):
        document[0].render(scale=2).to_pil().save(f"{folder}/comparison-pdf.png")


async def test_a_document_loads_nothing_but_the_given_files(printer: ProcessPdfPrinter, tmp_path: Path) -> None:
    requests: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests.append(await reader.read(100))
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    secret = tmp_path / "secret.css"
    secret.write_text("p::after{content:'LEAKED'}")
    html = f"""<html><head><base href="{address}/"><link rel="stylesheet" href="{address}/a.css"><link rel="stylesheet" href="file://{secret}">
    <link rel="attachment" href="file:///etc/passwd"><style>@import url({address}/b.css);@font-face{{font-family:x;src:url({address}/c.woff2)}}
    p{{font-family:x;background:url({address}/d.png)}}</style></head><body><p>Shown</p><img src="{address}/e.png"><img src="file:///etc/passwd">
    <img src="https://files.invalid/../../etc/passwd"><object data="{address}/f.svg"></object><embed src="{address}/g.svg"><img src="data:image/svg+xml,&lt;svg/&gt;">
    <svg><image href="{address}/h.png"/></svg></body></html>"""
    pdf = await printer.print_pdf(html, {})
    server.close()
    assert not requests and b"root:" not in pdf and b"EmbeddedFile" not in pdf
    text = read_text(pypdfium2.PdfDocument(pdf))
    assert "Shown" in text and "LEAKED" not in text


async def test_hostile_texts_and_pictures_are_printed_as_texts_or_omitted(printer: ProcessPdfPrinter) -> None:
    items = [build_item(number, text) for number, text in enumerate(HOSTILE[:8])]
    pictures = [b"", b"<svg/>", b"GIF89a", create_picture((1, 2, 3))[:50], b"\0" * 100]
    text = read_text(pypdfium2.PdfDocument(await printer.print_pdf(render_document(*items), list_files(*pictures))))
    assert "evil()" in text and "SKU-7" in text


async def test_a_long_document_is_terminated_and_the_next_one_is_printed(tmp_path: Path) -> None:
    printer = create_printer(tmp_path, cpu_seconds=2, max_seconds=20.0)
    if not await printer.is_available():
        pytest.skip("needs Pango")
    nested = "<table><tr><td>" * 200 + "x" * 200_000
    with pytest.raises(PdfFailed):
        await printer.print_pdf(nested, {})
    assert (await printer.print_pdf("<p>short", {})).startswith(b"%PDF-")
    assert list_left_files(tmp_path) == {"lock"}
    await printer.close()


@pytest.mark.parametrize("way", ["computing", "allocating", "answering"])
async def test_a_runaway_renderer_is_killed(tmp_path: Path, way: str) -> None:
    printer = create_printer(tmp_path, printers.__file__, cpu_seconds=1, max_seconds=10.0, max_result_bytes=1000)
    assert await printer.is_available()
    with pytest.raises(PdfFailed):
        await printer.print_pdf(way, {})
    assert await printer.print_pdf("ordinary", {}) == b"x"
    assert list_left_files(tmp_path) == {"lock"}, "its temporary files are deleted"
    await printer.close()


async def test_without_the_libraries_there_is_no_pdf(tmp_path: Path) -> None:
    printer = create_printer(tmp_path, "-m", "entrypoints.no_such_module")
    assert not await printer.is_available() and not await printer.is_available()
    with pytest.raises(PdfFailed):
        await printer.print_pdf("<p>text", {})
    await printer.close()


async def test_the_api_process_does_not_import_the_library() -> None:
    program = "import sys, entrypoints.api.app, entrypoints.container; sys.exit('weasyprint' in sys.modules)"
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", program)
    assert await process.wait() == 0
