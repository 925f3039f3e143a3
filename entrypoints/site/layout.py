"""The look of the site: one stylesheet and one script, both inline, so that nothing else is fetched."""

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import Final

from entrypoints.site import contents


def text(name: str) -> str:
    """A file that is shipped beside this one."""
    return files(__package__).joinpath(name).read_text("utf-8").strip()


STYLE: Final = text("style.css")
SCRIPT: Final = text("script.js")


def _allowed(text: str) -> str:
    return "'sha256-" + b64encode(sha256(text.encode()).digest()).decode() + "'"


POLICY: Final = (
    f"default-src 'none'; style-src {_allowed(STYLE)}; script-src {_allowed(SCRIPT)}; connect-src 'self'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'"
)
"""The Content-Security-Policy of the pages."""


SEARCH: Final = "/docs/search"
"""Where searches are answered; the script reads it from the form."""


@dataclass(frozen=True, slots=True)
class Link:
    """An entry of the menu, with the entries below it that are shown while its page is."""

    url: str
    title: str
    below: tuple["Link", ...] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """Entries of the menu that can be folded away together."""

    title: str
    links: tuple[Link, ...]


def guide_section(group: contents.Group) -> Section:
    """The menu of some pages of docs/."""
    return Section(group.title, tuple(Link(entry.url, entry.title) for entry in group.entries))


def _link(link: Link, url: str) -> str:
    current = ' aria-current="page"' if link.url == url else ""
    below = ""
    if current and link.below:
        below = "<ul>" + "".join(_link(inner, url) for inner in link.below) + "</ul>"
    return f'<li><a href="{link.url}"{current}>{escape(link.title)}</a>{below}</li>'


def _section(section: Section, url: str) -> str:
    inside = any(link.url == url for link in section.links)
    links = "".join(_link(link, url) for link in section.links)
    return f"<details{' open' if inside else ''}><summary>{escape(section.title)}</summary><ul>{links}</ul></details>"


def search_form(query: str = "") -> str:
    """The field for searching; it works without a script."""
    return (
        '<form class="search" role="search" action="'
        + SEARCH
        + '" method="get"><label class="hidden" for="q">Search</label>'
        f'<input id="q" name="q" type="search" placeholder="Search the docs" autocomplete="off" maxlength="100" '
        f'value="{escape(query)}"><button type="submit">Search</button></form>'
    )


def plain(title: str, main: str) -> str:
    """A page that stands alone: no menu, no search, no script."""
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)} - Joinery</title>'
        '<meta name="viewport" content="width=device-width,initial-scale=1"><meta name="color-scheme" content="light dark">'
        f'<style>{STYLE}</style></head><body><header><a class="brand" href="/docs">Joinery</a></header>'
        f'<main class="alone" id="main">{main}</main></body></html>'
    )


def page(title: str, main: str, url: str, menu: Sequence[Section], query: str = "") -> str:
    """A whole page around its contents; `url` is where it stands, by which the menu shows it."""
    nav = "".join(_section(section, url) for section in menu)
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width,initial-scale=1"><meta name="color-scheme" content="light dark">'
        f'<style>{STYLE}</style></head><body><a class="skip" href="#main">Skip to contents</a>'
        f'<header><a class="brand" href="/docs">Joinery <span>docs</span></a>{search_form(query)}</header>'
        '<div class="page"><details class="menu"><summary>Menu</summary></details>'
        f'<nav aria-label="Contents">{nav}</nav><main id="main" tabindex="-1">{main}</main></div>'
        f"<script>{SCRIPT}</script></body></html>"
    )
