"""Hostile web documents cause no exceptions, hangs or excessive memory."""

import asyncio
import gzip
import zlib
from time import thread_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.markup import documents, page
from adapters.markup.documents import MarkupDocuments, parse_robots
from connectors.sdk.robots import Robots
from domain.probes.facts import ProbeResponse
from tests.unit.probes.shop_sites import build_json_ld, build_product, build_sitemap, build_sitemap_index
from tests.unit.probes.shop_sites import build_page as html

pytestmark = pytest.mark.slow

URL = "https://vendor.example/chairs/"


def parse_facts(content: bytes | str, content_type: str = "text/html"):
    """Return the facts of a page."""
    return page.parse_page(content.encode() if isinstance(content, str) else content, URL, content_type)


def parse_sitemap(body: bytes | str, url: str = "https://vendor.example/sitemap.xml", is_complete: bool = True):
    """Return the contents of a sitemap."""
    content = body.encode() if isinstance(body, str) else body
    return documents.parse_probe_sitemap(
        ProbeResponse(url, 200, {"content-type": "application/xml"}, body=content, is_complete=is_complete)
    )


def test_the_facts_of_a_page_are_read() -> None:
    head = (
        '<meta name="Generator" content="WooCommerce 9"><meta property="og:title" content="x"><link href="/a.css">'
        '<script src="//cdn.example/a.js"></script>'
        + build_json_ld(build_product(1))
        + "<style>p { color: red }</style>"
    )
    body = '<a href="oak">Oak</a><a href="/b#top">B</a><a href="mailto:x@y.example">M</a><a href="javascript:x()">J</a><a href="http://[">Z</a>'
    found = parse_facts(
        html(head, body + "<input type=Password><svg><title>Logo</title></svg>", "Oak &amp; Ash", 'class="Home page"')
    )
    assert (found.title, found.meta_values["generator"], found.has_password_field) == (
        "Oak & Ash",
        "WooCommerce 9",
        True,
    )
    assert found.assets == ("/a.css", "//cdn.example/a.js")
    assert found.links == ("https://vendor.example/chairs/oak", "https://vendor.example/b")
    assert found.classes == {"home", "page"} and found.script_types == {"application/ld+json"}
    assert len(found.json_ld.products) == 1 and "color" not in found.text and not found.is_truncated
    assert found.text_length == len("OakBMJZ")


def test_links_are_relative_to_the_base() -> None:
    assert parse_facts('<base href="https://other.example/x/"><a href="y">Y</a>').links == (
        "https://other.example/x/y",
    )


@pytest.mark.parametrize(
    ("content", "kind", "title"),
    [
        ("<title>Möbler</title>".encode(), "text/html", "Möbler"),
        ("<title>Möbler</title>".encode("latin-1"), "text/html; charset=ISO-8859-1", "Möbler"),
        ('<meta charset="windows-1252"><title>Möbler</title>'.encode("cp1252"), "text/html", "Möbler"),
        ("<title>Möbler</title>".encode("utf-16"), "text/html", "Möbler"),
        ("<title>Möbler</title>".encode(), "text/html; charset=no-such", "Möbler"),
        (b"<title>M\xf6bler \xff\xfe</title>", "text/html", "M\ufffdbler \ufffd\ufffd"),
        (b"<title>M\0o</title>", "text/html; charset=base64", "Mo"),
    ],
)
def test_every_encoding_is_read(content: bytes, kind: str, title: str) -> None:
    assert parse_facts(content, kind).title == title


BOMBS = {
    "nested": "<div>" * 400_000,
    "nested and closed wrongly": "<div>" * 900 + "</p>" * 250_000,
    "deep and closed wrongly": "<div>" * 50_000 + "</p>" * 250_000,
    "attributes": "<a " + " ".join(f"x{number}=1" for number in range(150_000)) + ">",
    "one attribute": "<a href='" + "a" * 2_000_000 + "'>",
    "unclosed": "<" * 2_000_000,
    "comments": "<!--" * 500_000,
    "entities": "&amp;" * 400_000,
    "formatting": "<p><b><i><u>" * 80_000,
    "tables": "<table><tr><td>" * 60_000,
    "blocks": '<script type="application/ld+json">{"a":' * 40_000,
    "one block": '<script type="application/ld+json">' + "[" * 1_500_000,
    "links": "<a href='/products/x'>t</a>" * 70_000,
    "titles": "<title>" * 250_000,
    "bytes": "\0\x01\x02" * 600_000,
    "charset": "charset" + " " * 2_000_000,
}


