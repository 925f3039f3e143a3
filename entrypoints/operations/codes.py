"""Error codes of the API with status, title, cause and remedy, published at /errors/<code>."""

import tomllib
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class ErrorCode:
    """Stable error code for programs, with its HTTP status, and with title, cause and remedy for people."""

    name: str
    status: int
    title: str
    cause: str
    remedy: str


def _load_toml(file_name: str) -> dict[str, Any]:
    return tomllib.loads(files(__package__).joinpath(file_name).read_text("utf-8"))


CODES = {name: ErrorCode(name, **texts) for name, texts in _load_toml("codes.toml").items()}
FIELD_CODES: Final[dict[str, str]] = _load_toml("field_codes.toml")
"""Explanations of the codes that field errors have, by code."""
