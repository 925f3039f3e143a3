"""The site: which page stands at which address, each made when it is first asked for. The one door for whoever serves it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cached_property, partial
from html import escape
from typing import Final

from entrypoints.operations.codes import CODES
from entrypoints.operations.table import Table
from entrypoints.site import contents, error_pages, event_pages, folder, home, layout, reference
from entrypoints.site.contents import Entry
from entrypoints.site.findable import everything
from entrypoints.site.layout import Link, Section, guide_section
from entrypoints.site.markdown import Heading, Rendered, render
from entrypoints.site.search import LONGEST, Found, Index

_NEAREST: Final = 6
"""Pages that an unknown address is answered with."""
_MISTYPED: Final = 40
"""Characters of a name that is compared with those of pages: nobody mistypes a longer one, and comparing takes its time."""
_Maker = Callable[[], str | Rendered]


class Site:
    """Pages by their address. `base_url` is where the API is reached, `docs_url` where error types are published."""

    POLICY: Final = layout.POLICY
    """The Content-Security-Policy that pages are served with."""
    LONGEST: Final = LONGEST
    """Characters of a query that count."""
    SEARCH: Final = layout.SEARCH
    """The address of the page that answers searches."""

    def __init__(self, table: Table, base_url: str, docs_url: str) -> None:
        self._table, self._base_url, self._docs_url = table, base_url, docs_url

    def addresses(self) -> list[str]:
        """Every page."""
        return [*self._makers, self.SEARCH]

    def has(self, path: str) -> bool:
        """Whether there is a page."""
        return path in self._makers or path == self.SEARCH

    def page(self, path: str) -> str | None:
        """The whole HTML of the page there; None when there is none."""
        if path not in self._makers:
            return None
        title, make = self._makers[path]
        return self._around(title, make(), path)

    def search(self, query: str) -> str:
        """The page of what a search finds."""
        query = query[:LONGEST]
        found = self._index.search(query)
        return self._around(f"Search: {query}" if query else "Search", _results(query, found), self.SEARCH, query)

    def lost(self, path: str) -> str:
        """The page for an address that there is not, with those that may have been meant."""
        name = path.rstrip("/").rpartition("/")[2][:LONGEST]
        alike = get_close_matches(name, self._by_name, _NEAREST, 0.6) if len(name) <= _MISTYPED else []
        found = [(self._by_name[each], self._makers[self._by_name[each]][0]) for each in alike]
        words = name.replace("-", " ").replace("_", " ")
        found += [(entry.url, entry.title) for entry in self._index.search(words)]
        items = "".join(
            f'<li><a href="{url}">{escape(title)}</a></li>' for url, title in dict(found[:_NEAREST]).items()
        )
        nearest = f"<p>Did you mean one of these?</p><ul>{items}</ul>" if items else ""
        said = (
            f"There is no page at <code>{escape(path[:LONGEST])}</code>. Search at the top of this page, or begin at "
        )
        main = f'<h1>Page not found</h1><p class="lead">{said}<a href="/docs">the front page</a>.</p>{nearest}'
        return self._around("Page not found", main, "")

    @cached_property
    def _makers(self) -> Mapping[str, tuple[str, _Maker]]:
        """Title and maker of each page, by its address."""
        return {address: (title, make) for address, title, make in self._every()}

    def _every(self) -> Iterator[tuple[str, str, _Maker]]:
        yield "/docs", "Joinery", partial(home.contents_of, self._table)
        yield reference.HOME, "Reference", partial(reference.overview, self._table)
        for area in self._table.areas:
            yield f"{reference.HOME}/{area.name}", area.title, partial(reference.area_page, area, self._base_url)
        yield event_pages.HOME, "Events", event_pages.overview
        for name in event_pages.TEXTS:
            yield f"{event_pages.HOME}/{name}", name, partial(event_pages.one, name, self._table)
        yield error_pages.HOME, "Error codes", partial(error_pages.overview, CODES)
        for name, code in CODES.items():
            yield f"{error_pages.HOME}/{name}", name, partial(error_pages.one, code, self._docs_url, self._table)
        yield contents.DECISIONS, "Decisions", _decisions
        for entry in contents.by_url().values():
            yield entry.url, entry.title, partial(_guide, entry)

    @cached_property
    def _by_name(self) -> Mapping[str, str]:
        """Addresses by their last part."""
        return {address.rpartition("/")[2]: address for address in self._makers}

    @cached_property
    def _index(self) -> Index:
        return Index(everything(self._table, CODES))

    @cached_property
    def _menu(self) -> list[Section]:
        made = {
            "reference": reference.section(self._table.areas),
            "events": event_pages.section(),
            "errors": error_pages.section(CODES),
            "news": Section("News", (Link(contents.CHANGELOG, "Changelog"),)),
        }
        return [made[group.made] if group.made else guide_section(group) for group in contents.groups()]

    def _around(self, title: str, main: str | Rendered, url: str, query: str = "") -> str:
        """The page around its contents. Where these are a guide's, the menu shows its headings."""
        whole = title if title == "Joinery" else f"{title} · Joinery docs"
        if isinstance(main, str):
            return layout.page(whole, main, url, self._menu, query)
        inner = [heading for heading in main.headings if heading.level == 2]
        menu = [_with_headings(section, url, inner) for section in self._menu] if len(inner) > 1 else self._menu
        return layout.page(whole, main.html, url, menu, query)


def _guide(entry: Entry) -> Rendered:
    return render(folder.read(entry.file), entry.file)


def _with_headings(section: Section, url: str, headings: Sequence[Heading]) -> Section:
    below = tuple(Link(f"{url}#{heading.anchor}", heading.title) for heading in headings)
    links = tuple(Link(link.url, link.title, below) if link.url == url else link for link in section.links)
    return Section(section.title, links)


def _decisions() -> str:
    items = "".join(f'<li><a href="{entry.url}">{escape(entry.title)}</a></li>' for entry in contents.decisions())
    return f'<h1>Decisions</h1><p class="lead">Why things are as they are, a few lines each.</p><ul>{items}</ul>'


def _results(query: str, found: list[Found]) -> str:
    """The list, and how many there are."""
    if not query:
        said = "Type a word: an operation, a field, an event, an error code."
    elif not found:
        said = f"Nothing has “{escape(query)}”. Try fewer words, or the beginning of one."
    else:
        said = f"{len(found)} {'result' if len(found) == 1 else 'results'}, best first"
    items = "".join(
        f'<li><a href="{entry.url}"><span class="kind">{escape(entry.kind)}</span> <strong>{escape(entry.title)}</strong>'
        f'<span class="snippet">{escape(entry.text[:140])}</span></a></li>'
        for entry in found
    )
    return f'<h1>Search</h1><div id="results"><p role="status">{said}</p><ol class="results">{items}</ol></div>'
