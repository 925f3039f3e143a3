"""Parser of JSON from model providers, with limits."""

import json
import math
from collections.abc import Mapping
from typing import Any, NoReturn

from adapters.llm.dialect import InvalidResponse


def _parse_finite(text: str) -> float:
    """Return the number. Raises ValueError for an infinite one."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("a number is out of range")
    return number


def _reject_constant(constant: str) -> NoReturn:
    """Raise ValueError for NaN and Infinity."""
    raise ValueError(f"{constant} is not JSON")


def parse_json(text: str | bytes) -> Any:
    """Parse a JSON text.

    Raises InvalidResponse for invalid JSON or UTF-8, NaN, a number beyond the range of a float, or nesting that exceeds
    Python's recursion limit.
    """
    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8")
        return json.loads(text, parse_float=_parse_finite, parse_constant=_reject_constant)
    except (ValueError, RecursionError) as error:
        raise InvalidResponse(f"The text is not JSON ({type(error).__name__}).") from None


def require_object(value: Any, name: str) -> Mapping[str, Any]:
    """Return the value if it is a JSON object, else raise InvalidResponse, whose message contains `name`."""
    if not isinstance(value, Mapping):
        raise InvalidResponse(f"`{name}` is not a JSON object.")
    return value
