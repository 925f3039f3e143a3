"""Notes about a fetch, such as an omitted list. A note is a line of the snapshot, and is reported at each parsing."""

import json
from typing import Any

_NOTE_KEY = "joinery_note"
_MAX_NOTE_CHARS = 500


def encode_note(detail: str) -> bytes:
    """Return a note as a line for a snapshot of JSON lines; readers.json_records reports the note during parsing."""
    return json.dumps({_NOTE_KEY: detail[:_MAX_NOTE_CHARS]}).encode() + b"\n"


def read_note(value: Any) -> str | None:
    """Return the text of a note from its decoded line; None if the line is not a note."""
    if isinstance(value, dict) and len(value) == 1:
        text = value.get(_NOTE_KEY)
        return text if isinstance(text, str) else None
    return None
