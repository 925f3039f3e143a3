"""Everything that can be searched for, gathered from the operation table, the events, the codes and the guides."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from entrypoints.operations.codes import FIELD_CODES, Code
from entrypoints.operations.openapi import REQUEST_HEADERS
from entrypoints.operations.query_string import parameters_of
from entrypoints.operations.table import Table
from entrypoints.site import contents, event_pages, folder, reference
from entrypoints.site.markdown import Heading, render
from entrypoints.site.schemas import fields_in
from entrypoints.site.search import Found

_SNIPPET = 600
"""Characters of a section's words that count as much as its summary would."""


def everything(table: Table, codes: Mapping[str, Code]) -> list[Found]:
    """Every entry, the likelier kinds first."""
    return [
        *_operations(table),
        *_guides(),
        *_events(),
        *_codes(codes),
        *_parameters(table),
        *_fields(table),
        *_headers(),
    ]


def _operations(table: Table) -> Iterator[Found]:
    for area in table.areas:
        yield Found("Area", area.title, f"{reference.HOME}/{area.name}", area.description, 1.3)
    for row in table:
        text = f"{row.method} {row.path} {row.id} {row.description}"
        yield Found("Operation", row.summary, reference.url_of(row), text, 1.4)


def _guides() -> Iterator[Found]:
    for entry in contents.by_url().values():
        guide = entry.url.startswith(("/docs/guides", "/docs/quickstart"))
        weight = 1.2 if guide else 0.7
        headings = render(folder.read(entry.file), entry.file).headings
        kind = "Guide" if guide else "Page"
        said = entry.summary or _snippet(headings[0].text)
        yield Found(kind, entry.title, entry.url, said, weight * 1.25, entry.also, _all_of(headings))
        for heading in headings[1:]:
            url = f"{entry.url}#{heading.anchor}"
            whole = f"{heading.text} {heading.code}"
            yield Found(entry.title, heading.title, url, _snippet(heading.text), weight, whole=whole)


def _snippet(text: str) -> str:
    return text[:_SNIPPET]


def _all_of(headings: Sequence[Heading]) -> str:
    """Every word of a page, also what stands before its first section and in its samples."""
    return " ".join(f"{heading.title} {heading.text} {heading.code}" for heading in headings)


def _events() -> Iterator[Found]:
    for name, text in event_pages.TEXTS.items():
        yield Found("Event", name, f"{event_pages.HOME}/{name}", f"{text.meaning} {text.when}", 1.2)


def _codes(codes: Mapping[str, Code]) -> Iterator[Found]:
    for name, code in codes.items():
        yield Found("Error", name, f"/errors/{name}", f"{code.status} {code.title}. {code.cause}", 1.2)
    for name, meaning in FIELD_CODES.items():
        yield Found("Error in a field", name, "/errors#fields", meaning)


def _parameters(table: Table) -> Iterator[Found]:
    for row in table:
        for name, described in parameters_of(row).items():
            text = f"{row.summary}: {described.get('description', '')}"
            yield Found("Parameter", name, reference.url_of(row), text)


def _fields(table: Table) -> Iterator[Found]:
    seen: set[tuple[str, str]] = set()
    for row in table:
        schemas: list[tuple[Mapping[str, Any], float]] = [(row.body.schema, 0.8)] if row.body is not None else []
        schemas += [(row.reply, 0.7)] if row.reply is not None else []
        for schema, weight in schemas:
            for object, path, description in fields_in(schema):
                if (object, path) not in seen:
                    seen.add((object, path))
                    text = f"{row.summary}: {description or object}"
                    yield Found("Field", path, reference.url_of(row), text, weight)


def _headers() -> Iterator[Found]:
    for name, described in REQUEST_HEADERS.items():
        yield Found("Header", name, "/docs/reference#headers", str(described["description"]), 1.1)
