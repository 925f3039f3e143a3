"""Halves of characters, which JSON can write (halves of surrogate pairs) and no text that is stored or sent can have."""

from typing import Any


def whole_text(text: str) -> str:
    """`text` with its pairs of halves joined and every other half as U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def whole(value: Any) -> Any:
    """A cell, or a row of them, whose texts are whole."""
    if isinstance(value, str):
        return whole_text(value)
    if isinstance(value, dict):
        return {whole_text(str(name)): whole(entry) for name, entry in value.items()}
    return [whole(entry) for entry in value] if isinstance(value, list | tuple) else value
