"""The event catalogue: a page for each type, with what it means, when it is sent, how you get it, and what it holds."""

import tomllib
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from typing import Final

from adapters.wire.event_types import EVENT_TYPES
from domain.events.model import TYPES
from domain.webhooks.samples import TYPES_WITH_SAMPLE
from entrypoints.operations.table import Table
from entrypoints.site.blocks import Blocks
from entrypoints.site.calls import pretty
from entrypoints.site.event_samples import Sample, sample_of
from entrypoints.site.layout import Link, Section
from entrypoints.site.markdown import inline
from entrypoints.site.schemas import fields

HOME: Final = "/docs/events"
CHANNELS: Final = {
    "webhooks": '<a href="/docs/guides/webhooks">webhooks</a>',
    "feed": '<a href="/docs/guides/following">change feed</a>',
    "stream": '<a href="/docs/guides/following#the-stream">stream</a>',
}
LATER: Final = '<strong class="later">not sent yet</strong>'


@dataclass(frozen=True, slots=True)
class Text:
    """What people are told of a type."""

    meaning: str
    when: str


TEXTS: Final = {
    name: Text(**parts)
    for name, parts in tomllib.loads(files(__package__).joinpath("event_texts.toml").read_text("utf-8")).items()
}


def section() -> Section:
    """The menu of the event catalogue."""
    return Section("Events", (Link(HOME, "All events"), *(Link(f"{HOME}/{name}", name) for name in TEXTS)))


def overview() -> str:
    """The contents of the page that lists every type."""
    rows = [
        (
            f'<a href="{HOME}/{name}"><code>{_breaking(name)}</code></a>{"" if TYPES[name].is_sent else f" {LATER}"}',
            inline(text.meaning),
            _channels(name),
        )
        for name, text in TEXTS.items()
    ]
    return (
        '<h1>Events</h1><p class="lead">Every change is an event. You get them by '
        '<a href="/docs/guides/webhooks">webhooks</a>, or read them from the <a href="/docs/guides/following">change feed '
        "and the stream</a>. Ignore types that you do not know: new ones come without a new version.</p>"
        f"{Blocks().table(('Type', 'What it means', 'How you get it'), rows)}"
    )


def _breaking(name: str) -> str:
    """The name, which narrow screens may break behind its dot."""
    return escape(name).replace(".", ".<wbr>")


def _channels(name: str) -> str:
    found = [link for channel, link in CHANNELS.items() if channel in TYPES[name].channels]
    return ", ".join(found) or "one webhook endpoint, on request"


def _samples(name: str, found: Sample | None, blocks: Blocks) -> str:
    if found is None:
        return "<h2>Sample</h2><p>Nothing sends this type yet, so its payload is not settled.</p>"
    parts = ["<h2 id='thin'>Sample: thin payload</h2>", blocks.code(pretty(found.thin), "JSON")]
    if found.fat is None:
        parts.insert(1, "<p>Endpoints that ask for fat payloads get the same.</p>")
        return "".join(parts)
    parts.append(
        "<h2 id='fat'>Sample: fat payload</h2><p>With old and new values, where they come from, and the thing itself as "
        "<code>data.object</code>. The plan must include <code>fat_webhooks</code>. The change feed and the stream tell "
        "values as well, without <code>data.object</code>.</p>"
    )
    return "".join([*parts, blocks.code(pretty(found.fat), "JSON")])


def _try(name: str) -> str:
    if name not in TYPES_WITH_SAMPLE:
        return ""
    return (
        '<p>Try your receiver: in test mode, <a href="/docs/reference/webhooks#webhooks.emit_sample">emit a sample</a> with '
        f'<code>{{"type": "{name}"}}</code>.</p>'
    )


def one(name: str, table: Table) -> str:
    """The contents of a type's page."""
    text, blocks = TEXTS[name], Blocks()
    described = EVENT_TYPES.get(name)
    listed = f'<h2 id="fields">Fields</h2>{fields(described, bounded=False)}' if described is not None else ""
    later = (
        f"<p>{LATER}: what sends it does not exist yet. You may subscribe to it now.</p>"
        if not TYPES[name].is_sent
        else ""
    )
    samples = _samples(name, sample_of(name, table), blocks)
    return (
        f'<h1><code>{escape(name)}</code></h1><p class="lead">{inline(text.meaning)}</p>{later}'
        f'<dl class="facts"><div><dt>When it is sent</dt><dd>{inline(text.when)}</dd></div>'
        f"<div><dt>How you get it</dt><dd>{_channels(name)}</dd></div></dl>{_try(name)}"
        f"{listed}{samples}"
    )
