"""Reading a query string by an operation's parameters: unknown, repeated and unreadable ones are listed one by one."""

from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, Final
from urllib.parse import unquote_to_bytes

from adapters.wire import schema
from adapters.wire.cursors import CURSOR_FORMAT, LONGEST_CURSOR, PAGING
from domain.kernel.errors import FieldError
from entrypoints.http.operation import Operation
from entrypoints.http.validation import Validator, in_query

LIMIT: Final = schema.integer(20, least=1, most=100, description="How many items a page has at most. Default 20.")
CURSOR: Final = schema.text("c2F2ZWQ", longest=LONGEST_CURSOR, shortest=0) | {"format": CURSOR_FORMAT}
AFTER: Final = CURSOR | {"description": "A next_cursor: the page after it."}
BEFORE: Final = CURSOR | {"description": "A next_cursor: the page before it."}


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
    """What turns a parameter's text into a JSON value; arrays are comma-separated. Unreadable text stays text."""
    if schema.get("type") == "array":
        item = _reader(schema.get("items", {}))
        return lambda text: [item(part) for part in text.split(",")] if text else []
    return _READERS.get(str(schema.get("type")), str)


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
        self._moments = schema.moments_in(operation.query)

    def read(self, query: str) -> tuple[dict[str, Any], tuple[FieldError, ...]]:
        """The parameters as JSON values, and what is wrong with them."""
        if not query and self._empty_is_fine:
            return {}, ()
        values: dict[str, Any] = {}
        faults: list[FieldError] = []
        for part in query.split("&"):
            if part:
                self._take(part, values, faults)
        return values, (*faults, *self._validator.faults(values))

    def filters(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """What handlers get of valid parameters: all but those of paging, moments as aware datetimes in UTC."""
        filters = {name: value for name, value in values.items() if name not in self._paging}
        return filters | self._moments(filters)

    def _take(self, part: str, values: dict[str, Any], faults: list[FieldError]) -> None:
        name, _, text = part.partition("=")
        decoded_name, decoded = _decoded(name), _decoded(text)
        reader = self._readers.get(decoded_name or "")
        if reader is None:
            shown = decoded_name if decoded_name is not None else name
            faults.append(FieldError(f"query.{shown[:100]}", "unknown_field", "There is no such parameter."))
        elif decoded_name in self._cursors and (decoded is None or len(decoded) > LONGEST_CURSOR):
            faults.append(FieldError(f"query.{decoded_name}", "invalid_cursor", "This list issued no such cursor."))
        elif decoded is None:
            detail = "The value is not percent-encoded UTF-8 text."
            faults.append(FieldError(f"query.{decoded_name}", "invalid_format", detail))
        elif decoded_name in values:
            faults.append(FieldError(f"query.{decoded_name}", "duplicate", "The parameter is given more than once."))
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
