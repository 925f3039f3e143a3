"""Parsing and validation of query strings.

Each unknown, repeated or invalid parameter is reported as a field error. Lists may be comma-separated, as documented, or sent as
several parameters of the same name, as many generated clients do.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, Final
from urllib.parse import unquote_to_bytes

from adapters.api_json.cursors import CURSOR_FORMAT, INVALID_CURSOR_DETAIL, MAX_CURSOR_LENGTH, PAGING_PARAMETERS
from domain.kernel import schema
from domain.kernel.errors import FieldError
from domain.kernel.suggestions import WordSuggester
from entrypoints.operations.operation import Operation
from entrypoints.operations.validation import MAX_FIELD_ERRORS, Validator, describe_unknown_name, format_query_path

LIMIT_SCHEMA = schema.integer(20, minimum=1, maximum=100, description="Maximum number of items on a page. Default 20.")
CURSOR_SCHEMA = schema.text("c2F2ZWQ", max_length=MAX_CURSOR_LENGTH, min_length=0) | {"format": CURSOR_FORMAT}
STARTING_AFTER_SCHEMA = CURSOR_SCHEMA | {"description": "The `next_cursor` of a page. Returns the following page."}
ENDING_BEFORE_SCHEMA = CURSOR_SCHEMA | {
    "description": "The `next_cursor` of a page. Returns the items directly before the position of this cursor."
}


_LIST_ITEM = re.compile(r"((?:\\[\\,]|[^,])*)(,|$)")
_ESCAPE = re.compile(r"\\([\\,])")


def list_query_parameters(operation: Operation) -> dict[str, Mapping[str, Any]]:
    """Return the schemas of the operation's query parameters by name, including the parameters of paging."""
    parameters = dict(operation.query)
    if operation.paging in ("both", "forward"):
        parameters |= {
            "limit": {**LIMIT_SCHEMA, **operation.query.get("limit", {})},
            "starting_after": STARTING_AFTER_SCHEMA,
        }
    if operation.paging == "both":
        parameters["ending_before"] = ENDING_BEFORE_SCHEMA
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


def _choose_parser(schema: Mapping[str, Any]) -> Callable[[str], Any]:
    """Return the function that converts the text of a query parameter to the type in its schema.

    The function returns invalid text unchanged, so that the validator rejects it.
    """
    if schema.get("type") == "array":
        parse_item = _choose_parser(schema.get("items", {}))
        return lambda text: [parse_item(part) for part in _split_list(text)] if text else []
    return _PARSERS.get(str(schema.get("type")), str)


def _split_list(text: str) -> list[str]:
    r"""Split a text into items at its commas. Within an item, `\,` stands for a comma and `\\` for a backslash."""
    if "\\" not in text:
        return text.split(",")
    parts = []
    for match in _LIST_ITEM.finditer(text):
        parts.append(_ESCAPE.sub(r"\1", match[1]))
        if not match[2]:
            break
    return parts


class QueryParser:
    """Parser and validator of query strings for one operation."""

    def __init__(self, operation: Operation) -> None:
        parameters = list_query_parameters(operation)
        self._parsers = {name: _choose_parser(schema) for name, schema in parameters.items()}
        required = [name for name, schema in operation.query.items() if schema.get("x-required")]
        self._validator = Validator(
            {"type": "object", "properties": parameters, "required": required}, format_query_path
        )
        self._accepts_empty = not required
        self._paging_names = PAGING_PARAMETERS if operation.paging in ("both", "forward") else frozenset()
        self._cursor_names = {name for name, schema_ in parameters.items() if schema_.get("format") == CURSOR_FORMAT}
        self._list_names = {name for name, schema_ in parameters.items() if schema_.get("type") == "array"}
        self._cursor_kinds = {name: kind for name, schema_ in parameters.items() if (kind := schema_.get("x-cursor"))}
        self._parse_times = schema.create_time_parser(operation.query)

    def parse(self, query: str) -> tuple[dict[str, Any], tuple[FieldError, ...]]:
        """Return the parameters of a query string as JSON values by name, and the field errors."""
        if not query and self._accepts_empty:
            return {}, ()
        values: dict[str, Any] = {}
        field_errors: list[FieldError] = []
        unknown_names: list[str] = []
        for pair in query.split("&"):
            if pair:
                self._parse_pair(pair, values, field_errors, unknown_names)
        if unknown_names:
            field_errors += self._describe_unknown_names(unknown_names)
        return values, (*field_errors, *self._validator.find_field_errors(values))

    def _describe_unknown_names(self, names: Sequence[str]) -> Iterator[FieldError]:
        existing_names, suggester = tuple(self._parsers), WordSuggester()
        for name in names[: MAX_FIELD_ERRORS + 1]:
            detail = describe_unknown_name(name, existing_names, suggester, "parameter")
            yield FieldError(f"query.{name[:100]}", "unknown_field", detail)

    def exclude_paging(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters without those of paging, and with times converted to datetimes in UTC."""
        filters = {name: value for name, value in values.items() if name not in self._paging_names}
        return filters | self._parse_times(filters)

    def select_bound(self, filters: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters to which a cursor is bound, as they were encoded when they had a single value.

        The keyword `x-cursor` in the schema of a parameter is `none` for a parameter that does not change the order or
        the items of the list, and `single` for a list that was a single value in earlier releases.
        """
        if self._cursor_kinds.keys().isdisjoint(filters):
            return dict(filters)
        kinds = self._cursor_kinds
        return {
            name: value[0] if kinds.get(name) == "single" and len(value) == 1 else value
            for name, value in filters.items()
            if kinds.get(name) != "none"
        }

    def _parse_pair(
        self, pair: str, values: dict[str, Any], field_errors: list[FieldError], unknown_names: list[str]
    ) -> None:
        """Parse one pair `name=value`, and add the result to `values`, `field_errors` or `unknown_names`."""
        name, _, text = pair.partition("=")
        decoded_name, decoded = _percent_decode(name), _percent_decode(text)
        parse = self._parsers.get(decoded_name or "")
        if parse is None:
            shown_name = decoded_name if decoded_name is not None else name
            unknown_names.append(shown_name)
        elif decoded_name in self._cursor_names and (decoded is None or len(decoded) > MAX_CURSOR_LENGTH):
            field_errors.append(FieldError(f"query.{decoded_name}", "invalid_cursor", INVALID_CURSOR_DETAIL))
        elif decoded is None:
            detail = "The value is not percent-encoded UTF-8. Encode it, for example é as %C3%A9."
            field_errors.append(FieldError(f"query.{decoded_name}", "invalid_format", detail))
        elif decoded_name in values and decoded_name in self._list_names:
            values[decoded_name] += parse(decoded)
        elif decoded_name in values:
            field_errors.append(FieldError(f"query.{decoded_name}", "duplicate", f"Send {decoded_name} only once."))
        else:
            values[str(decoded_name)] = parse(decoded)


def _percent_decode(text: str) -> str | None:
    """Decode a percent-encoded text; return None if the result is not UTF-8 or contains NUL."""
    if "%" not in text and "+" not in text:
        return text if text.isascii() else None
    try:
        decoded = unquote_to_bytes(text.replace("+", " ")).decode("utf-8")
    except UnicodeError:
        return None
    return None if "\0" in decoded else decoded
