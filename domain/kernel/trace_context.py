"""Trace contexts in the format of the header `traceparent` (https://www.w3.org/TR/trace-context/)."""

import re
from dataclasses import dataclass

_FORMAT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-[ -~]*)?")
_MAX_CHARS = 200


@dataclass(frozen=True, slots=True)
class TraceContext:
    """Position of an operation in a trace: the hexadecimal IDs of trace and span, and whether the trace is recorded."""

    trace: str
    span: str
    sampled: bool

    def __str__(self) -> str:
        """Format as a value of the header `traceparent`."""
        return f"00-{self.trace}-{self.span}-{self.sampled:02x}"


def parse_trace_context(text: str | None) -> TraceContext | None:
    """Parse a value of the header `traceparent`; return None if it is malformed or missing.

    Versions after 00 may add fields at the end, which are ignored.
    """
    found = _FORMAT.fullmatch(text.strip(" \t")) if text is not None and len(text) <= _MAX_CHARS else None
    if found is None:
        return None
    version, trace, span, flags, more = found.groups()
    if version == "ff" or (version == "00" and more) or not (trace.strip("0") and span.strip("0")):
        return None
    return TraceContext(trace, span, bool(int(flags, 16) & 1))
