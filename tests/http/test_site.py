"""The documentation site: every page is whole, every link and anchor leads somewhere, what is searched for is found."""

import ast
import re
from functools import cache
from html.parser import HTMLParser
from importlib.resources import files

import pytest
from jsonschema import Draft202012Validator

from adapters.wire.event_types import EVENT_TYPES
from adapters.wire.products import PRODUCT
from domain.events.model import TYPES
from entrypoints.clients.description import groups_of
from entrypoints.http.checks import TIERS
from entrypoints.operations import openapi
from entrypoints.operations.codes import CODES
from entrypoints.operations.operation import RATES
from entrypoints.site import contents, event_pages, folder, limits
from entrypoints.site.client_calls import in_clients
from entrypoints.site.event_samples import sample_of
from entrypoints.site.layout import POLICY, SCRIPT, STYLE
from entrypoints.site.markdown import render
from entrypoints.site.search import Found, Index
from entrypoints.site.site import Site
from tests.http.fakes import World
from tests.support.table import whole

VOID = {"meta", "br", "wbr", "link", "input", "hr", "img"}
SITE = Site(whole(), "https://api.joinery.test", "https://docs.joinery.test")


class Page(HTMLParser):
    """Checks that tags are closed in order; gathers ids, links, labels and headings."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.labels: list[str] = []
        self.levels: list[int] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        assert not {"src", "style"} & named.keys(), "nothing is fetched, and nothing goes past the policy"
        assert not [name for name in named if name.startswith("on")]
        if named.get("id"):
            self.ids.append(str(named["id"]))
        if tag == "a":
            self.links.append(str(named["href"]))
        if named.get("role") == "region":
            self.labels.append(str(named["aria-label"]))
            assert named["tabindex"] == "0"
        if re.fullmatch("h[1-6]", tag):
            self.levels.append(int(tag[1]))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag


def html(path: str) -> str:
    """The page there."""
    made = SITE.search("offer") if path == "/docs/search" else SITE.page(path)
    assert made is not None, path
    return made


@cache
def parsed() -> dict[str, Page]:
    """Every page."""
    return {path: Page(html(path)) for path in SITE.addresses()}


@pytest.mark.parametrize("path", SITE.addresses())
def test_a_page_is_whole(path: str) -> None:
    page = parsed()[path]
    assert page.open == []
    assert len(page.ids) == len(set(page.ids))
    assert len(page.labels) == len(set(page.labels))
    assert page.levels.count(1) == 1 and page.levels[0] == 1
    assert all(after <= before + 1 for before, after in zip(page.levels, page.levels[1:], strict=False))


def test_every_link_leads_to_a_page_and_every_anchor_to_a_place_on_it() -> None:
    dead = []
    for path, page in parsed().items():
        for link in page.links:
            target, _, anchor = link.partition("#")
            there = target or path
            if re.match("https?://", link) or link == "/openapi.json":
                continue
            if there not in parsed() or (anchor and anchor not in parsed()[there].ids):
                dead.append((path, link))
    assert not dead


def test_links_between_files_lead_to_files_and_headings() -> None:
    """As they are read on a disk or on GitHub."""
    dead = []
    for entry in contents.by_url().values():
        source = folder._CHECKOUT / entry.file
        for link in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", source.read_text("utf-8"))):
            if re.match("[a-z]+:", link):
                continue
            name, _, anchor = link.partition("#")
            target = (source.parent / name).resolve() if name else source
            if not target.exists():
                dead.append((entry.file, link))
            elif anchor and target.suffix == ".md":
                anchors = {heading.anchor for heading in render(target.read_text("utf-8"), entry.file).headings}
                dead += [(entry.file, link)] if anchor not in anchors else []
    assert not dead


def test_every_page_of_the_folder_is_on_the_site() -> None:
    docs = {f"docs/{path.name}" for path in (folder._CHECKOUT / "docs").glob("*.md")}
    assert docs == {entry.file for group in contents.groups() for entry in group.entries}
    assert all(entry.summary and entry.title for group in contents.groups() for entry in group.entries)


def test_every_operation_has_its_anchor() -> None:
    for row in whole():
        assert row.id in parsed()[f"/docs/reference/{row.area}"].ids


def test_every_event_type_is_told_of() -> None:
    assert event_pages.TEXTS.keys() == TYPES.keys()
    assert {name for name, entry in TYPES.items() if entry.is_sent} <= EVENT_TYPES.keys() <= TYPES.keys()


def test_types_that_nothing_sends_are_marked() -> None:
    for name, entry in TYPES.items():
        assert ("not sent yet" in html(f"/docs/events/{name}")) is not entry.is_sent


@pytest.mark.parametrize("name", sorted(TYPES))
def test_samples_are_as_they_are_sent(name: str) -> None:
    made = sample_of(name, whole())
    assert (made is None) is (not TYPES[name].is_sent and name not in event_pages.TYPES_WITH_SAMPLE)
    if made is None:
        return
    assert made == sample_of(name, whole()), "the page stays the same"
    for payload in (made.thin, made.fat or made.thin):
        assert payload["type"] == name and payload["subject"] == payload["data"]["id"]
        assert not list(Draft202012Validator(dict(EVENT_TYPES[name])).iter_errors(payload))
    if name.startswith("product."):
        faults = [fault.message for fault in Draft202012Validator(PRODUCT).iter_errors(made.fat["data"]["object"])]
        assert not faults
    assert all("old" not in change for change in made.thin["data"].get("fields", ()))


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("webhook", "/docs/guides/webhooks"),
        ("offer.changed", "/docs/events/offer.changed"),
        ("rate_limited", "/errors/rate_limited"),
        ("create a webhook endpoint", "/docs/reference/webhooks#webhooks.create"),
        ("idempotency-key", "/docs/reference#headers"),
        ("updated_since", "/docs/reference/catalogue#catalogue.list_products"),
        ("dry run", "/docs/guides/dry-run"),
        ("quickst", "/docs/quickstart"),
        ("GET /v1/stream", "/docs/reference/changes#changes.stream"),
        ("gtin", "/docs/reference/catalogue#catalogue.list_products"),
        ("paging", "/docs/guides/paging"),
        ("retry", "/docs/guides/errors"),
    ],
)
def test_the_best_comes_first(query: str, first: str) -> None:
    found = re.findall(r'<li><a href="([^"]+)"><span class="kind">', SITE.search(query))
    assert found and found[0].startswith(first), found[:4]


@pytest.mark.parametrize(
    ("query", "page"),
    [
        ("totals", "/docs/guides/paging"),
        ("page numbers", "/docs/guides/paging"),
        ("pagination", "/docs/guides/paging"),
        ("laptop", "/docs/running/operations"),
        ("JOINERY_PORT", "/docs/running/configuration"),
        ("sandbox", "/docs/guides/sandbox"),
        ("minor units", "/docs/guides/measures"),
        ("localhost", "/docs/guides/webhooks"),
        ("EUR", "/docs/guides/uploads"),
        ("npm install", "/docs/clients"),
        ("how to remove a product", "/docs/guides/push"),
        ("receive webhooks locally", "/docs/guides/webhooks"),
        ("limits per plan", "/docs/guides/limits"),
        ("delete a source", "/docs/guides/push"),
    ],
)
def test_whole_pages_are_searched(query: str, page: str) -> None:
    found = re.findall(r'<li><a href="([^"#]+)[^"]*"><span class="kind">', SITE.search(query))
    assert page in found[:3], found[:6]


def test_words_stay_apart_where_a_line_ends() -> None:
    assert render("# One\n\nwhat a plan\nnames", "docs/limits.md").headings[0].text == "what a plan names"


def test_a_letter_is_a_word_and_not_the_beginning_of_one() -> None:
    index = Index([Found("a", "Bed", "/1"), Found("a", "Plan b", "/2")])
    assert [entry.url for entry in index.search("b")] == ["/2"]
    assert [entry.url for entry in index.search("be")] == ["/1"]


def test_no_query_costs_much() -> None:
    """Whatever is typed, only some different parts of it are looked for, in a bounded number of places."""
    entries = [Found("a", f"word{n} {chr(97 + n % 26)}{n}", f"/{n}") for n in range(5_000)]
    index, looked = Index(entries), []
    index._by_word = Counting(index._by_word, looked)
    for query in (
        "p," * 50,
        "a,b,c,d,e,f " * 8,
        "İ" * 100,
        "wo,wor,word,a1,b2,c3,d4,e5,f6,g7,h8",
        "a b c d e f g h i j",
    ):
        looked.clear()
        index.search(query)
        assert len(looked) <= 8 * 102, query


class Counting(dict[str, dict[int, float]]):
    """Notes each word that is looked up."""

    def __init__(self, held: dict[str, dict[int, float]], looked: list[str]) -> None:
        super().__init__(held)
        self._looked = looked

    def __getitem__(self, word: str) -> dict[int, float]:
        self._looked.append(word)
        return super().__getitem__(word)

    def get(self, word: str, default: object = None) -> object:  # type: ignore[override]
        """As `__getitem__` where the word is."""
        self._looked.append(word)
        return super().get(word, default)  # type: ignore[arg-type]


def test_whatever_is_typed_is_answered() -> None:
    for query in ("", " ", "<script>", "\0", "ä" * 500, "%", '"', "nothing like this", ". . _ -"):
        page = Page(SITE.search(query))
        assert page.open == [] and "<script>alert" not in SITE.search("<script>alert")


def test_every_word_must_be_there() -> None:
    index = Index([Found("a", "Oak table", "/1", "long"), Found("a", "Oak chair", "/2", "short")])
    assert [entry.url for entry in index.search("oak")] == ["/1", "/2"]
    assert [entry.url for entry in index.search("oak sho")] == ["/2"]
    assert index.search("oak ash") == []


def test_rate_classes_are_those_that_requests_are_charged_by() -> None:
    text = folder.read("docs/limits.md")
    for name in RATES:
        [row] = [line for line in text.splitlines() if line.startswith(f"| `{name}` |")]
        paces = [f" {limits.pace(rates[name][0])}, burst {rates[name][1]:,} " for rates in TIERS.values()]
        assert row.split("|")[3:-1] == paces


def test_tabs_and_scrolling_blocks() -> None:
    made = render("# T\n\n```sh\nls\n```\n\n```python\nx\n```\n\n```json\n1\n```\n", "docs/paging.md").html
    assert made.count('class="tabs"') == 1 and made.count('type="radio"') == 2 and made.count(" checked") == 1
    assert made.count("<pre ") == made.count('tabindex="0"') == 3


@pytest.mark.asyncio
async def test_pages_over_http(world: World) -> None:
    visitor = world.stranger()
    for path in ("/docs", "/docs/quickstart", "/docs/reference/things", "/docs/search?q=thing", "/errors/not_found"):
        answer = await visitor.get(path)
        assert (answer.status, answer.headers["content-type"]) == (200, "text/html; charset=utf-8"), path
        assert answer.headers["content-security-policy"] == POLICY
        again = await visitor.get(path, if_none_match=answer.headers["etag"])
        assert (again.status, again.body) == (304, b"")
    for path in ("/docs/", "/errors/", "/docs/reference/things/"):
        led = await visitor.get(path)
        assert (led.status, led.headers["location"]) == (302, path[:-1])
    assert (await visitor.get("/docs/nothing/")).status == 404
    for query in ("%00%ff", "a" * 5000, "a&q=b", ""):
        assert len((await visitor.get(f"/docs/search?q={query}")).body) < 40_000
    assert "unsafe" not in POLICY and "http" not in POLICY


@pytest.mark.asyncio
async def test_an_address_that_there_is_not_leads_on(world: World) -> None:
    """People get a page, programs the problem."""
    visitor = world.stranger()
    for path in ("/docs/quickstat", "/docs/nothing/<i>", "/docs/clients/none.whl", "/errors/not_fuond"):
        lost = await visitor.get(path, accept="text/html,*/*;q=0.8")
        assert (lost.status, lost.headers["content-type"]) == (404, "text/html; charset=utf-8"), path
        assert lost.headers["content-security-policy"] == POLICY
        assert Page(lost.body.decode()).open == [] and b"<i>" not in lost.body
        assert (await visitor.get(path, accept="*/*")).code == "not_found"
    assert "/docs/quickstart" in lost_links("/docs/quickstat")
    assert "/errors/not_found" in lost_links("/errors/not_fuond")
    assert "/docs/guides/webhooks" in lost_links("/docs/webhooks")
    assert lost_links("/docs/" + "x" * 5000) == []


def lost_links(path: str) -> list[str]:
    """The pages that the address may have meant."""
    main = SITE.lost(path).partition("<main")[2]
    return re.findall(r'<li><a href="([^"]+)"', main)


def test_the_address_of_searches_is_written_once() -> None:
    assert Site.SEARCH not in SCRIPT
    assert f'action="{Site.SEARCH}"' in html("/docs")


def test_the_inline_parts_are_those_that_the_policy_allows() -> None:
    from entrypoints.site.layout import _allowed

    for page in ("/docs", "/errors"):
        [style] = re.findall("<style>(.*?)</style>", html(page), re.DOTALL)
        [script] = re.findall("<script>(.*?)</script>", html(page), re.DOTALL)
        assert (style, script) == (STYLE, SCRIPT)
        assert _allowed(style) in POLICY and _allowed(script) in POLICY


def test_codes_name_the_operations_that_answer_them() -> None:
    assert "/docs/reference/catalogue#catalogue.read_product" in parsed()["/errors/not_found"].links
    assert all(f"/errors/{code}" in parsed() for code in CODES)
    assert files("entrypoints.site").joinpath("style.css").is_file()


def test_calls_of_the_clients_are_named_as_the_clients_name_them() -> None:
    document = openapi.document(whole(), "https://api.joinery.test", "https://docs.joinery.test")
    known = {(group.name, method.name) for group in groups_of(document) for method in group.methods}
    shown = set()
    for row in whole():
        for language, text in in_clients(row):
            if language == "Python":
                names = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
                assert names <= {"Joinery", "client", "item", "print"}
        found = re.search(r"client\.(\w+)\.(\w+)\(", dict(in_clients(row)).get("Python", ""))
        if found is not None:
            shown.add((found[1], found[2]))
    assert shown == known
