"""Reading a JSON body strictly: what two parsers could understand differently is refused, numbers stay exact.

Every pass is linear, and what a body may become in memory is bounded before it is decoded: by its bytes and its values.
"""

import json
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any, Final

from domain.kernel.errors import FieldError, InvalidRequest

DEPTH: Final = 32
_LONGEST_NUMBER: Final = 64
_LARGEST_EXPONENT: Final = 30
SMALL: Final = 64 * 1024
"""Bytes of a body that is decoded in a few milliseconds, whatever is in it: its values need not be counted."""
MOST_KEYS: Final = 10_000
"""Keys of one object: far more than anything here has, and few enough to be looked through at once."""
_LONGEST_PATH: Final = 300
_SUSPECT: Final = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])")
_DEEP: Final = re.compile(rb'(?:\s*(?:\[|\{\s*"[^"\\]*"\s*:)){%d}' % (DEPTH + 1))
"""The beginning of a body that is nested too deeply from there on."""
_UNSTORABLE: Final = re.compile("[\0\ud800-\udfff]")


class _Doubled(dict[str, Any]):
    """An object in which a key stood twice; `key` is the first such."""

    key = ""


class _DoubledKey(Exception):
    """An object has a key twice."""


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
    raise _BadNumber(f"{text} is no number in JSON; leave the field out, or give a number.")


def _refuse(detail: str, field: str = "body", code: str = "invalid_format") -> InvalidRequest:
    return InvalidRequest(detail, fields=(FieldError(field, code, detail),))


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(pairs) > MOST_KEYS:
        raise _refuse(f"An object has more than {MOST_KEYS} fields; send less at once.", code="too_many")
    made = dict(pairs)
    if len(made) == len(pairs):
        return made
    raise _DoubledKey


def _marked(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """As `_object`, with the first key that stands twice, so that it can be named by its path."""
    made = dict(pairs)
    if len(made) == len(pairs):
        return made
    doubled, seen = _Doubled(made), set[str]()
    for key, _ in pairs:
        if key in seen:
            doubled.key = key
            break
        seen.add(key)
    return doubled


def _decoder(hook: Callable[[list[tuple[str, Any]]], dict[str, Any]]) -> json.JSONDecoder:
    return json.JSONDecoder(object_pairs_hook=hook, parse_float=_number, parse_int=_integer, parse_constant=_constant)


_strict: Final = _decoder(_object)
_marking: Final = _decoder(_marked)


def decode(raw: bytes, most: int) -> Any:
    """The JSON value of a body: RFC 8259 in UTF-8, no doubled keys, at most 32 levels deep, texts storable.

    Of a body over SMALL bytes there are at most `most` values. Whole numbers come as int, others as Decimal.
    Raises InvalidRequest.
    """
    if len(raw) > SMALL:
        if _DEEP.match(raw):
            raise _too_deep()
        if has_more_values(raw, most):
            raise _refuse(f"The body holds more than {most} values; send them in parts.", code="too_many")
    value = _parsed(raw)
    if value is _DoubledKey:
        raise _doubled(raw)  # what was decoded before is let go by now
    if raw.count(b"[") + raw.count(b"{") > DEPTH:
        _check_depth(value)
    if _SUSPECT.search(raw):
        _check_texts(value)
    return value


def _parsed(raw: bytes) -> Any:
    """The value, or _DoubledKey itself. Raises InvalidRequest."""
    try:
        return _strict.decode(raw.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise _refuse(
            f"The body is not UTF-8: byte {error.start} (counted from 0) is wrong. Encode it as UTF-8."
        ) from None
    except json.JSONDecodeError as error:
        raise _refuse(_not_json(error)) from None
    except _BadNumber as error:
        raise _refuse(str(error), code="invalid_value") from None
    except RecursionError:
        raise _too_deep() from None
    except _DoubledKey:
        return _DoubledKey


def _not_json(error: json.JSONDecodeError) -> str:
    if error.pos >= len(error.doc.rstrip()):
        return (
            "The body is not JSON: it ends too early; a bracket or quotation mark is left open, or a value is missing."
        )
    return (
        f"The body is not JSON from line {error.lineno}, column {error.colno} on. Look for a comma too many or too few, "
        "single quotation marks, or text without quotation marks."
    )


def has_more_values(raw: bytes, most: int) -> bool:
    """Whether more values are announced by the commas and brackets outside of texts."""
    if raw.count(b",") + raw.count(b"[") + raw.count(b"{") <= most:
        return False
    bare = raw.replace(b"\\\\", b"").replace(b'\\"', b"")
    values, inside = 0, False
    for start in range(0, len(bare), SMALL):
        parts = bare[start : start + SMALL].split(b'"')
        for part in parts[1 if inside else 0 :: 2]:
            values += part.count(b",") + part.count(b"[") + part.count(b"{")
        inside ^= len(parts) % 2 == 0
        if values > most:
            return True
    return False


def _too_deep() -> InvalidRequest:
    return _refuse(f"The body is nested more than {DEPTH} levels deep.", code="too_large")


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


def _children(value: Any) -> Iterator[tuple[str | int, Any]]:
    return iter(value.items()) if isinstance(value, dict) else enumerate(value)


def _walk(value: Any) -> Iterator[tuple[list[str | int], Any]]:
    """Every value with the path to it, which is only good until the next one."""
    yield [], value
    if not isinstance(value, (dict, list)):
        return
    path: list[str | int] = [""]
    open_ = [_children(value)]
    while open_:
        for name, inner in open_[-1]:
            path[-1] = name
            yield path, inner
            if isinstance(inner, (dict, list)) and inner:
                open_.append(_children(inner))
                path.append("")
                break
        else:
            open_.pop()
            path.pop()


def _named(path: list[str | int]) -> str:
    return ".".join(map(str, path))[:_LONGEST_PATH] or "body"


def _doubled(raw: bytes) -> InvalidRequest:
    """The refusal of a body with a doubled key, which it names by its path."""
    try:
        for path, value in _walk(_marking.decode(raw.decode("utf-8"))):
            if isinstance(value, _Doubled):
                return _refuse(
                    "This field stands twice in one object; keep one of them.", _named([*path, value.key]), "duplicate"
                )
    except (ValueError, RecursionError):
        pass  # it is wrong further on as well: the key is refused all the same
    return _refuse("A field stands twice in one object; keep one of them.", code="duplicate")


def _check_texts(value: Any) -> None:
    """Refuse escapes that stand for no character, or for NUL."""
    for path, inner in _walk(value):
        if isinstance(inner, str) and _UNSTORABLE.search(inner):
            raise _refuse(
                "The text holds half a character (a lone surrogate) or a NUL character; take it out.",
                _named(path),
                "invalid_value",
            )
        if isinstance(inner, dict) and any(map(_UNSTORABLE.search, inner)):
            raise _refuse(
                "A field's name holds half a character (a lone surrogate) or a NUL character; take it out.",
                _named(path),
                "invalid_value",
            )
