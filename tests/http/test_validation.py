"""The validator and the reference validator report the same errors at the same paths."""

import resource
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator, FormatChecker, ValidationError

from domain.kernel import schema
from entrypoints.http.body import MAX_KEYS
from entrypoints.operations import validation
from entrypoints.operations.validation import CODES, FORMATS, MAX_FIELD_ERRORS, Validator, is_date, is_date_time
from tests.http.example_area import CREATE
from tests.support.operation_table import load_operation_table

SCHEMA = schema.strict_object(
    {
        "name": schema.text("oak", max_length=5),
        "kind": schema.enum("url", "file"),
        "id": schema.id_schema("src"),
        "count": schema.integer(1, minimum=1, maximum=9),
        "size": schema.number(1.5),
        "on": schema.boolean(),
        "at": schema.timestamp(),
        "day": schema.date(),
        "list": schema.array(schema.integer(1), min_items=1, max_items=2),
        "map": schema.map_schema(schema.integer(1), {"a": 1}),
        "inner": schema.strict_object({"a": schema.text("a")}, ("a",)),
        "maybe": schema.nullable(schema.strict_object({"a": schema.text("a"), "b": schema.boolean()}, ("a",))),
        "either": {"oneOf": [schema.text("a"), schema.integer(1, minimum=3)]},
    },
    ("name", "kind"),
)
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 20),
    st.decimals(-5, 5, places=2).map(lambda number: int(number) if number == int(number) else number),
    st.sampled_from(
        ["", "oak", "url", "too long", "src_" + "a" * 22, "2026-11-20T13:08:00Z", "2026-11-20", "2026-13-01"]
    ),
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["a", "b", "c"]), inner, max_size=3),
    ),
    max_leaves=6,
)
BODIES = st.dictionaries(st.sampled_from([*SCHEMA["properties"], "unknown", "other"]), VALUES, max_size=8)

_checker = FormatChecker(formats=())
for _name, _check in FORMATS.items():
    _checker.checks(_name)(lambda value, check=_check: not isinstance(value, str) or check(value))


def _list_faults(error: ValidationError) -> Iterator[tuple[str, str]]:
    path = [str(part) for part in error.absolute_path]
    if error.validator == "required":
        missing = [name for name in error.validator_value if name not in error.instance]
        yield from ((".".join([*path, name]), "required") for name in missing)
    elif error.validator == "additionalProperties":
        known = error.schema.get("properties", {})
        yield from ((".".join([*path, name]), "unknown_field") for name in error.instance if name not in known)
    elif error.validator in ("anyOf", "oneOf"):
        yield from _select_branch(error)
    else:
        yield ".".join(path) or "body", CODES.get(str(error.validator), "invalid_value")


def _select_branch(error: ValidationError) -> Iterator[tuple[str, str]]:
    branches: dict[Any, list[ValidationError]] = {}
    for inner in error.context or []:
        branches.setdefault(inner.schema_path[0], []).append(inner)

    def misses(branch: list[ValidationError]) -> bool:
        return any(inner.validator == "type" and not inner.path for inner in branch)

    fitting = [branch for branch in branches.values() if not misses(branch)]
    if len(fitting) == 1:
        for inner in fitting[0]:
            yield from _list_faults(inner)
    else:
        every = all(any(inner.validator == "type" for inner in branch) for branch in branches.values())
        yield (
            ".".join(map(str, error.absolute_path)) or "body",
            "invalid_type" if every and branches else "invalid_value",
        )


def _validate_by_reference(schema: Any, value: Any) -> set[tuple[str, str]]:
    validator = Draft202012Validator(schema, format_checker=_checker)
    return {fault for error in validator.iter_errors(value) for fault in _list_faults(error)}


@settings(max_examples=400, deadline=None)
@given(BODIES)
def test_both_validators_agree_on_bodies(body: dict[str, Any]) -> None:
    assert {(fault.field, fault.code) for fault in Validator(SCHEMA).find_field_errors(body)} == _validate_by_reference(
        SCHEMA, body
    )


