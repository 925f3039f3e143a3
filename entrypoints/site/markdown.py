"""Markdown as pages of the site: headings with anchors, links that lead to pages, code and tables that scroll by key."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from html import escape
from itertools import count
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.token import Token

from entrypoints.site.blocks import Blocks
from entrypoints.site.contents import address

TABS: Final = {"sh": "curl", "python": "Python", "ts": "TypeScript"}
"""Languages that stand beside each other as tabs, where their blocks follow each other."""


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading and the words below it, up to the next one; `code` is what blocks of code say there."""

    level: int
    anchor: str
    title: str
    text: str
    code: str = ""


@dataclass(slots=True)
class Rendered:
    """A file as HTML, with its headings in order."""

    html: str
    headings: list[Heading] = field(default_factory=list)


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": True}).enable("table")


def anchor_of(title: str) -> str:
    """The anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")


def inline(text: str) -> str:
    """One line of Markdown, such as a description, as HTML."""
    return str(_parser().renderInline(text))


def paragraphs(text: str) -> str:
    """Some Markdown without headings as HTML."""
    return str(_parser().render(text))


def _plain(token: Token) -> str:
    said = {"text", "code_inline"}
    return "".join(
        part.content if part.type in said else " " if part.type in ("softbreak", "hardbreak") else ""
        for part in token.children or ()
    )


def render(text: str, file: str) -> Rendered:
    """The file's text as HTML; `file` is its path in the repository, by which its links are read."""
    tokens = _parser().parse(text)
    headings = list(_name_headings(tokens))
    _lead_links(tokens, file)
    _empty_heads(tokens)
    parts = list(_with_blocks(tokens, Blocks()))
    html = _parser().renderer.render(parts, _parser().options, {})
    return Rendered(str(html), headings)


def _name_headings(tokens: Sequence[Token]) -> Iterator[Heading]:
    """Each heading with its words; the tokens get their anchors."""
    used: dict[str, Iterator[int]] = {}
    starts = [at for at, token in enumerate(tokens) if token.type == "heading_open"]
    for start, end in zip(starts, [*starts[1:], len(tokens)], strict=True):
        title = _plain(tokens[start + 1])
        anchor = anchor_of(title)
        if number := next(used.setdefault(anchor, count())):
            anchor = f"{anchor}-{number}"
        tokens[start].attrSet("id", anchor)
        words = [_plain(token) for token in tokens[start + 3 : end] if token.type == "inline"]
        code = [token.content for token in tokens[start + 3 : end] if token.type == "fence"]
        yield Heading(int(tokens[start].tag[1]), anchor, title, " ".join(words), "\n".join(code))


def _lead_links(tokens: Sequence[Token], file: str) -> None:
    """Have links lead to pages; one to a file that the site does not have becomes the words alone."""
    for token in tokens:
        for part in token.children or ():
            if part.type == "link_open":
                url = address(str(part.attrGet("href")), file)
                if url is not None:
                    part.attrSet("href", url)
                else:
                    part.tag, part.attrs = "span", {}
            elif part.type == "link_close":
                part.tag = "a"
        _close_spans(token.children or ())


def _empty_heads(tokens: Sequence[Token]) -> None:
    """Have heads of columns that say nothing be plain cells: a head without a word confuses screen readers."""
    for at, token in enumerate(tokens):
        if token.type == "th_open" and not tokens[at + 1].content:
            token.tag = tokens[at + 2].tag = "td"


def _close_spans(parts: Sequence[Token]) -> None:
    """Close each link by the tag that opened it."""
    opened = ""
    for part in parts:
        if part.type == "link_open":
            opened = part.tag
        elif part.type == "link_close":
            part.tag = opened


def _with_blocks(tokens: Sequence[Token], blocks: Blocks) -> Iterator[Token]:
    """The tokens, with code, tabs and tables as the site has them; comments are left out."""
    at = 0
    while at < len(tokens):
        token = tokens[at]
        if token.type == "fence":
            group = _together(tokens, at)
            samples = [(TABS.get(fence.info.split(" ")[0], ""), fence.content.rstrip("\n")) for fence in group]
            made = blocks.tabs(samples) if len(group) > 1 else blocks.code(samples[0][1], _language(token))
            yield _html(made)
            at += len(group)
            continue
        if token.type == "code_block":  # indented, without a fence
            yield _html(blocks.code(token.content.rstrip("\n")))
            at += 1
            continue
        if token.type == "table_open":
            yield _html(blocks.opened_table())
        if token.type != "html_block" or not token.content.startswith("<!--"):
            yield token
        if token.type == "table_close":
            yield _html("</div>")
        at += 1


def _together(tokens: Sequence[Token], at: int) -> list[Token]:
    """The fence there, and those right behind it that tell the same in other languages."""
    group: list[Token] = []
    seen: set[str] = set()
    for token in tokens[at:]:
        language = token.info.split(" ")[0] if token.type == "fence" else ""
        if token.type != "fence" or (group and (language not in TABS or language in seen or not seen & TABS.keys())):
            break
        group.append(token)
        seen.add(language)
    return group


def _language(fence: Token) -> str:
    return {"sh": "shell", "": "text"}.get(fence.info.split(" ")[0], escape(fence.info.split(" ")[0]))


def _html(text: str) -> Token:
    return Token("html_block", "", 0, content=text)
