"""JSON values that a schema allows (in the subset that Joinery's schemas use), and values that it does not."""

import copy
import re
from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

Schema = Mapping[str, Any]
NESTED: Any = None
for _ in range(45):
    NESTED = {"a": [NESTED]}
HOSTILE: tuple[Any, ...] = (
    None, True, False, 0, -1, 1.5, -0.0, 2**31, 2**63, 2**64, -(2**63) - 1, 10**30, 10**63, 10**400, 1e30, 5e-324, "", " ", "\0", "a\0b",
    "\ud800", "\udfff\ud800", "\ufeff", "\u202e", "é" * 300, "x" * 5_000, "x" * 70_000, "😀" * 2_000, "'; DROP TABLE plans; --", "%00", "\\u0000",
    "null", "[]", "NaN", "1e999", "2026-02-30T25:61:61Z", "9999-12-31T23:59:59.999999999Z", "0001-01-01T00:00:00+23:59", "0000-01-01", "-",
    "http://", "http://[", "https://a:b@127.0.0.1/", "file:///etc/passwd", "http://127.0.0.2:1/", "http://\u2024/", "HTTP://X.EXAMPLE:0/",
    [], [[]], [None], {}, {"": None}, {"a": {}}, {"\0": 1}, {"__proto__": {}}, {"$ref": "#"}, [0] * 3_000, ["a"] * 101, ["a", "a"],
    {str(n): n for n in range(150)}, NESTED, "(" * 200, "a" * 64 + "!", "<script>", "{{7*7}}", "%n%s", "../../etc", "٣", "½", "ſ", "İ",
)  # fmt: skip
JSON = st.recursive(
    st.one_of(st.sampled_from(HOSTILE), st.text(max_size=20), st.integers(), st.floats(allow_nan=False)),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=8), inner, max_size=4)),
    max_leaves=8,
)
_PLAIN = st.text(alphabet=st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=30)
_FORMATS: dict[str, st.SearchStrategy[str]] = {
    "date-time": st.datetimes().map(lambda moment: moment.isoformat(timespec="milliseconds") + "Z"),
    "date": st.dates().map(str),
    "uri": st.sampled_from(["https://vendor.example/feed.csv", "http://127.0.0.2:1/feed.csv", "https://shop.example/hooks?a=%20"]),
}  # fmt: skip


def build_values(schema: Schema) -> st.SearchStrategy[Any]:
    """Return values that the schema allows, without regard to dependencies between fields."""
    if "anyOf" in schema:
        rest = {name: kept for name, kept in schema.items() if name != "anyOf"}
        return st.one_of([build_values({**rest, **branch}) for branch in schema["anyOf"]])
    if "const" in schema:
        return st.just(schema["const"])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    kinds = schema.get("type")
    if isinstance(kinds, list):
        return st.one_of([build_values({**schema, "type": kind}) for kind in kinds])
    return _KINDS.get(str(kinds), lambda _: JSON)(schema)


def _build_text(schema: Schema) -> st.SearchStrategy[str]:
    least, most = schema.get("minLength", 0), min(schema.get("maxLength", 60), 3_000)
    if schema.get("format") in _FORMATS:
        return _FORMATS[schema["format"]]
    if "pattern" in schema:
        return st.from_regex(re.compile(schema["pattern"], re.ASCII), fullmatch=True)
    examples = [example for example in schema.get("examples", ()) if isinstance(example, str)]
    free = _PLAIN.map(lambda text: text[:most].ljust(least, "x"))
    longest = st.sampled_from(["x", "é", "a "]).map(lambda text: (text * most)[:most])
    return st.one_of(st.sampled_from(examples) if examples else free, free, longest)


def _build_integer(schema: Schema) -> st.SearchStrategy[int]:
    return st.integers(schema.get("minimum", -(2**31)), schema.get("maximum", 2**31))


def _build_number(schema: Schema) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.decimals(-(10**12), 10**12, places=3).map(float), st.integers(-(10**30), 10**30), st.sampled_from([1e30, 1e-30, 0.1])
    )  # fmt: skip


def _build_array(schema: Schema) -> st.SearchStrategy[list[Any]]:
    least = schema.get("minItems", 0)
    most = min(schema.get("maxItems", 4), max(4, least))
    return st.lists(build_values(schema.get("items", {})), min_size=least, max_size=most)


def _build_object(schema: Schema) -> st.SearchStrategy[dict[str, Any]]:
    known = {name: build_values(part) for name, part in schema.get("properties", {}).items()}
    required = {name: known.pop(name) for name in schema.get("required", ()) if name in known}
    some = st.fixed_dictionaries(required, optional=known)
    others = schema.get("additionalProperties")
    if isinstance(others, Mapping):
        names = build_values({"type": "string", "minLength": 1, **schema.get("propertyNames", {})})
        extra = st.dictionaries(
            names, build_values(others), min_size=schema.get("minProperties", 0), max_size=max(3, schema.get("minProperties", 0))
        )  # fmt: skip
        return st.builds(lambda one, two: {**two, **one}, some, extra)
    return some


_KINDS = {
    "string": _build_text,
    "integer": _build_integer,
    "number": _build_number,
    "boolean": lambda _: st.booleans(),
    "null": lambda _: st.none(),
    "array": _build_array,
    "object": _build_object,
}


def mutate(value: Any) -> st.SearchStrategy[Any]:
    """Return the value with up to three of its parts replaced, removed, wrapped or added."""
    change = st.tuples(st.integers(0, 400), st.sampled_from(["replace", "replace", "drop", "add", "wrap"]), JSON)
    return st.lists(change, min_size=1, max_size=3).map(lambda changes: _apply_changes(value, changes))


def _apply_changes(value: Any, changes: list[tuple[int, str, Any]]) -> Any:
    holder = [copy.deepcopy(value)]
    for number, deed, given in changes:
        hostile = copy.deepcopy(given)  # a shared value must not become part of itself
        places = list(_list_places(holder))
        parent, key = places[number % len(places)]
        match deed:
            case "drop" if parent is not holder:
                del parent[key]
            case "wrap":
                parent[key] = [copy.deepcopy(parent[key]) for _ in range(3)]
            case "add" if isinstance(parent, dict):
                parent[f"x{key}"] = hostile
            case _:
                parent[key] = hostile
    return holder[0]


def _list_places(container: Any, depth: int = 0) -> Any:
    pairs = container.items() if isinstance(container, dict) else enumerate(container)
    for key, value in list(pairs)[:50]:
        yield container, key
        if isinstance(value, (dict, list)) and depth < 12:
            yield from _list_places(value, depth + 1)
