"""Links in answers: known addresses remain in every usual form, and everything else is removed in linear time."""

import time

import pytest

from domain.assistant.links import REMOVED, LinkFilter, find_addresses, find_new_addresses, remove_links

KNOWN = find_addresses({"feed": "See https://vendor.example/a(1).csv?x=1.", "images": ["https://cdn.example/oak.jpg"]})


@pytest.mark.parametrize(
    "text",
    [
        "Plain text, 5 < 6, and/or e.g. this: file.csv, offer.changed, 10:30, C:",
        "https://cdn.example/oak.jpg",
        "(https://cdn.example/oak.jpg), `https://cdn.example/oak.jpg`.",
        "**https://cdn.example/oak.jpg**",
        "[The image](https://cdn.example/oak.jpg)",
        "https://vendor.example/a(1).csv?x=1",
        "vendor.example/a(1).csv?x=1 at https://vendor.example, on cdn.example",
        "| [a](https://cdn.example/oak.jpg) | [1] |",
    ],
)
def test_known_addresses_and_other_texts_remain(text: str) -> None:
    assert remove_links(text, KNOWN) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("![a](https://cdn.example/oak.jpg)", "[a](https://cdn.example/oak.jpg)"),
        ("[a](https://evil.example/?d=1) b", f"[a] {REMOVED} b"),
        ("https://cdn.example/oak.jpg?d=1 b", f"{REMOVED} b"),
        ("https://cdn.example/oak.jpg)d=1 b", f"{REMOVED} b"),
        ("https&colon;//evil.example b", f"{REMOVED} b"),
        ("https\\://evil.example b", f"{REMOVED} b"),
        ("<b>a</b>", "< b>a< /b>"),
        ("1.cdn.example/oak.jpg b", f"{REMOVED} b"),
    ],
)
def test_other_addresses_images_and_html_do_not_remain(text: str, expected: str) -> None:
    assert remove_links(text, KNOWN) == expected


def test_names_and_values_of_arguments_are_filtered() -> None:
    value = {"https://evil.example/1": ["https://evil.example/2", 3, None, {"a": "https://cdn.example/oak.jpg"}]}
    assert remove_links(value, KNOWN) == {REMOVED: [REMOVED, 3, None, {"a": "https://cdn.example/oak.jpg"}]}


@pytest.mark.parametrize(
    "echo",
    [
        "no `https://b.example/?d=1,2`",
        "b.example/?d=1",
        "https://b.example/?d",
        "x https://b.example/?d=1&u=https://c.example",
    ],
)
def test_a_repetition_of_the_arguments_is_not_an_address_in_the_data(echo: str) -> None:
    result = {"url": "https://a.example/exports/exp_1", "echo": echo}
    found = find_new_addresses(result, {"id": "exp_1", "q": "see https://b.example/?d=1&u=https://c.example"})
    assert "https://a.example/exports/exp_1" in found and not [address for address in found if "?d" in address]


@pytest.mark.parametrize("size", [1, 2, 7, 100])
def test_the_result_does_not_depend_on_the_parts(size: int) -> None:
    text = "See ![a b](https://evil.example/?d=1), https://cdn.example/oak.jpg\nand <https://evil.example> & more."
    link_filter = LinkFilter(KNOWN)
    parts = [link_filter.add(text[start : start + size]) for start in range(0, len(text), size)]
    assert "".join([*parts, link_filter.finish()]) == remove_links(text, KNOWN)


@pytest.mark.parametrize("unit", ["a.", "a-", "a+", "a@", "[", "](", "![", "/", "https://", "&amp;", "a.b@", "ab.cd "])
def test_the_time_is_linear(unit: str) -> None:
    def measure(count: int) -> float:
        start = time.process_time()
        find_addresses(unit * count)
        return time.process_time() - start

    assert min(measure(40_000) for _ in range(3)) < 40 * min(measure(4_000) for _ in range(3)) + 0.05
