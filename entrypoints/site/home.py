"""The front page: what Joinery is, the ways in, and everything that there is to read."""

from html import escape
from typing import Final

from entrypoints.operations.table import Table
from entrypoints.site import contents
from entrypoints.site.reference import HOME

_LEAD: Final = (
    "Joinery takes furniture vendors' product data as they send it (spreadsheets, shops, APIs, mail) and makes one clean "
    "catalogue of it. You read products, variants and offers by API, with exact prices, sizes and stock. Every change "
    "reaches you as an event, and what could not be read is reported with sheet, line and column."
)
_WAYS: Final = (
    ("/docs/quickstart", "Quickstart", "From a key to your first product and your own file, in ten minutes."),
    ("#guides", "Guides", "How to do one thing well: copy the catalogue, receive webhooks, send files."),
    (HOME, "Reference", "Every operation with its parameters, fields, errors and an example."),
)


def contents_of(table: Table) -> str:
    """The contents of the front page."""
    ways = "".join(
        f'<li><a href="{url}"><strong>{title}</strong><span>{escape(text)}</span></a></li>'
        for url, title, text in _WAYS
    )
    parts = [f'<h1>Joinery</h1><p class="lead">{escape(_LEAD)}</p><ul class="ways">{ways}</ul>']
    parts.append('<h2 id="guides">Guides</h2>')
    for group in contents.groups():
        if not group.on_front:
            continue
        items = "".join(
            f'<li><a href="{entry.url}">{escape(entry.title)}</a> <span class="soft">{escape(entry.summary)}</span></li>'
            for entry in group.entries
        )
        parts.append(f'<h3>{escape(group.title)}</h3><ul class="listed">{items}</ul>')
    areas = "".join(
        f'<li><a href="{HOME}/{area.name}">{escape(area.title)}</a> <span class="soft">{escape(area.description)}</span></li>'
        for area in table.areas
    )
    parts.append(f'<h2 id="reference">Reference</h2><ul class="listed">{areas}</ul>')
    parts.append(
        '<p>Also: <a href="/docs/events">every event</a>, <a href="/errors">every error code</a>, '
        '<a href="/openapi.json">the OpenAPI description</a>, <a href="/docs/changelog">the changelog</a>.</p>'
    )
    return "".join(parts)
