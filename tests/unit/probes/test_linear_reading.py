"""What reads texts of strangers takes time by their length: four times the text takes at most six times as long."""

from collections.abc import Callable

import pytest

from domain.probes import files, product_pages, structured_data, walls
from domain.probes.facts import PageFacts, Response, is_usable, joined
from tests.unit.ingestion.test_linear_text import FLOOR, GROWTH, LARGE, MOST, SHAPES, SMALL, _seconds, _text

URL = "https://vendor.example/"
READERS: dict[str, Callable[[str], object]] = {
    "product page": lambda text: product_pages.is_product_page(URL + text.replace("[", "(").replace("]", ")")),
    "sitemap's name": lambda text: product_pages.lists_products(URL + text.replace("[", "(").replace("]", ")")),
    "address": is_usable,
    "link": lambda text: joined(URL, text),
    "file": lambda text: files.recognised(Response(URL, 200, {}, body=text.encode())),
    "structured data": lambda text: structured_data.read([text, f'{{"@type": "Product", "name": "{text}"}}']),
    "wall": lambda text: walls.judged(URL, Response(URL, 200), PageFacts(title=text, text=text)),
    "page's kind": lambda text: Response(URL, 200, {"content-type": text}, body=text.encode()).is_page,
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
