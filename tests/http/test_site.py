"""Documentation site: complete pages, valid links and anchors, compliance with the content security policy."""

import ast
import json
import re
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urljoin

import pytest
from jsonschema import Draft202012Validator

from adapters.api_json.event_schemas import EVENT_SCHEMAS
from adapters.api_json.products import PRODUCT
from domain.events.model import TYPES
from domain.webhooks.samples import TYPES_WITH_SAMPLE
from entrypoints.clients.description import build_groups
from entrypoints.http.checks import TIERS
from entrypoints.operations import openapi
from entrypoints.operations.codes import CODES
from entrypoints.operations.operation import RATES
from entrypoints.site.build import build_pages
from entrypoints.site.calls import format_client_examples, format_rate
from entrypoints.site.event_samples import create_event_sample
from entrypoints.site.site import BUILT_FOLDER, HOME_PATH, PLAIN_POLICY, build_hash_source
from tests.http.application import ApplicationHarness
from tests.support.built_site import BASE_URL, build_site
from tests.support.operation_table import load_operation_table

ROOT = Path(__file__).parents[2]
VOID = {"meta", "br", "wbr", "link", "input", "hr", "img", "path", "line", "circle", "polyline", "rect"}


class SitePage(HTMLParser):
    """Parser that checks the nesting of tags and collects IDs, links, headings and loaded resources."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.levels: list[int] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        assert "style" not in named and not [name for name in named if name.startswith("on")], "it goes past the policy"
        if named.get("id"):
            self.ids.append(str(named["id"]))
        if tag == "a" and named.get("href"):
            self.links.append(str(named["href"]))
        self.fetched += [str(named["src"])] if "src" in named else []
        self.fetched += [str(named["href"])] if tag == "link" else []
        if re.fullmatch("h[1-6]", tag):
            self.levels.append(int(tag[1]))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag


def read_page(path: str) -> str:
    """Read the page."""
    made = build_site().read(path)
    assert made is not None, path
    return made[1].decode()


@cache
def parse_pages() -> dict[str, SitePage]:
    """Parse all pages."""
    build_site()
    paths = [
        HOME_PATH + path.relative_to(BUILT_FOLDER).as_posix().removesuffix(".html")
        for path in BUILT_FOLDER.rglob("*.html")
    ]
    return {path: SitePage(read_page(path)) for path in paths}


def test_pages_are_complete() -> None:
    for path, page in parse_pages().items():
        assert page.open == [], path
        assert len(page.ids) == len(set(page.ids)), path
        if path == "/docs/search":  # its headings are in the results
            continue
        assert page.levels.count(1) == 1 and page.levels[0] == 1, path
        assert all(after <= before + 1 for before, after in zip(page.levels, page.levels[1:], strict=False)), path


def test_every_page_exists() -> None:
    assert {HOME_PATH + name for name in build_pages()} - {f"{HOME_PATH}index"} <= parse_pages().keys() and len(
        parse_pages()
    ) > 200
    docs = {path.stem for path in (ROOT / "docs").glob("*.md")}
    assert docs <= {name.rpartition("/")[2] for name in build_pages()}


def test_every_link_and_anchor_has_a_target() -> None:
    dead = []
    for path, page in parse_pages().items():
        for link in [*page.links, *page.fetched]:
            if re.match("https?://", link) or link in {"/openapi.json", "/", "/status", "/console"}:
                continue
            there, _, anchor = urljoin(path, link).partition("#")
            there = there.partition("?")[0]
            ids = parse_pages()[there].ids if there in parse_pages() else []
            if build_site().read(there) is None or (anchor and anchor not in ids):
                dead.append((path, link))
    assert not dead, dead[:20]


def test_no_resource_is_loaded_from_other_hosts() -> None:
    assert [link for page in parse_pages().values() for link in page.fetched if re.match("[a-z]+:|//", link)] == []
    assert "unsafe" not in build_site().policy and "http" not in build_site().policy


def test_inline_scripts_match_the_policy() -> None:
    for path in parse_pages():
        for kind in ("style", "script"):
            for inner in re.findall(rf"<{kind}>(.*?)</{kind}>", read_page(path), re.DOTALL):
                assert build_hash_source(inner) in build_site().policy, path


def test_addresses_are_those_of_the_service() -> None:
    assert f"{BASE_URL}/v1/" in read_page("/docs/reference/webhooks")
    assert not [path for path in parse_pages() if ".invalid" in read_page(path)]


def test_links_between_files_have_targets() -> None:
    """As read on disk or on GitHub; Sphinx checks links to pages and headings."""
    files = [ROOT / "CHANGELOG.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "decisions").glob("*.md")]
    dead = []
    for source in files:
        for link in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", source.read_text("utf-8"))):
            name = link.partition("#")[0]
            if name and not re.match("[a-z]+:", link) and not (source.parent / name).exists():
                dead.append((source.name, link))
    assert not dead


def test_every_operation_and_error_code_has_an_anchor() -> None:
    for row in load_operation_table():
        assert row.id in parse_pages()[f"/docs/reference/{row.area}"].ids
    assert "../reference/catalogue#catalogue.read_product" in parse_pages()["/docs/errors/not_found"].links
    assert all(f"/docs/errors/{code}" in parse_pages() for code in CODES)


def test_every_event_type_has_a_page() -> None:
    assert {name for name, entry in TYPES.items() if entry.is_sent} <= EVENT_SCHEMAS.keys() <= TYPES.keys()
    for name, entry in TYPES.items():
        assert ("not sent yet" in read_page(f"/docs/events/{name}").partition("<article")[2]) is not entry.is_sent


@pytest.mark.parametrize("name", sorted(TYPES))
def test_samples_equal_the_sent_events(name: str) -> None:
    made = create_event_sample(name, load_operation_table())
    assert (made is None) is (not TYPES[name].is_sent and name not in TYPES_WITH_SAMPLE)
    if made is None:
        return
    assert made == create_event_sample(name, load_operation_table()), "the page stays the same"
    for payload in (made.thin, made.fat or made.thin):
        assert payload["type"] == name and payload["subject"] == payload["data"]["id"]
        assert not list(Draft202012Validator(dict(EVENT_SCHEMAS[name])).iter_errors(payload))
    if name.startswith("product."):
        faults = [fault.message for fault in Draft202012Validator(PRODUCT).iter_errors(made.fat["data"]["object"])]
        assert not faults
    assert all("old" not in change for change in made.thin["data"].get("fields", ()))


def test_documented_rate_classes_are_the_charged_ones() -> None:
    text = (ROOT / "docs" / "limits.md").read_text("utf-8")
    for name in RATES:
        [row] = [line for line in text.splitlines() if line.startswith(f"| `{name}` |")]
        paces = [f" {format_rate(rates[name][0])}, burst {rates[name][1]:,} " for rates in TIERS.values()]
        assert row.split("|")[3:-1] == paces


def test_samples_in_several_languages_are_tabs() -> None:
    page = read_page("/docs/quickstart")
    assert page.count('class="sd-tab-set') == 2 and 'data-sync-id="TypeScript"' in page


def test_search_finds_pages_by_words() -> None:
    """The search index contains the titles of operations, events and codes, and the words of the guides."""
    index = json.loads(
        BUILT_FOLDER.joinpath("searchindex.js").read_text("utf-8").removeprefix("Search.setIndex(").removesuffix(")")
    )
    names = index["docnames"]
    for title, page in (("offer.changed", "events/offer.changed"), ("rate_limited", "errors/rate_limited"),
                        ("Create a webhook endpoint", "reference/webhooks"), ("Webhooks", "guides/webhooks")):  # fmt: skip
        assert page in {names[at] for at, _ in index["alltitles"][title]}, title
    for word, page in (("localhost", "guides/webhooks"), ("updated_sinc", "reference/catalogue")):
        found = index["terms"][word]
        assert page in {names[at] for at in (found if isinstance(found, list) else [found])}, word


@pytest.mark.asyncio
async def test_pages_over_http(application: ApplicationHarness) -> None:
    policy, anonymous = build_site().policy, application.build_client()
    for path in ("/docs/", "/docs/quickstart", "/docs/search?q=thing", "/docs/errors/not_found"):
        response = await anonymous.get(path)
        assert (response.status, response.headers["content-type"]) == (200, "text/html; charset=utf-8"), path
        assert response.headers["content-security-policy"] == policy
        again = await anonymous.get(path, if_none_match=response.headers["etag"])
        assert (again.status, again.body) == (304, b"")
    script = await anonymous.get("/docs/_static/searchtools.js")
    assert (script.status, script.headers["content-type"]) == (200, "text/javascript")
    moves = {"/docs": HOME_PATH, "/docs/quickstart/": "/docs/quickstart", "/errors/": "/docs/errors",
             "/errors": "/docs/errors", "/errors/not_found": "/docs/errors/not_found"}  # fmt: skip
    for path, there in moves.items():
        led = await anonymous.get(path)
        assert (led.status, led.headers["location"]) == (302, there)
    for path in ("/docs/nothing/", "/docs/../site.py", "/docs/%2e%2e/site.py", "/docs/_static", "/docs//etc/passwd"):
        assert (await anonymous.get(path)).status == 404, path


@pytest.mark.asyncio
async def test_a_missing_page_links_to_similar_pages(application: ApplicationHarness) -> None:
    """Browsers receive a page, programs a problem response."""
    build_site()
    anonymous = application.build_client()
    for path in ("/docs/quickstat", "/docs/nothing/<i>", "/docs/clients/none.whl", "/errors/not_fuond"):
        lost = await anonymous.get(path, accept="text/html,*/*;q=0.8")
        assert (lost.status, lost.headers["content-type"]) == (404, "text/html; charset=utf-8"), path
        assert lost.headers["content-security-policy"] == PLAIN_POLICY
        assert SitePage(re.sub("<style>.*?</style>", "", lost.body.decode())).open == [] and b"<i>" not in lost.body
        assert (await anonymous.get(path, accept="*/*")).code == "not_found"
    assert "/docs/quickstart" in build_site().render_not_found("/docs/quickstat", str)
    assert "/docs/errors/not_found" in build_site().render_not_found("/errors/not_fuond", str)
    assert "/docs/guides/webhooks" in build_site().render_not_found("/docs/webhooks", str)
    assert "<li>" not in build_site().render_not_found("/docs/" + "x" * 5000, str)


def test_client_calls_are_named_as_in_the_clients() -> None:
    document = openapi.build_document(load_operation_table(), "https://api.joinery.test", "https://docs.joinery.test")
    known = {(group.name, method.name) for group in build_groups(document) for method in group.methods}
    shown = set()
    for row in load_operation_table():
        for language, text in format_client_examples(row):
            if language == "Python":
                names = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
                assert names <= {"Joinery", "client", "item", "print"}
        found = re.search(r"client\.(\w+)\.(\w+)\(", dict(format_client_examples(row)).get("Python", ""))
        if found is not None:
            shown.add((found[1], found[2]))
    assert shown == known
