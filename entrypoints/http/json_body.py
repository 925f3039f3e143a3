"""Reading a JSON body strictly: what two parsers could understand differently is refused, numbers stay exact."""

import json
from decimal import Decimal
from typing import Any, Final

from domain.kernel.errors import FieldError, InvalidRequest

DEPTH: Final = 32
_LONGEST_NUMBER: Final = 64
_LARGEST_EXPONENT: Final = 30


class _Doubled(dict[str, Any]):
    """An object in which a key stood twice; `key` is the first such."""

    key = ""


class _BadNumber(ValueError):
    """NaN, Infinity, or a number that no field of ours could hold."""


def _number(text: str) -> int | Decimal:
    value = Decimal(text) if len(text) <= _LONGEST_NUMBER else None
    if value is None or abs(value.adjusted()) > _LARGEST_EXPONENT:
        raise _BadNumber(f"The number {text[:40]} is out of range.")
    return int(value) if value == value.to_integral_value() else value


def _integer(text: str) -> int:
    if len(text) > _LONGEST_NUMBER:
        raise _BadNumber(f"The number {text[:40]}… is out of range.")
    return int(text)


def _constant(text: str) -> Any:
    raise _BadNumber(f"{text} is not JSON (RFC 8259 §6).")


def _refuse(detail: str, field: str = "body", code: str = "invalid_format") -> InvalidRequest:
    return InvalidRequest(detail, fields=(FieldError(field, code, detail),))


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) == len(pairs):
        return made
    doubled = _Doubled(made)
    seen: set[str] = set()
    doubled.key = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
    return doubled


_decoder: Final = json.JSONDecoder(
    object_pairs_hook=_object, parse_float=_number, parse_int=_integer, parse_constant=_constant
)


def decode(raw: bytes) -> Any:
    """The JSON value of a body: RFC 8259 in UTF-8, no doubled keys, at most 32 levels deep, texts storable.

    Whole numbers come as int, others as Decimal. Raises InvalidRequest.
    """
    try:
        value = _decoder.decode(raw.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise _refuse(f"The body is not UTF-8: byte {error.start} is wrong.") from None
    except json.JSONDecodeError as error:
        raise _refuse(f"The body is not JSON: {error.msg} at line {error.lineno}, column {error.colno}.") from None
    except _BadNumber as error:
        raise _refuse(str(error), code="invalid_value") from None
    except RecursionError:
        raise _too_deep() from None
    _check(raw, value)
    return value


def _too_deep() -> InvalidRequest:
    return _refuse(f"The body is nested more than {DEPTH} levels deep.", code="too_large")


def _check(raw: bytes, value: Any) -> None:
    """What the parser lets pass: depth, doubled keys, escapes that stand for no character."""
    if raw.count(b"[") + raw.count(b"{") > DEPTH:
        _check_depth(value)
    if raw.count(b"{"):
        _check_doubled(value)
    if b"\\u" in raw:
        _check_texts(value, "")


def _children(value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, dict):
        return list(value.items())
    return [(str(index), item) for index, item in enumerate(value)] if isinstance(value, list) else []


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(DEPTH):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, (dict, list))
        ]
        if not level:
            return
    raise _too_deep()


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _check_doubled(value: Any) -> None:
    open_: list[tuple[str, Any]] = [("", value)]
    while open_:
        path, item = open_.pop()
        if isinstance(item, _Doubled):
            raise _refuse("The key stands twice in one object.", _joined(path, item.key), "duplicate")
        if isinstance(item, (dict, list)):
            open_.extend((_joined(path, name), inner) for name, inner in _children(item))


def _storable(text: str) -> bool:
    return "\0" not in text and not any("\ud800" <= char <= "\udfff" for char in text)


def _check_texts(value: Any, path: str) -> None:
    if isinstance(value, str):
        if not _storable(value):
            raise _refuse("The text holds a lone surrogate or a NUL character.", path or "body", "invalid_value")
        return
    for name, inner in _children(value):
        if isinstance(value, dict) and not _storable(name):
            raise _refuse("A key holds a lone surrogate or a NUL character.", path or "body", "invalid_value")
        _check_texts(inner, _joined(path, name))