@pytest.mark.parametrize("name", BOMBS)
def test_hostile_pages_are_parsed_in_bounded_time(name: str) -> None:
    begun = thread_time()
    found = parse_facts(BOMBS[name])
    assert thread_time() - begun < 4 * page.MAX_SECONDS, (
        "limited by the parser's time limit, with a margin for slow machines"
    )
    assert len(found.links) <= 2_000 and len(found.assets) <= 500 and len(found.text) <= 20_000


def test_a_page_beyond_the_limits_is_marked_as_truncated() -> None:
    assert (
        parse_facts("<title>A</title>" + "<div>" * 5_000).is_truncated
        and parse_facts("<title>A</title>" + "<div>" * 5_000).title == "A"
    )
    assert parse_facts("<p>" + "a" * (page.MAX_CHARS + 10)).is_truncated


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.binary(max_size=400) | st.lists(st.sampled_from([b"<a href=", b"<script type='application/ld+json'>", b"</script>", b"<title>", b"</", b"<!--", b"-->", b"\xff", b"<base href=", b">", b"'", b"{", b"&#0;", b"&#x110000;", b"<![CDATA[", b"<?xml", b"\xef\xbb\xbf"]), max_size=30).map(b"".join))  # fmt: skip
def test_readers_accept_any_content(content: bytes) -> None:
    parse_facts(content)
    parse_sitemap(content)
    Robots(content).allows(URL)


def test_sitemaps_list_pages_or_sitemaps() -> None:
    found = parse_sitemap(
        build_sitemap(
            "https://vendor.example/products/a", "https://vendor.example/about", " https://vendor.example/products/a "
        )
    )
    assert (found.product_page_count, found.product_page_examples, found.is_complete, found.is_sitemap) == (
        1,
        ("https://vendor.example/products/a",),
        True,
        True,
    )
    named = parse_sitemap(
        build_sitemap("https://vendor.example/a", "https://vendor.example/b"),
        "https://vendor.example/product-sitemap.xml",
    )
    assert named.product_page_count == 2
    assert parse_sitemap(build_sitemap_index("https://vendor.example/1.xml")).sitemaps == (
        "https://vendor.example/1.xml",
    )
    assert (
        parse_sitemap("https://vendor.example/products/a\nhttps://vendor.example/products/b\n").product_page_count == 2
    )


def test_a_compressed_sitemap_is_read() -> None:
    packed = gzip.compress(build_sitemap("https://vendor.example/products/a").encode())
    assert (parse_sitemap(packed).product_page_count, parse_sitemap(packed).is_complete) == (1, True)
    assert not parse_sitemap(packed[:-20], is_complete=False).is_complete


def test_images_in_a_sitemap_are_not_pages() -> None:
    image = '<image:image xmlns:image="x"><image:loc>https://vendor.example/products/p.jpg</image:loc></image:image>'
    text = f'<urlset xmlns="s"><url><loc>https://vendor.example/products/a</loc>{image}</url></urlset>'
    assert parse_sitemap(text).product_page_examples == ("https://vendor.example/products/a",)


def test_a_decompression_bomb_is_truncated() -> None:
    pack = zlib.compressobj(9, zlib.DEFLATED, 31)
    start = build_sitemap("https://vendor.example/products/a").removesuffix("</urlset>").encode()
    bomb = pack.compress(start + b" " * (documents.MAX_UNPACKED_BYTES * 3)) + pack.flush()
    assert len(bomb) < 100_000
    found = parse_sitemap(bomb)
    assert (found.product_page_count, found.is_complete) == (1, False)


@pytest.mark.parametrize(
    "text",
    ['<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><urlset><url><loc>&b;</loc></url></urlset>',
     '<!DOCTYPE x SYSTEM "file:///etc/passwd"><urlset/>', "<urlset>" + "<url>" * 50_000, "<urlset><url><loc>https://a.example/products/x",
     "<html><body>Not found</body></html>", "", "hello", "<rss/>", "\x1f\x8bbroken"],
)  # fmt: skip
def test_other_documents_are_not_sitemaps(text: str) -> None:
    assert parse_sitemap(text.encode("latin-1")).product_page_examples == ()


