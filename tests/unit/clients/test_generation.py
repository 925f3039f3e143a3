"""Clients generated from the API description: complete, reproducible and syntactically valid."""

import ast
import base64
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from entrypoints.clients.description import (
    build_argument_name,
    build_groups,
    format_type_name,
    split_operation_id,
    to_camel_case,
)
from entrypoints.clients.distribution import COLLECTION, FILE_NAMES, TARBALL, VERSION, WHEEL
from entrypoints.clients.languages import PYTHON, TYPESCRIPT, TypeConverter, format_comment, format_docstring
from entrypoints.clients.python.runtime.calls import FeedPage, ListPage
from entrypoints.clients.python.runtime.tables import PAGE_SIZE
from tests.support.shipped_clients import build_client_files, import_client, load_description

ROOT = Path(__file__).parents[3]


def list_operations() -> list[tuple[str, Any]]:
    return [(path, one) for path, item in load_description()["paths"].items() for one in item.values()]


def read_python(path: str) -> str:
    return zipfile.ZipFile(io.BytesIO(build_client_files()[WHEEL])).read(f"joinery_client/{path}").decode()


def read_typescript(path: str) -> str:
    with tarfile.open(fileobj=io.BytesIO(build_client_files()[TARBALL])) as archive:
        file = archive.extractfile(f"package/{path}")
        assert file is not None
        return file.read().decode()


