"""Trace contexts in the form of W3C's `traceparent` (https://www.w3.org/TR/trace-context/)."""

import re
from dataclasses import dataclass

_FORM = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-[ -~]*)?")
_LONGEST = 200


@dataclass(frozen=True, slots=True)
class TraceContext:
    """Trace id and span id as hexadecimal digits, and whether the trace is recorded."""

    trace: str
    span: str
    sampled: bool

    def __str__(self) -> str:
        """Format as `traceparent`."""
        return f"00-{self.trace}-{self.span}-{self.sampled:02x}"


def context_of(text: str | None) -> TraceContext | None:
    """Parse a `traceparent`; return None for malformed text, so that its sender starts a new trace.

    Versions after 00 may add fields at the end, which are ignored.
    """
    found = _FORM.fullmatch(text.strip(" \t")) if text is not None and len(text) <= _LONGEST else None
    if found is None:
        return None
    version, trace, span, flags, more = found.groups()
    if version == "ff" or (version == "00" and more) or not (trace.strip("0") and span.strip("0")):
        return None
    return TraceContext(trace, span, bool(int(flags, 16) & 1))
