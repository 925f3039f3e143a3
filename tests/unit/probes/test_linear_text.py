"""Reading untrusted text takes linear time: four times the text takes at most six times as long."""

from collections.abc import Callable

import pytest

from domain.probes import access_blocks, files, product_pages, structured_data
from domain.probes.facts import PageFacts, ProbeResponse, is_requestable_url, resolve_link
from tests.unit.ingestion.test_linear_text import (
    LARGE,
    MAX_GROWTH,
    MIN_SECONDS,
    QUADRATIC_GROWTH,
    SHAPES,
    SMALL,
    _build_text,
    _measure_seconds,
)

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
def test_time_is_linear_in_the_text(name: str) -> None:
    read, slow = READERS[name], []
    for shape in SHAPES:
        first = _measure_seconds(read, _build_text(shape, SMALL))
        if first * QUADRATIC_GROWTH < MIN_SECONDS or _measure_seconds(read, _build_text(shape, LARGE)) <= max(
            MIN_SECONDS, MAX_GROWTH * first
        ):
            continue
        small = max(min(_measure_seconds(read, _build_text(shape, SMALL)) for _ in range(3)), 1e-4)
        large = min(_measure_seconds(read, _build_text(shape, LARGE)) for _ in range(3))
        if large > MIN_SECONDS and large / small > MAX_GROWTH:
            slow.append(f"{shape!r}: {small * 1000:.0f} ms, then {large * 1000:.0f} ms")
    assert not slow, slow
