"""Bounded parser of JSON from third parties."""

import json
import math
from collections.abc import Mapping
from typing import Any, NoReturn

from adapters.llm.dialect import BadAnswer


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("a number is out of range")
    return number


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def value_of(text: str | bytes) -> Any:
    """Parse a JSON text. Raises BadAnswer: invalid JSON or UTF-8, NaN, too deep, numbers out of range."""
    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8")
        return json.loads(text, parse_float=_finite, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise BadAnswer(f"It is not JSON ({type(error).__name__}).") from None


def object_of(value: Any, name: str) -> Mapping[str, Any]:
    """Return the value if it is an object. Raises BadAnswer otherwise."""
    if not isinstance(value, Mapping):
        raise BadAnswer(f"`{name}` is not an object.")
    return value
