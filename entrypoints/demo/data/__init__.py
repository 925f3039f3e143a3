"""The invented furniture of both vendors, as tables beside this file."""

import tomllib
from importlib.resources import files
from typing import Any


def load(name: str) -> dict[str, Any]:
    """The tables of `name`.toml; arrays as tuples."""
    tables: dict[str, Any] = _fixed(tomllib.loads(files(__name__).joinpath(f"{name}.toml").read_text("utf-8")))
    return tables


def _fixed(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_fixed, value))
    return {key: _fixed(entry) for key, entry in value.items()} if isinstance(value, dict) else value
