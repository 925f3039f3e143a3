"""Reading a query string by an operation's parameters: unknown, repeated and unreadable ones are listed one by one.

Lists may be given with commas, as they are described, or name by name: many generated clients send every list so.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, Final
from urllib.parse import unquote_to_bytes

from adapters.wire.cursors import CURSOR_FORMAT, LONGEST_CURSOR, NO_CURSOR, PAGING
from domain.kernel import schema
from domain.kernel.closeness import Closeness
from domain.kernel.errors import FieldError
from entrypoints.operations.operation import Operation
from entrypoints.operations.validation import MOST_FAULTS, Validator, in_query, unknown

LIMIT = schema.integer(20, least=1, most=100, description="How many items a page has at most. Default 20.")
CURSOR = schema.text("c2F2ZWQ", longest=LONGEST_CURSOR, shortest=0) | {"format": CURSOR_FORMAT}
AFTER = CURSOR | {"description": "A next_cursor: the page after it."}
BEFORE = CURSOR | {"description": "A next_cursor: the page before it."}


_PART = re.compile(r"((?:\\[\\,]|[^,])*)(,|$)")
_ESCAPED = re.compile(r"\\([\\,])")


def parameters_of(operation: Operation) -> dict[str, Mapping[str, Any]]:
    """Every query parameter of the operation, paging included."""
    parameters = dict(operation.query)
    if operation.paging in ("both", "forward"):
        parameters |= {"limit": {**LIMIT, **operation.query.get("limit", {})}, "starting_after": AFTER}
    if operation.paging == "both":
        parameters["ending_before"] = BEFORE
    return parameters


def _whole(text: str) -> Any:
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) <= 18 else text


def _exact(text: str) -> Any:
    try:
        value = Decimal(text)
    except InvalidOperation:
        return text
    return value if value.is_finite() and abs(value.adjusted()) <= 30 else text


def _flag(text: str) -> Any:
    return {"true": True, "false": False}.get(text, text)


_READERS: Final[dict[str, Callable[[str], Any]]] = {"integer": _whole, "number": _exact, "boolean": _flag}


def _reader(schema: Mapping[str, Any]) -> Callable[[str], Any]:
    """What turns a parameter's text into a JSON value; arrays are comma-separated, or repeated. Unreadable text stays text."""
    if schema.get("type") == "array":
        item = _reader(schema.get("items", {}))
        return lambda text: [item(part) for part in _parted(text)] if text else []
    return _READERS.get(str(schema.get("type")), str)


def _parted(text: str) -> list[str]:
    r"""The values between commas. `\,` is a comma inside a value, `\\` a backslash: many clients encode every comma."""
    if "\\" not in text:
        return text.split(",")
    parts = []
    for found in _PART.finditer(text):
        parts.append(_ESCAPED.sub(r"\1", found[1]))
        if not found[2]:
            break
    return parts


class QueryReader:
    """Reads one operation's query strings."""

    def __init__(self, operation: Operation) -> None:
        parameters = parameters_of(operation)
        self._readers = {name: _reader(schema) for name, schema in parameters.items()}
        required = [name for name, schema in operation.query.items() if schema.get("x-required")]
        self._validator = Validator({"type": "object", "properties": parameters, "required": required}, in_query)
        self._empty_is_fine = not required
        self._paging = PAGING if operation.paging in ("both", "forward") else frozenset()
        self._cursors = {name for name, given in parameters.items() if given.get("format") == CURSOR_FORMAT}
        self._lists = {name for name, given in parameters.items() if given.get("type") == "array"}
        self._moments = schema.moments_in(operation.query)

    def read(self, query: str) -> tuple[dict[str, Any], tuple[FieldError, ...]]:
        """The parameters as JSON values, and what is wrong with them."""
        if not query and self._empty_is_fine:
            return {}, ()
        values: dict[str, Any] = {}
        faults: list[FieldError] = []
        strangers: list[str] = []
        for part in query.split("&"):
            if part:
                self._take(part, values, faults, strangers)
        if strangers:
            faults += self._unknown(strangers)
        return values, (*faults, *self._validator.faults(values))

    def _unknown(self, names: Sequence[str]) -> Iterator[FieldError]:
        known, closeness = tuple(self._readers), Closeness()
        for name in names[: MOST_FAULTS + 1]:
            said = unknown(name, known, closeness, "parameter")
            yield FieldError(f"query.{name[:100]}", "unknown_field", said)

    def filters(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """What handlers get of valid parameters: all but those of paging, moments as aware datetimes in UTC."""
        filters = {name: value for name, value in values.items() if name not in self._paging}
        return filters | self._moments(filters)

    def _take(self, part: str, values: dict[str, Any], faults: list[FieldError], strangers: list[str]) -> None:
        name, _, text = part.partition("=")
        decoded_name, decoded = _decoded(name), _decoded(text)
        reader = self._readers.get(decoded_name or "")
        if reader is None:
            shown = decoded_name if decoded_name is not None else name
            strangers.append(shown)
        elif decoded_name in self._cursors and (decoded is None or len(decoded) > LONGEST_CURSOR):
            faults.append(FieldError(f"query.{decoded_name}", "invalid_cursor", NO_CURSOR))
        elif decoded is None:
            detail = "The value is not percent-encoded UTF-8; encode it as URLs want it, for example é as %C3%A9."
            faults.append(FieldError(f"query.{decoded_name}", "invalid_format", detail))
        elif decoded_name in values and decoded_name in self._lists:
            values[decoded_name] += reader(decoded)
        elif decoded_name in values:
            faults.append(FieldError(f"query.{decoded_name}", "duplicate", f"Give {decoded_name} only once."))
        else:
            values[str(decoded_name)] = reader(decoded)


def _decoded(text: str) -> str | None:
    """The text without its percent-encoding, or None when it is not UTF-8 or holds a NUL."""
    if "%" not in text and "+" not in text:
        return text if text.isascii() else None
    try:
        plain = unquote_to_bytes(text.replace("+", " ")).decode("utf-8")
    except UnicodeError:
        return None
    return None if "\0" in plain else plain
