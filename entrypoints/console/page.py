"""A row of the console's table: where a page stands, who may see it, and what answers it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from entrypoints.console.forms import LONGEST
from entrypoints.http.exchange import Response

if TYPE_CHECKING:
    from entrypoints.console.visit import Visit

Answer: TypeAlias = Response
View: TypeAlias = Callable[["Visit"], Awaitable[Answer]]
Who: TypeAlias = Literal["member", "person", "anybody"]


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of the menu: the section it stands in, and its words."""

    section: str
    title: str


@dataclass(frozen=True, slots=True)
class Page:
    """One page. `rule` is its path with `<name>` for parts, `scope` the one that is needed to see it.

    `menu` is the entry that leads to it, or the name of the section that it belongs to. `who`: a `member` has an organisation,
    a `person` is signed in, `anybody` need not be. A form may have `most` bytes, files included.
    Methods other than GET and HEAD are checked for the form's token before `view` is called.
    """

    rule: str
    view: View
    methods: tuple[str, ...] = ("GET",)
    scope: str | None = None
    menu: Entry | str | None = None
    who: Who = "member"
    most: int = LONGEST

    @property
    def section(self) -> str | None:
        """The section of the menu that it belongs to."""
        return self.menu.section if isinstance(self.menu, Entry) else self.menu

    @property
    def entry(self) -> Entry | None:
        """Its own entry."""
        return self.menu if isinstance(self.menu, Entry) else None