@settings(max_examples=200, deadline=None)
@given(VALUES)
def test_both_validators_agree_on_any_value(value: Any) -> None:
    assert {
        (fault.field, fault.code) for fault in Validator(CREATE).find_field_errors(value)
    } == _validate_by_reference(CREATE, value)


@settings(max_examples=400, deadline=None)
@given(BODIES)
def test_both_validators_agree_on_large_bodies(body: dict[str, Any]) -> None:
    with patch.object(validation, "is_small_value", lambda _: False):
        assert {
            (fault.field, fault.code) for fault in Validator(SCHEMA).find_field_errors(body)
        } == _validate_by_reference(SCHEMA, body)


@settings(max_examples=200, deadline=None)
@given(VALUES)
def test_both_validators_agree_on_large_values(value: Any) -> None:
    with patch.object(validation, "is_small_value", lambda _: False):
        assert {
            (fault.field, fault.code) for fault in Validator(CREATE).find_field_errors(value)
        } == _validate_by_reference(CREATE, value)


def _build_invalid_values(count: int) -> list[tuple[Any, Any]]:
    """Build schemas with values that have that many errors each."""
    thing = schema.strict_object({"a": schema.text("a"), "b": schema.integer(1)}, ("a",))
    return [
        (schema.array(schema.text("a")), [1] * count),
        (schema.array(thing), [{}] * count),
        (schema.array(thing), [{"a": "x"}] * 2000 + [{"a": 1}] * count),
        (thing, {f"k{number}": 0 for number in range(MAX_KEYS)}),
        (schema.map_schema(schema.integer(1), {"a": 1}), {f"k{number}": "x" for number in range(MAX_KEYS)}),
        (schema.nullable(schema.array(thing)), [{"a": 1}] * count),
        (schema.array(schema.nullable(schema.array(thing))), [[{"a": 1}] * 10] * (count // 10)),
        ({"oneOf": [schema.array(thing), {"type": "string"}]}, [{"b": "x"}] * count),
        ({"allOf": [schema.array(thing)]}, [{"b": "x"}] * count),
        ({"$ref": "#/$defs/x", "$defs": {"x": schema.array(thing)}}, [{"b": "x"}] * count),
        (
            {"type": "object", "patternProperties": {"^k": {"type": "integer"}}},
            {f"k{n}": "x" for n in range(MAX_KEYS)},
        ),
    ]


@pytest.mark.parametrize("number", range(len(_build_invalid_values(10))))
def test_errors_are_counted_up_to_the_reported_number(number: int) -> None:
    """A hundred thousand errors use the memory of a hundred."""
    given, value = _build_invalid_values(100_000)[number]
    validator = Validator(given)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    faults = validator.find_field_errors(value)
    assert 1 <= len(faults) <= MAX_FIELD_ERRORS + 1
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 32 * 1024


def test_both_validators_agree_on_every_example() -> None:
    for row in load_operation_table():
        if row.body is not None:
            given = row.body.schema
            example = schema.build_example(given)
            assert Validator(given).find_field_errors(example) == ()
            assert _validate_by_reference(given, example) == set()
            row.body.decode(example)
            broken = example | {"no_such_field": 1}
            assert {(f.field, f.code) for f in Validator(given).find_field_errors(broken)} == _validate_by_reference(
                given, broken
            )


def test_timestamps_are_validated() -> None:
    for good in ("2026-11-20T13:08:00Z", "2026-11-20T13:08:00.123Z", "2026-11-20T13:08:00.123456789+02:00"):
        assert is_date_time(good)
    for bad in (
        "2026-11-20", "2026-11-20T13:08:00", "2026-11-20 13:08:00Z", "2026-13-20T13:08:00Z", "2026-11-20T25:08:00Z", "",
        "0001-01-01T00:00:00+14:00", "2026-11-20T13:08:60Z", "2026-W01-1T00:00:00Z", "٢٠٢٦-11-20T13:08:00Z",
    ):  # fmt: skip
        assert not is_date_time(bad)
    assert is_date("2026-02-28")
    assert not is_date("2026-02-30")
    assert not is_date("20260228")
