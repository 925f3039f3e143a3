"""JSON as strangers send it: read within bounds, or not at all."""

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
    raise ValueError(f"{constant} is no JSON")


def value_of(text: str | bytes) -> Any:
    """The value that the text stands for. Raises BadAnswer: no JSON, no UTF-8, NaN, too deep, numbers out of range."""
    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8")
        return json.loads(text, parse_float=_finite, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise BadAnswer(f"It is no JSON ({type(error).__name__}).") from None


def object_of(value: Any, name: str) -> Mapping[str, Any]:
    """The value, which has to be an object. Raises BadAnswer."""
    if not isinstance(value, Mapping):
        raise BadAnswer(f"`{name}` is no object.")
    return value
