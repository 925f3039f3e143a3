"""Every error code the service answers with: status, title, cause and remedy, published at /errors/<code>."""

import tomllib
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Code:
    """One stable machine code (docs/conventions.md#errors)."""

    name: str
    status: int
    title: str
    cause: str
    remedy: str


def _texts(name: str) -> dict[str, Any]:
    return tomllib.loads(files(__package__).joinpath(name).read_text("utf-8"))


CODES = {name: Code(name, **parts) for name, parts in _texts("codes.toml").items()}
FIELD_CODES: Final[dict[str, str]] = _texts("field_codes.toml")
"""The codes of errors[] entries."""
