"""Notes on a fetch, kept as lines of its snapshot and reported each time the snapshot is read."""

import json
from typing import Any

_KEY = "joinery_note"
_LONGEST = 500


def note(detail: str) -> bytes:
    """Return a line for a snapshot of JSON lines; joinery_sdk.readers.json_records reports it."""
    return json.dumps({_KEY: detail[:_LONGEST]}).encode() + b"\n"


def noted(value: Any) -> str | None:
    """Return the text of a note, or None for any other value."""
    if isinstance(value, dict) and len(value) == 1:
        text = value.get(_KEY)
        return text if isinstance(text, str) else None
    return None
