"""Cleaning of strings: handling of characters that neither databases nor JSON accept (lone surrogates and NUL)."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

T = TypeVar("T")


def clean_strings(value: T) -> T:
    """Return a value in whose strings NUL is removed and each lone surrogate is replaced by `?`.

    Dataclasses, mappings, lists and tuples are cleaned recursively.
    """
    made: Any = _clean(value)
    kept: T = made
    return kept


def _clean(value: Any) -> Any:
    """Return the value with cleaned strings, recursively."""
    if type(value) is str:
        return value.encode("utf-8", "replace").decode("utf-8").replace("\0", "")
    if isinstance(value, Mapping):
        return {_clean(name): _clean(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_clean(part) for part in value)
    if is_dataclass(value) and not isinstance(value, type):
        return type(value)(**{field.name: _clean(getattr(value, field.name)) for field in fields(value)})
    return value
