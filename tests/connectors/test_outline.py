"""Pages are looked at without being decoded, and an event loop goes on meanwhile."""

import ast
import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import connectors
from connectors.sdk import BadData
from connectors.sdk.readers.json_records import picked, where
from connectors.sdk.readers.json_stream import decoded
from connectors.sdk.readers.outline import outline

PLAIN = st.one_of(st.none(), st.booleans(), st.integers(), st.text(), st.floats(allow_nan=False, allow_infinity=False))
JSON = st.recursive(
    PLAIN,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.one_of(st.text(max_size=5), st.sampled_from(["items", "data", "id", "next", "meta"])), inner, max_size=4),
    ),
    max_leaves=30,
)  # fmt: skip


def expected(value: Any, depth: int = 1) -> Any:
    """What the outline of a decoded document is, for id as the one kept name."""
    if isinstance(value, dict):
        return {key: expected(inner, depth + 1) for key, inner in value.items()} if depth <= 5 else None
    if not isinstance(value, list):
        return value
    return [_element(inner, first=at == 0) for at, inner in enumerate(value)] if depth <= 5 else None


def _element(value: Any, *, first: bool) -> Any:
    if not isinstance(value, dict):
        return None
    plain = {key: inner for key, inner in value.items() if not isinstance(inner, (dict, list))}
    return {key: inner for key, inner in plain.items() if first or key == "id"}


@settings(max_examples=300, deadline=None)
@given(JSON, st.sampled_from([None, 1]), st.booleans())
def test_the_outline_of_any_document(value: Any, indent: int | None, plain: bool) -> None:
    body = json.dumps(value, indent=indent, ensure_ascii=plain).encode("utf-8", errors="replace")
    again = decoded(body.decode())
    found = asyncio.run(outline(body, keep=frozenset({"id"})))
    assert found == expected(again)
    if isinstance(again, dict | list):
        assert where(found) == where(again)
        assert len(picked(found, where(found))) == len(picked(again, where(again)))


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=60), st.integers(0, 200), st.integers(0, 200))
def test_anything_ends_in_an_outline_or_a_sentence(noise: bytes, begin: int, end: int) -> None:
    whole = json.dumps({"items": [{"id": 1, "n": 'a\\"b', "x": [[]]}] * 3, "next": "https://a.example/?p=2"}).encode()
    for body in (noise, whole[:begin], whole[:begin] + noise + whole[end:]):
        try:
            asyncio.run(outline(body))
        except BadData as error:
            assert str(error)


@pytest.mark.parametrize(
    "body",
    [
        json.dumps({"products": [{"id": n, "body_html": 'a "b" c' * 300, "tags": ["x"] * 40} for n in range(2_500)]}).encode(),
        b'{"a": "' + b"\\n" * 2_000_000 + b'"}',
        b'{"a": {"a": {"a": {"a": {"a": {"a": [' + b"1," * 2_000_000 + b"1]}}}}}}",
        b"[" + b"1," * 900_000 + b"1]",
        b'{"a": [' + b"[],{}," * 400_000 + b"{}]}",
        b"[" + b" " * 4_000_000 + b"]",
    ],
    ids=["products", "escapes", "deep numbers", "numbers", "empties", "blanks"],
)  # fmt: skip
def test_others_go_first_many_times(body: bytes) -> None:
    """Not a matter of speed: between two pauses so many steps are taken, each of so many bytes."""
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def both() -> None:
        counter = asyncio.create_task(count())
        await outline(body)
        counter.cancel()

    asyncio.run(both())
    assert turns >= len(body) // (512 * 16_384), turns
    assert turns > 5 or len(body) < 5_000_000


def test_nothing_that_fetches_decodes() -> None:
    """Modules of connectors that wait for a network import no decoder of whole documents."""
    for path in Path(connectors.__file__).parent.rglob("*.py"):
        tree = ast.parse(path.read_text("utf-8"))
        waits = any(isinstance(node, ast.AsyncFunctionDef) for node in ast.walk(tree))
        names = {
            alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node.module == "connectors.sdk.readers.json_stream"
            for alias in node.names
        }
        assert not (waits and "decoded" in names) or path.name == "outline.py", path