def test_the_same_description_gives_the_same_bytes(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONHASHSEED": "7", "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-m", "entrypoints.clients.distribution", str(tmp_path)], check=True, env=env)
    assert {name: (tmp_path / name).read_bytes() for name in FILE_NAMES} == build_client_files()


def test_every_operation_has_a_method_in_both_languages() -> None:
    package = import_client()
    groups = {group.name: {method.operation for method in group.methods} for group in build_groups(load_description())}
    methods = set().union(*groups.values())
    left = {one["operationId"] for _, one in list_operations()} - methods
    assert left == {"changes.stream", "assistant.run_turn"}  # replaced by long polling, and by the AI SDK
    with package.Joinery("http://127.0.0.1:1", "k") as client:
        for name in methods:
            group, method = split_operation_id(name)
            assert callable(getattr(getattr(client, group), method)), name
            shown = f"class {format_type_name(group)}Methods"
            [body] = re.findall(rf"{shown} extends \w+ {{\n(.*?)\n}}\n", read_typescript("operations.js"), re.S)
            assert f"  {to_camel_case(method)}(" in body
            [types] = re.findall(rf"declare {shown}[^{{]*{{\n(.*?)\n}}\n", read_typescript("operations.d.ts"), re.S)
            assert f"  {to_camel_case(method)}(" in types


def test_every_component_is_a_type_in_both_languages() -> None:
    package, types = import_client(), read_typescript("types.d.ts")
    for component in load_description()["components"]["schemas"]:
        assert hasattr(package.types, format_type_name(component)), component
        assert re.search(rf"^export (type|interface) {format_type_name(component)}\b", types, re.M), component


def test_optional_keys_are_known_at_runtime() -> None:
    package = import_client()
    for component, schema in load_description()["components"]["schemas"].items():
        if "properties" in schema:
            type_ = getattr(package.types, format_type_name(component))
            assert type_.__required_keys__ == set(schema.get("required", ())), component
            assert type_.__annotations__.keys() == schema["properties"].keys()


def test_all_exported_names_exist() -> None:
    package = import_client()
    assert len(package.__all__) == len(set(package.__all__)) and "Listing" in package.__all__
    assert [name for name in package.__all__ if not hasattr(package, name)] == []


def test_events_are_distinguished_by_type() -> None:
    package = import_client()
    known = load_description()["components"]["schemas"]["typed_event"]["discriminator"]["mapping"]
    assert set(known) == package.KNOWN_TYPES and len(known) >= 20
    for type in known:
        assert f"  type: {json.dumps(type)}\n" in read_typescript("types.d.ts")
        assert f"'{type}'" in read_typescript("index.js")
    assert package.is_typed({"type": "offer.changed"}) and not package.is_typed({"type": "chair.sat_upon"})


def test_a_page_of_any_list_may_have_a_hundred_items() -> None:
    lists = [
        method for group in build_groups(load_description()) for method in group.methods if method.item is not None
    ]
    limits = [one["schema"]["maximum"] for method in lists for one in method.query if one["name"] == "limit"]
    assert len(limits) == len(lists) > 10 and min(limits) >= PAGE_SIZE


def test_pages_have_the_described_fields() -> None:
    """The page classes are written by hand, since their items are of any type."""
    schemas = load_description()["components"]["schemas"]
    for page, name, component in ((FeedPage, "FeedPage", "change_page"), (ListPage, "Page", "source_list")):
        fields = schemas[component]["properties"].keys()
        assert page.__annotations__.keys() == fields
        [body] = re.findall(rf"interface {name}<\w> {{\n(.*?)\n}}\n", read_typescript("runtime/index.d.ts"), re.S)
        assert set(re.findall(r"^  (\w+): ", body, re.M)) == fields


def test_names_follow_from_the_description() -> None:
    assert split_operation_id("catalogue.list_products") == ("products", "list")
    assert split_operation_id("catalogue.list_categories") == ("categories", "list")
    assert split_operation_id("catalogue.read_offer") == ("offers", "get")
    assert split_operation_id("catalogue.read_category") == ("categories", "get")
    assert split_operation_id("webhooks.read_delivery") == ("webhooks", "get_delivery")
    assert split_operation_id("changes.page") == ("changes", "page")
    assert build_argument_name("sources", "/v1/sources/{id}/test", "id") == "id"
    assert build_argument_name("runs", "/v1/sources/{id}/runs", "id") == "source"
    assert build_argument_name("probes", "/v1/source-probes/{id}", "id") == "id"
    assert build_argument_name("webhooks", "/v1/webhook-endpoints/{id}", "id") == "id"
    assert (to_camel_case("request_logs"), format_type_name("change_page")) == ("requestLogs", "ChangePage")


def test_duplicate_operation_names_are_refused() -> None:
    paths = dict(load_description()["paths"])
    with pytest.raises(ValueError, match="products.get is not unique"):
        build_groups(load_description() | {"paths": paths | {"/v1/other/{id}": paths["/v1/products/{id}"]}})


SCHEMAS = {
    "sofa": {"type": ["object", "string", "null"], "properties": {"legs": {"type": "integer"}}},
    "colour": {"enum": ["oak", "b'lack"]},
}


@pytest.mark.parametrize(
    ("schema", "in_python", "in_typescript"),
    [
        ({"$ref": "#/components/schemas/sofa"}, "Sofa | str | None", "Sofa | string | null"),
        ({"$ref": "#/components/schemas/colour"}, "Colour", "Colour"),
        (
            {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
            "list[str | None]",
            "Array<string | null>",
        ),
        ({"type": "object", "additionalProperties": {"type": "number"}}, "dict[str, float]", "Record<string, number>"),
        ({"type": "object"}, "dict[str, Any]", "Record<string, unknown>"),
        ({}, "Any", "unknown"),
        ({"const": "list"}, "Literal['list']", '"list"'),
        ({"enum": ["oak", "b'lack"]}, "Literal['oak', \"b'lack\"]", '"oak" | "b\'lack"'),
        ({"type": ["integer", "number"]}, "int | float", "number"),
    ],
)
def test_schemas_become_types(schema: Any, in_python: str, in_typescript: str) -> None:
    assert TypeConverter(PYTHON, SCHEMAS).type_of(schema) == in_python
    assert TypeConverter(TYPESCRIPT, SCHEMAS).type_of(schema) == in_typescript


def test_texts_are_escaped_in_docstrings_and_comments() -> None:
    for text in ('ends with "quotes"', 'has """three""" of them', "a \\ backslash", "two\n\nparagraphs \\"):
        module = ast.parse("def f():\n" + format_docstring(text, 4))
        assert ast.get_docstring(module.body[0])  # type: ignore[arg-type]
    assert format_comment("*/ alert() /*").count("*/") == 1


def test_the_wheel_records_its_files() -> None:
    archive = zipfile.ZipFile(io.BytesIO(build_client_files()[WHEEL]))
    info = f"joinery_client-{VERSION}.dist-info"
    rows = [line.rsplit(",", 2) for line in archive.read(f"{info}/RECORD").decode().splitlines()]
    assert {row[0] for row in rows} == set(archive.namelist())
    for path, digest, size in rows[:-1]:
        body = archive.read(path)
        found = base64.urlsafe_b64encode(hashlib.sha256(body).digest()).rstrip(b"=").decode()
        assert (digest, size) == (f"sha256={found}", str(len(body)))


def test_the_collection_contains_every_request() -> None:
    collection = json.loads(build_client_files()[COLLECTION])
    requests = [one for folder in collection["item"] for one in folder["item"]]
    assert len(requests) == len(list_operations())
    for one in requests:
        url = one["request"]["url"]
        assert url["raw"].startswith("{{base_url}}/v1/")
        assert {part[1:] for part in url["path"] if part.startswith(":")} == {v["key"] for v in url.get("variable", ())}
        if one["request"].get("body"):
            json.loads(one["request"]["body"]["raw"])
    keyed = [
        one for _, one in list_operations() if {"$ref": "#/components/parameters/IdempotencyKey"} in one["parameters"]
    ]
    sent = [one for one in requests if any(h["key"] == "Idempotency-Key" for h in one["request"]["header"])]
    assert len(keyed) == len(sent) > 10
