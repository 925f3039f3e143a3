"""Error codes of the service with status, title, cause and remedy, published at /errors/<code>."""

import tomllib
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Code:
    """Stable, machine-readable error code (docs/conventions.md#errors)."""

    name: str
    status: int
    title: str
    cause: str
    remedy: str


def _load_texts(name: str) -> dict[str, Any]:
    return tomllib.loads(files(__package__).joinpath(name).read_text("utf-8"))


CODES = {name: Code(name, **parts) for name, parts in _load_texts("codes.toml").items()}
FIELD_CODES: Final[dict[str, str]] = _load_texts("field_codes.toml")
"""Meanings of the codes of errors[] entries, by code."""
