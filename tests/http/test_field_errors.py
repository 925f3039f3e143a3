"""Every field error has a message with a remedy (docs/conventions.md#error-fields)."""

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Final

import pytest

from connectors import api, bigcommerce, csv, json_ld, shopify, woocommerce
from domain.kernel import schema
from entrypoints.operations.query_string import list_query_parameters
from entrypoints.operations.validation import Validator, describe_format
from tests.support.operation_table import load_operation_table

PLUGINS = (api, bigcommerce, csv, json_ld, shopify, woocommerce)
WRONG: Final[tuple[Any, ...]] = (
    None, True, -(10**9), 10**12, Decimal("0.5"), "", "EUR", "no such value", "é\n" * 3000, [], [{}] * 300, ["a", "a"], {},
    {"no_such_field": 1}, {f"f{number}": [] for number in range(101)},
)  # fmt: skip
FOREIGN = re.compile(
    r"Decimal\(|\['|\{'|'\}|'\]|\bNone\b|\bTrue\b|\bFalse\b|\^|\[0-9|\[a-z|is not of type|does not match|is not one of|is not a \"|"
    r"less than the minimum|greater than the maximum|was unexpected|is a required property|non-unique|under any of|Expected `"
)


def _walk_schemas(given: Any) -> Iterator[dict[str, Any]]:
    if isinstance(given, list):
        for inner in given:
            yield from _walk_schemas(inner)
    if isinstance(given, dict):
        if isinstance(given.get("type", ""), (str, list)) and given.keys() & {
            "type",
            "enum",
            "anyOf",
            "oneOf",
            "pattern",
        }:
            yield given
        for name, inner in given.items():
            if name not in ("examples", "enum", "required"):
                yield from _walk_schemas(inner)


def _list_schemas() -> Iterator[tuple[str, dict[str, Any]]]:
    for operation in load_operation_table():
        if operation.body is not None:
            yield operation.id, operation.body.schema
        yield f"{operation.id}?", {"type": "object", "properties": list_query_parameters(operation)}
    for spec in [one for plugin in PLUGINS for one in plugin.joinery_connectors()]:
        yield f"{spec.name} settings", dict(spec.config_schema)
        yield f"{spec.name} credentials", dict(spec.credentials_schema or {})


SCHEMAS = dict(_list_schemas())


@pytest.mark.parametrize("name", SCHEMAS)
def test_no_message_repeats_the_validators_message(name: str) -> None:
    for part in _walk_schemas(SCHEMAS[name]):
        validator = Validator(part)
        for value in WRONG:
            for fault in validator.find_field_errors(value):
                message = fault.detail
                assert (
                    FOREIGN.search(message.replace("the characters _ . $ [ ] -", "").replace("* + . ^ _", "")) is None
                ), message
                assert message[0].isupper() and message[-1] in ".?…" and len(message) <= 500, message


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_pattern_has_a_description(name: str) -> None:
    unworded = [
        part
        for part in _walk_schemas(SCHEMAS[name])
        if isinstance(part.get("pattern"), str) and not describe_format(part)
    ]
    assert [part for part in unworded if "[Aa][Uu][Tt][Hh]" not in part["pattern"]] == []


def _read_message(part: dict[str, Any], value: Any) -> str:
    (fault,) = Validator({"properties": {"x": part}}).find_field_errors({"x": value})
    return fault.detail


@pytest.mark.parametrize(
    ("part", "value", "message"),
    [
        (schema.currency(), "EUR", "Use lower case: eur."),
        (schema.enum("active", "paused"), "actve", "Did you mean active? Must be one of active, paused."),
        (schema.enum("active", "paused"), "x", "Must be one of active, paused."),
        (schema.enum("A1", "B2"), "a1", "Use upper case: A1."),
        (schema.integer(20, minimum=1, maximum=100), 101, "Must be between 1 and 100."),
        (schema.integer(20, minimum=1), 0, "Must be at least 1."),
        (schema.integer(20), "20", "Must be a whole number, such as 20; this is text. Remove the quotation marks."),
        (schema.integer(20), Decimal("1.5"), "Must be a whole number, such as 20; this is a decimal number."),
        (schema.text("oak", max_length=3), "mahogany", "Must have at most 3 characters; this one has 8."),
        (schema.text("oak"), "", "Must not be empty."),
        (schema.timestamp(), "yesterday", "Must be a date and time with a UTC offset (RFC 3339), such as 2026-11-20T13:08:00.123Z."),
        (schema.url(), "ftp://a", "Must be an address that starts with http:// or https://, such as https://vendor.example/feed.csv."),
        (schema.array(schema.integer(1), max_items=1), [1, 2], "Must have at most 1 entry; this one has 2."),
        (
            schema.id_schema("src"),
            "prod_x",
            "Must be the ID of a source (src_ and 22 letters and digits), such as src_01J8ZQ5T3V7XK2M9RB4CDW.",
        ),
        (schema.nullable(schema.integer(1)), "x", "Must be null or a whole number, such as 1."),
    ],
)  # fmt: skip
def test_messages_describe_the_error(part: dict[str, Any], value: Any, message: str) -> None:
    assert _read_message(part, value) == message


def test_many_values_are_listed_closest_first() -> None:
    message = _read_message(
        schema.enum(*"oak beech walnut maple cherry mahogany pine ash elm teak birch".split()), "mahagony"
    )
    assert (
        message
        == "Did you mean mahogany? Must be one of mahogany, oak, beech, walnut, maple, cherry, pine, ash and 3 more."
    )


@pytest.mark.parametrize(("count", "ends"), [(25, "f24."), (26, "and 18 more.")])
def test_all_names_are_listed_up_to_a_readable_length(count: int, ends: str) -> None:
    """A list that readers search must not be truncated."""
    closed = schema.strict_object({f"f{number:02}": schema.integer(0) for number in range(count)})
    [fault] = Validator(closed).find_field_errors({"something": 1})
    assert fault.detail.endswith(ends)


def test_unknown_fields_name_the_closest() -> None:
    closed = schema.strict_object({"name": schema.text("a"), "currency": schema.currency()})
    faults = {fault.field: fault.detail for fault in Validator(closed).find_field_errors({"nmae": 1, "zzz": 2})}
    assert faults == {
        "nmae": "This field does not exist. Did you mean name?",
        "zzz": "This field does not exist. Available: currency, name.",
    }


def test_missing_fields_describe_the_expected_value() -> None:
    closed = schema.strict_object({"name": schema.text("oak")}, ("name",))
    assert [fault.detail for fault in Validator(closed).find_field_errors({})] == [
        "This field is required: text, such as oak."
    ]


def test_no_value_is_repeated() -> None:
    """Credential errors use the same messages."""
    for part in (
        schema.currency(),
        schema.timestamp(),
        schema.integer(1),
        schema.text("a", max_length=3),
        schema.id_schema("src"),
    ):
        assert "hunter2" not in _read_message(part, "hunter2 secret")


def test_many_unknown_names_are_checked_quickly() -> None:
    closed = schema.strict_object({f"field_number_{number}": schema.text("a") for number in range(200)})
    wrong = {f"fiald_nomber_{number}x": 1 for number in range(5000)}
    faults = Validator(closed).find_field_errors(wrong)
    assert len(faults) == 101
    assert sum("Did you mean" in fault.detail for fault in faults) <= 12
