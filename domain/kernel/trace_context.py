"""Which span something follows from, as W3C's `traceparent` writes it (https://www.w3.org/TR/trace-context/)."""

import re
from dataclasses import dataclass

_FORM = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-[ -~]*)?")
_LONGEST = 200


@dataclass(frozen=True, slots=True)
class TraceContext:
    """A span's place: its trace and itself, as hexadecimal digits, and whether it is recorded."""

    trace: str
    span: str
    sampled: bool

    def __str__(self) -> str:
        """Return the `traceparent`."""
        return f"00-{self.trace}-{self.span}-{self.sampled:02x}"


def context_of(text: str | None) -> TraceContext | None:
    """Parse a `traceparent` header; return None for an invalid one, which starts a new trace.

    Later versions than 00 may say more at the end, which is passed over.
    """
    found = _FORM.fullmatch(text.strip(" \t")) if text is not None and len(text) <= _LONGEST else None
    if found is None:
        return None
    version, trace, span, flags, more = found.groups()
    if version == "ff" or (version == "00" and more) or not (trace.strip("0") and span.strip("0")):
        return None
    return TraceContext(trace, span, bool(int(flags, 16) & 1))
