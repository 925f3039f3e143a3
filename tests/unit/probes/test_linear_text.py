"""Reading untrusted texts takes time linear in their length: four times the text takes at most six times as long."""

from collections.abc import Callable

import pytest

from domain.probes import access_blocks, files, product_pages, structured_data
from domain.probes.facts import PageFacts, ProbeResponse, is_requestable_url, resolve_link
from tests.unit.ingestion.test_linear_text import FLOOR, GROWTH, LARGE, MOST, SHAPES, SMALL, _seconds, _text

URL = "https://vendor.example/"
READERS: dict[str, Callable[[str], object]] = {
    "product page": lambda text: product_pages.is_product_page_url(URL + text.replace("[", "(").replace("]", ")")),
    "sitemap's name": lambda text: product_pages.is_product_sitemap_url(URL + text.replace("[", "(").replace("]", ")")),
    "address": is_requestable_url,
    "link": lambda text: resolve_link(URL, text),
    "file": lambda text: files.detect_file(ProbeResponse(URL, 200, {}, body=text.encode())),
    "structured data": lambda text: structured_data.extract_products(
        [text, f'{{"@type": "Product", "name": "{text}"}}']
    ),
    "wall": lambda text: access_blocks.detect_access_block(
        URL, ProbeResponse(URL, 200), PageFacts(title=text, text=text)
    ),
    "page's kind": lambda text: ProbeResponse(URL, 200, {"content-type": text}, body=text.encode()).is_page,
}


@pytest.mark.parametrize("name", READERS)
def test_time_grows_with_the_text(name: str) -> None:
    read, slow = READERS[name], []
    for shape in SHAPES:
        first = _seconds(read, _text(shape, SMALL))
        if first * GROWTH < FLOOR or _seconds(read, _text(shape, LARGE)) <= max(FLOOR, MOST * first):
            continue
        small = max(min(_seconds(read, _text(shape, SMALL)) for _ in range(3)), 1e-4)
        large = min(_seconds(read, _text(shape, LARGE)) for _ in range(3))
        if large > FLOOR and large / small > MOST:
            slow.append(f"{shape!r}: {small * 1000:.0f} ms, then {large * 1000:.0f} ms")
    assert not slow, slow
