"""The console's menu: sections in their order, and in them the pages that a role's scopes let it see."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from entrypoints.console.page import Page

SECTIONS: Final = ("Home", "Catalogue", "Sources", "Matching", "Developers", "Organisation")


@dataclass(frozen=True, slots=True)
class Item:
    """A page in the menu."""

    title: str
    place: str
    current: bool


@dataclass(frozen=True, slots=True)
class Section:
    """A section as one person sees it: its first page is where its title leads."""

    title: str
    items: tuple[Item, ...]
    current: bool

    @property
    def place(self) -> str:
        """Where its title leads."""
        return self.items[0].place

    @property
    def icon(self) -> str:
        """The name of its picture."""
        return self.title.lower()


def menu_of(pages: Sequence[Page], scopes: Collection[str], now: Page | None) -> tuple[Section, ...]:
    """The menu for these scopes; `now` is the page that is shown."""
    found = []
    for title in SECTIONS:
        items = tuple(
            Item(page.entry.title, page.rule, page is now)
            for page in pages
            if page.entry is not None and page.entry.section == title and (page.scope is None or page.scope in scopes)
        )
        if items:
            found.append(Section(title, items, now is not None and now.section == title))
    return tuple(found)
