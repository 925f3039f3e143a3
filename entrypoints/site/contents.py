"""Which pages of docs/ the site has, where each one stands, and how files that link to each other find one another."""

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from posixpath import dirname, join, normpath
from typing import Final

from entrypoints.site import folder

DECISIONS: Final = "/docs/inside/decisions"
CHANGELOG: Final = "/docs/changelog"


@dataclass(frozen=True, slots=True)
class Entry:
    """A page: its file in the repository, its address, its title (the file's first heading) and what it is for.

    `also` is what people may look for it by, beside what it says.
    """

    file: str
    url: str
    title: str
    summary: str
    also: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """Pages that stand together in the menu; those of a group that is `made` come from code, and it has no entries."""

    title: str = ""
    entries: tuple[Entry, ...] = ()
    made: str = ""
    on_front: bool = False
    """Whether the front page lists them."""


def _title(text: str) -> str:
    found = re.search(r"^# (.+)$", text, re.MULTILINE)
    return found.group(1).replace("`", "") if found else ""


def _entry(file: str, url: str, summary: str = "", also: str = "") -> Entry:
    return Entry(file, url, _title(folder.read(file)), summary, also)


@cache
def groups() -> tuple[Group, ...]:
    """The groups in the order of the menu."""
    listed = tomllib.loads(files(__package__).joinpath("contents.toml").read_text("utf-8"))
    summaries, also = listed["summaries"], listed["also"]
    return tuple(
        Group(made=group["made"])
        if "made" in group
        else Group(
            group["title"],
            tuple(
                _entry(f"docs/{name}.md", f"{group['under']}/{name}", summaries[name], also.get(name, ""))
                for name in group["pages"]
            ),
            on_front=group.get("on_front", True),
        )
        for group in listed["group"]
    )


@cache
def decisions() -> tuple[Entry, ...]:
    """The decisions, which are linked to and listed, and stand in no menu."""
    return tuple(_entry(f"docs/decisions/{name}.md", f"{DECISIONS}/{name}") for name in folder.decisions())


@cache
def by_url() -> dict[str, Entry]:
    """Every page by its address."""
    whole = [*(entry for group in groups() for entry in group.entries), *decisions()]
    whole.append(_entry("CHANGELOG.md", CHANGELOG))
    return {entry.url: entry for entry in whole}


@cache
def _by_file() -> dict[str, str]:
    return {entry.file: entry.url for entry in by_url().values()} | {"docs/decisions": DECISIONS}


def address(link: str, file: str) -> str | None:
    """Where a link of that file leads on the site; None when the site does not have what it names."""
    if re.match(r"[a-z]+:", link) or link.startswith(("#", "/")):
        return link
    path, mark, anchor = link.partition("#")
    found = _by_file().get(normpath(join(dirname(file), path)))
    return None if found is None else found + mark + anchor
