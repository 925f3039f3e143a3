"""Spans in memory, for inspection in the same process."""

import contextlib
from collections import deque
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from random import getrandbits

from domain.kernel.trace_context import TraceContext, parse_trace_context
from ports.telemetry import AttributeValue, SpanKind

MOST = 10_000
"""Maximum number of stored spans; the oldest are dropped."""


@dataclass(slots=True)
class MemorySpan:
    """One span with its attributes."""

    name: str
    kind: SpanKind
    context: TraceContext
    parent: TraceContext | None
    link: TraceContext | None
    notes: dict[str, AttributeValue] = field(default_factory=dict)
    failure: str | None = None
    ended: bool = False

    def set_attributes(self, **attributes: AttributeValue | None) -> None:
        self.notes |= {name.replace("__", "."): value for name, value in attributes.items() if value is not None}

    def mark_failed(self, reason: str) -> None:
        self.failure = reason


class MemoryTracing:
    """Tracing in memory; `spans` are the started ones, oldest first."""

    def __init__(self) -> None:
        self.spans: deque[MemorySpan] = deque(maxlen=MOST)
        self._current: ContextVar[str | None] = ContextVar("span", default=None)

    @contextlib.contextmanager
    def open_span(
        self, name: str, kind: SpanKind, *, parent_context: str | None = None, linked_context: str | None = None
    ) -> Iterator[MemorySpan]:
        above = parse_trace_context(parent_context)
        trace, sampled = (above.trace, above.sampled) if above else (f"{getrandbits(127) + 1:032x}", True)
        context = TraceContext(trace, f"{getrandbits(63) + 1:016x}", sampled)
        span = MemorySpan(name, kind, context, above, parse_trace_context(linked_context))
        self.spans.append(span)
        token = self._current.set(str(context))
        try:
            yield span
        except BaseException as error:
            span.mark_failed(type(error).__name__)
            raise
        finally:
            span.ended = True
            self._current.reset(token)

    def get_current(self) -> str | None:
        return self._current.get()
