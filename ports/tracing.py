"""Spans of what the service does, told to whoever collects them, and the context by which one thing follows from another.

Where nobody collects them there is no Tracing at all (None): asking for that is everything it costs.
"""

from contextlib import AbstractContextManager
from enum import Enum
from typing import Protocol

Note = str | int | float | bool


class SpanKind(Enum):
    """What a span is about: a request that came in, work out of the queue, or a request that goes out."""

    SERVER = "server"
    CONSUMER = "consumer"
    CLIENT = "client"


class Span(Protocol):
    """Something that is being done."""

    def note(self, **notes: Note | None) -> None:
        """Say more about it, by names with `__` for a dot; what is None is left out. Never a secret or a query's value."""
        ...

    def failed(self, why: str) -> None:
        """It ends badly; `why` is a word of ours, such as a status or an exception's class."""
        ...


class Tracing(Protocol):
    """One a process. Nothing it does waits for anybody or raises; contexts are texts as W3C's `traceparent` has them."""

    def span(
        self, name: str, kind: SpanKind, *, parent: str | None = None, link: str | None = None
    ) -> AbstractContextManager[Span]:
        """Around what is done: a part of `parent`, or a trace of its own; `link` is what else it follows from.

        Contexts that are none are passed over. An exception that leaves it makes it failed, and goes on to the caller.
        """
        ...

    def current(self) -> str | None:
        """The context of the innermost span that this task is in; None outside of any."""
        ...
