"""What a fetch has to tell of its snapshot, kept inside it: whoever reads the snapshot tells it, each time it is read."""

import json
from typing import Any

_KEY = "joinery_note"
_LONGEST = 500


def note(detail: str) -> bytes:
    """A line for a snapshot of JSON lines, told as a Report by joinery_sdk.readers.json_records."""
    return json.dumps({_KEY: detail[:_LONGEST]}).encode() + b"\n"


def noted(value: Any) -> str | None:
    """The text of such a line; None for any other."""
    if isinstance(value, dict) and len(value) == 1:
        text = value.get(_KEY)
        return text if isinstance(text, str) else None
    return None