def test_a_sitemap_beyond_the_limit_is_truncated() -> None:
    found = parse_sitemap(
        build_sitemap(
            *(f"https://vendor.example/products/{number}" for number in range(documents.MAX_SITEMAP_URLS + 1_000))
        )
    )
    assert (
        found.product_page_count >= documents.MAX_SITEMAP_URLS
        and len(found.product_page_examples) == documents.MAX_EXAMPLES
        and not found.is_complete
    )


def test_rules_are_parsed() -> None:
    rules = Robots(
        b"User-agent: *\nDisallow: /cart\nDisallow: /*?sort=\nAllow: /cart/help\nCrawl-delay: 1.5\nSitemap: https://vendor.example/s.xml\n"
    )
    assert [
        rules.allows(f"https://vendor.example{path}") for path in ("/", "/cart", "/cart/help", "/a?sort=1", "/a?b")
    ] == [True, False, True, False, True]
    assert (rules.delay, rules.sitemaps) == (1.5, ("https://vendor.example/s.xml",))
    assert Robots(b"").allows("https://vendor.example/")
    assert not Robots(b"\xef\xbb\xbfUser-agent: Joinery\r\nDisallow: /\r\n").allows("https://vendor.example/")
    assert Robots(b"User-agent: *\nCrawl-delay: nan\n").delay is None


RFC_9309 = """User-Agent: *
Disallow: *.gif$
Disallow: /example/
Allow: /publications/

User-Agent: joinery
Disallow:/
Allow:/example/page.html
Allow:/example/allowed.gif

User-Agent: barbot
User-Agent: bazbot
Disallow: /example/page.html

User-Agent: quxbot
"""


def test_the_examples_of_the_standard_are_followed() -> None:
    """RFC 9309 §5.1, read as its bot "foobot" and as a bot that is not listed; §5.2, the longest match."""
    rules, others = Robots(RFC_9309.encode()), Robots(RFC_9309.replace("joinery", "foobot").encode())
    paths = ("/example/page.html", "/example/allowed.gif", "/example/other.html", "/publications/", "/a.gif", "/a.html")
    assert [rules.allows(f"https://vendor.example{path}") for path in paths] == [True, True, False, False, False, False]
    assert [others.allows(f"https://vendor.example{path}") for path in paths] == [
        False,
        False,
        False,
        True,
        False,
        True,
    ]
    longest = Robots(b"User-Agent: *\nAllow: /example/page/\nDisallow: /example/page/disallowed.gif\n")
    assert not longest.allows("https://vendor.example/example/page/disallowed.gif")
    assert longest.allows("https://vendor.example/example/page/")


@pytest.mark.parametrize(
    "text",
    ["User-agent: *\nDisallow: /" + "*a" * 900 + "b$\n", "User-agent: *\n" + "Disallow: /*a*a*a$\n" * 18_000, "Disallow: /\n" * 40_000,
     "User-agent: *\n" * 30_000 + "Disallow: /x", "User-agent: " + "a" * 400_000, "\0" * 400_000, "Sitemap: https://a.example/\n" * 15_000, ":" * 400_000],
)  # fmt: skip
def test_hostile_rules_take_bounded_time(text: str) -> None:
    begun = thread_time()
    rules = Robots(text.encode())
    for _ in range(3):
        rules.allows("https://vendor.example/" + "a" * 2_000)
    assert thread_time() - begun < 10
    assert len(parse_robots(text.encode()).sitemaps) <= 20


@pytest.mark.asyncio
async def test_documents_are_parsed_outside_the_event_loop() -> None:
    reader, longest = MarkupDocuments(), 0.0

    async def beat() -> None:
        nonlocal longest
        loop = asyncio.get_running_loop()
        while True:
            before = loop.time()
            await asyncio.sleep(0.01)
            longest = max(longest, loop.time() - before)

    beating = asyncio.create_task(beat())
    response = ProbeResponse(URL, 200, {"content-type": "text/html"}, body=BOMBS["formatting"].encode())
    await asyncio.gather(*(reader.parse_page(response) for _ in range(4)))
    beating.cancel()
    assert longest < 2
    assert await reader.parse_json(ProbeResponse(URL, 200, body=b'\xef\xbb\xbf{"a": 1}')) == {"a": 1}
    assert await reader.parse_json(ProbeResponse(URL, 200, body=b"[" * 300_000)) is None
    assert await reader.parse_json(ProbeResponse(URL, 200, body=b"<html>")) is None
