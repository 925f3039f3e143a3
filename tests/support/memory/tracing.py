"""Spans kept in memory, for whoever wants to look at them in the same process."""

import contextlib
from collections import deque
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from random import getrandbits

from domain.kernel.trace_context import TraceContext, context_of
from ports.telemetry import Note, SpanKind

MOST = 10_000
"""Spans kept; the oldest go first."""


@dataclass(slots=True)
class MemorySpan:
    """One span, with what was said about it."""

    name: str
    kind: SpanKind
    context: TraceContext
    parent: TraceContext | None
    link: TraceContext | None
    notes: dict[str, Note] = field(default_factory=dict)
    failure: str | None = None
    ended: bool = False

    def note(self, **notes: Note | None) -> None:
        self.notes |= {name.replace("__", "."): value for name, value in notes.items() if value is not None}

    def failed(self, why: str) -> None:
        self.failure = why


class MemoryTracing:
    """Tracing; `spans` are those that have begun, oldest first."""

    def __init__(self) -> None:
        self.spans: deque[MemorySpan] = deque(maxlen=MOST)
        self._current: ContextVar[str | None] = ContextVar("span", default=None)

    @contextlib.contextmanager
    def span(
        self, name: str, kind: SpanKind, *, parent: str | None = None, link: str | None = None
    ) -> Iterator[MemorySpan]:
        above = context_of(parent)
        trace, sampled = (above.trace, above.sampled) if above else (f"{getrandbits(127) + 1:032x}", True)
        context = TraceContext(trace, f"{getrandbits(63) + 1:016x}", sampled)
        span = MemorySpan(name, kind, context, above, context_of(link))
        self.spans.append(span)
        token = self._current.set(str(context))
        try:
            yield span
        except BaseException as error:
            span.failed(type(error).__name__)
            raise
        finally:
            span.ended = True
            self._current.reset(token)

    def current(self) -> str | None:
        return self._current.get()
