"""Removal of characters that neither stores nor JSON accept: lone surrogates and NUL."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

T = TypeVar("T")


def cleaned(value: T) -> T:
    """Return the value with every text in it made storable, in dataclasses, mappings, lists and tuples."""
    made: Any = _cleaned(value)
    kept: T = made
    return kept


def _cleaned(value: Any) -> Any:
    if type(value) is str:
        return value.encode("utf-8", "replace").decode("utf-8").replace("\0", "")
    if isinstance(value, Mapping):
        return {_cleaned(name): _cleaned(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_cleaned(part) for part in value)
    if is_dataclass(value) and not isinstance(value, type):
        return type(value)(**{field.name: _cleaned(getattr(value, field.name)) for field in fields(value)})
    return value
