"""Parsing of query strings by an operation's parameters, with an error for each unknown, repeated or invalid one.

Lists may be comma-separated, as documented, or repeat the name, as many generated clients do.
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

LIMIT = schema.integer(20, least=1, most=100, description="Maximum number of items on a page. Default 20.")
CURSOR = schema.text("c2F2ZWQ", longest=LONGEST_CURSOR, shortest=0) | {"format": CURSOR_FORMAT}
AFTER = CURSOR | {"description": "A next_cursor. Returns the page after it."}
BEFORE = CURSOR | {"description": "A next_cursor. Returns the page before it."}


_PART = re.compile(r"((?:\\[\\,]|[^,])*)(,|$)")
_ESCAPED = re.compile(r"\\([\\,])")


def parameters_of(operation: Operation) -> dict[str, Mapping[str, Any]]:
    """Return all query parameters of the operation, including those of paging."""
    parameters = dict(operation.query)
    if operation.paging in ("both", "forward"):
        parameters |= {"limit": {**LIMIT, **operation.query.get("limit", {})}, "starting_after": AFTER}
    if operation.paging == "both":
        parameters["ending_before"] = BEFORE
    return parameters


def _parse_integer(text: str) -> Any:
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) <= 18 else text


def _parse_decimal(text: str) -> Any:
    try:
        value = Decimal(text)
    except InvalidOperation:
        return text
    return value if value.is_finite() and abs(value.adjusted()) <= 30 else text


def _parse_boolean(text: str) -> Any:
    return {"true": True, "false": False}.get(text, text)


_PARSERS: Final[dict[str, Callable[[str], Any]]] = {
    "integer": _parse_integer,
    "number": _parse_decimal,
    "boolean": _parse_boolean,
}


def _parser_of(schema: Mapping[str, Any]) -> Callable[[str], Any]:
    """Return the parser of a parameter's text; it returns invalid text unchanged for the validator to reject."""
    if schema.get("type") == "array":
        item = _parser_of(schema.get("items", {}))
        return lambda text: [item(part) for part in _split_list(text)] if text else []
    return _PARSERS.get(str(schema.get("type")), str)


def _split_list(text: str) -> list[str]:
    r"""Split at commas. `\,` is a literal comma, `\\` a backslash, because many clients encode every comma."""
    if "\\" not in text:
        return text.split(",")
    parts = []
    for found in _PART.finditer(text):
        parts.append(_ESCAPED.sub(r"\1", found[1]))
        if not found[2]:
            break
    return parts


class QueryReader:
    """Parser of one operation's query strings."""

    def __init__(self, operation: Operation) -> None:
        parameters = parameters_of(operation)
        self._parsers = {name: _parser_of(schema) for name, schema in parameters.items()}
        required = [name for name, schema in operation.query.items() if schema.get("x-required")]
        self._validator = Validator({"type": "object", "properties": parameters, "required": required}, in_query)
        self._accepts_empty = not required
        self._paging = PAGING if operation.paging in ("both", "forward") else frozenset()
        self._cursors = {name for name, schema_ in parameters.items() if schema_.get("format") == CURSOR_FORMAT}
        self._lists = {name for name, schema_ in parameters.items() if schema_.get("type") == "array"}
        self._moments = schema.moments_in(operation.query)

    def read(self, query: str) -> tuple[dict[str, Any], tuple[FieldError, ...]]:
        """Return the parameters as JSON values, and the faults."""
        if not query and self._accepts_empty:
            return {}, ()
        values: dict[str, Any] = {}
        faults: list[FieldError] = []
        unknown_names: list[str] = []
        for part in query.split("&"):
            if part:
                self._read_part(part, values, faults, unknown_names)
        if unknown_names:
            faults += self._unknown(unknown_names)
        return values, (*faults, *self._validator.faults(values))

    def _unknown(self, names: Sequence[str]) -> Iterator[FieldError]:
        known, closeness = tuple(self._parsers), Closeness()
        for name in names[: MOST_FAULTS + 1]:
            detail = unknown(name, known, closeness, "parameter")
            yield FieldError(f"query.{name[:100]}", "unknown_field", detail)

    def filters(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the valid parameters for the handler, without those of paging; times become datetimes in UTC."""
        filters = {name: value for name, value in values.items() if name not in self._paging}
        return filters | self._moments(filters)

    def _read_part(self, part: str, values: dict[str, Any], faults: list[FieldError], unknown_names: list[str]) -> None:
        name, _, text = part.partition("=")
        decoded_name, decoded = _percent_decode(name), _percent_decode(text)
        reader = self._parsers.get(decoded_name or "")
        if reader is None:
            shown = decoded_name if decoded_name is not None else name
            unknown_names.append(shown)
        elif decoded_name in self._cursors and (decoded is None or len(decoded) > LONGEST_CURSOR):
            faults.append(FieldError(f"query.{decoded_name}", "invalid_cursor", NO_CURSOR))
        elif decoded is None:
            detail = "The value is not percent-encoded UTF-8. Encode it, for example é as %C3%A9."
            faults.append(FieldError(f"query.{decoded_name}", "invalid_format", detail))
        elif decoded_name in values and decoded_name in self._lists:
            values[decoded_name] += reader(decoded)
        elif decoded_name in values:
            faults.append(FieldError(f"query.{decoded_name}", "duplicate", f"Send {decoded_name} only once."))
        else:
            values[str(decoded_name)] = reader(decoded)


def _percent_decode(text: str) -> str | None:
    """Return the text without percent-encoding; None if it is not UTF-8 or contains NUL."""
    if "%" not in text and "+" not in text:
        return text if text.isascii() else None
    try:
        plain = unquote_to_bytes(text.replace("+", " ")).decode("utf-8")
    except UnicodeError:
        return None
    return None if "\0" in plain else plain
