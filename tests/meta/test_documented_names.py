"""The guides for contributors and the ADRs name only classes, members, parameters and files of the code."""

import ast
import builtins
import dataclasses
import importlib
import inspect
import re
import sys
from collections.abc import Iterator
from functools import cache
from types import ModuleType
from typing import Any

import pytest

from connectors.sdk.context import Context, Limits
from connectors.sdk.spec import StockCheckItem
from domain.events.model import TYPES
from domain.kernel import schema
from entrypoints.console.context import ConsoleApi, ConsolePage, PageContext, Pages
from entrypoints.operations.collection import Collection
from entrypoints.operations.operation import Operation, WriteContext
from ports.unit_of_work import Tx, UnitOfWork
from tests.meta.test_names import LAYERS, ROOT, defined, trees

DOCS = ROOT / "docs"
GUIDES = ("adding-an-operation.md", "architecture.md", "writing-a-connector.md")
ADDED = ("domain/notes/__init__.py", "entrypoints/areas/notes.py", "domain.notes")
"""Files and modules that a reader of docs/adding-an-operation.md creates."""
TYPE_OF_VARIABLE = {
    "NOTES": Collection,
    "context": WriteContext,
    "ctx": Context,
    "ctx.limits": Limits,
    "item": StockCheckItem,
    "page": PageContext,
    "page.api": ConsoleApi,
    "pages": Pages,
    "tx": Tx,
    "uow": UnitOfWork,
}
"""Types of the variables whose members the guides name."""
FIELDS_OF_OPTIONS = {Pages: ConsolePage, Collection: Operation}
"""Classes whose fields are the keyword arguments `**options` of a class's methods."""
OTHER_NAMES = frozenset(
    "EventSource GetV1SourcesResponse200DataItemConfig Location Note RateLimitBurst joinery_app joinery_sdk joinery_system "
    "product_documents product_terms protect_tenant_table".split()
)
"""Names that are not Python's: headers, roles and tables of the database, settings of other programs, the example's."""
OTHER_DOTTED_NAMES = (
    *TYPES,
    "axes.Colour",
    "catalogue.fill_facets",
    "exports.carry_out",
    "exports.deliver",
    "joinery.connectors",
    "notes.create",
    "runs.execute",
)
"""Types of events, kinds of jobs, operations, declared fields and the group of entry points."""
PACKAGES = (*LAYERS, "joinery_sdk", "tests")
_BLOCK = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"(?<!`)`([^`\n]+(?:\n[^`\n]+)?)`(?!`)")
_DOTTED = re.compile(r"(?<![\w./$-])([A-Za-z_]\w*(?:\[\w+\])?(?:\.[A-Za-z_]\w*)+)(?![\w/-])")
_FILE = re.compile(r"(?<![\w./-])[\w/]+\.(?:py|toml|sql|csv|html|json)\b(?!-)")
_CLASS_NAME = re.compile(r"_?(?:[A-Z][a-z0-9]+){2,}")


def read(page: str) -> tuple[str, list[tuple[str, str]]]:
    """Return the page's text without its blocks, and the blocks as pairs of language and text."""
    text = (DOCS / page).read_text("utf-8")
    return _BLOCK.sub("", text), [(found[1], found[2]) for found in _BLOCK.finditer(text)]


def spans(text: str) -> list[str]:
    return [" ".join(span.split()) for span in _SPAN.findall(text)]


def dotted_names(page: str) -> list[str]:
    """Return the dotted names of the page's text and diagrams, without file names."""
    text, blocks = read(page)
    diagrams = [block for language, block in blocks if not language]
    names = [name for part in (*spans(text), *diagrams) for name in _DOTTED.findall(_FILE.sub("", part))]
    return [name for name in names if not name.startswith(ADDED)]


@cache
def classes_by_name() -> dict[str, str]:
    """Return the module of each class by name; for a name that the connector SDK also has, the service's module."""
    modules: dict[str, str] = {}
    for path, tree in trees(*LAYERS):
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not path.startswith("entrypoints/clients/python/runtime"):
                modules.setdefault(node.name, path.removesuffix(".py").removesuffix("/__init__").replace("/", "."))
    return modules


def find_class(name: str) -> type:
    return getattr(importlib.import_module(classes_by_name()[name]), name)  # type: ignore[no-any-return]


@cache
def attributes_of(cls: type) -> frozenset[str]:
    """Return the names of the class's members, with those that its methods set."""
    names = set(dir(cls))
    for base in cls.__mro__:
        names |= set(vars(base).get("__annotations__", ()))
        if base.__module__.partition(".")[0] in LAYERS:
            names |= set(re.findall(r"self\.(\w+)", inspect.getsource(base)))
    return frozenset(names)


def resolve(name: str) -> Any:
    """Return what the dotted name refers to; None for a field. Raises LookupError if nothing has the name."""
    head, *members = re.sub(r"^tx\[(\w+)\]", r"\1", name).split(".")
    if head in PACKAGES:
        return resolve_in_package(name)
    prefix = head
    if len(members) > 1 and f"{head}.{members[0]}" in TYPE_OF_VARIABLE:
        prefix = f"{head}.{members.pop(0)}"
    value: Any = TYPE_OF_VARIABLE.get(prefix)
    if value is None and prefix in classes_by_name():
        value = find_class(prefix)
    for member in members:
        if not isinstance(value, type) or member not in attributes_of(value):
            raise LookupError(name)
        value = getattr(value, member, None)
    return value


def resolve_in_package(name: str) -> Any:
    """Return the module, or the module's member, with this dotted name."""
    importable = re.sub(r"^joinery_sdk\b", "connectors.sdk", name)
    module, _, member = importable.rpartition(".")
    try:
        return getattr(importlib.import_module(module), member)
    except (ImportError, AttributeError):
        try:
            return importlib.import_module(importable)
        except ImportError:
            raise LookupError(name) from None


def calls(page: str) -> Iterator[tuple[str, ast.Call]]:
    """Yield the calls of dotted names in the page's text and diagrams."""
    text, blocks = read(page)
    found = spans(text)
    for block in (block for language, block in blocks if not language):
        found += re.findall(r"[A-Za-z]\w*\.\w+\([\w, ]*\)", block)
    for span in found:
        source = re.sub(r"(?<!\")…|\b\w+…", "...", span.removeprefix("@").removeprefix("await "))
        try:
            node = ast.parse(source, mode="eval").body
        except SyntaxError:
            continue
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield span, node


def unknown_arguments(call: ast.Call) -> list[str]:
    """Return the keyword arguments of the call, and the parameters it names, that its function does not have."""
    name = ast.unparse(call.func)
    function = resolve(name)
    parameters = inspect.signature(function).parameters
    known = set(parameters)
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values()):
        owner = TYPE_OF_VARIABLE.get(name.partition(".")[0])
        known |= (
            {field.name for field in dataclasses.fields(FIELDS_OF_OPTIONS[owner])}
            if owner in FIELDS_OF_OPTIONS
            else set()
        )
    arguments = [str(keyword.arg) for keyword in call.keywords]
    if name[0].isupper():  # of a class: the arguments are the names of the parameters
        arguments += [node.id for node in call.args if isinstance(node, ast.Name)]
    return [argument for argument in arguments if argument not in known]


@cache
def all_names() -> frozenset[str]:
    """Return all names that Python code defines or imports, the names of modules and folders, and OTHER_NAMES."""
    names = {*dir(builtins), *OTHER_NAMES}
    for path, tree in trees(*LAYERS, "tests/tenancy"):
        names.update(path.removesuffix(".py").split("/"))
        names.update(name for _, name in defined(tree))
        names.update(alias.name for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names)
    return frozenset(names)


def test_code_of_the_guide_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The Python of docs/adding-an-operation.md is executed: a wrong name or keyword raises an error."""
    blocks = [text for language, text in read("adding-an-operation.md")[1] if language == "python"]
    modules = ("domain.notes", "domain.notes.model", "entrypoints.areas.notes")
    for name in modules:
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    model, area = (vars(sys.modules[name]) for name in modules[1:])
    model_block, area_block, field_block = blocks
    exec(compile(model_block, "model.py", "exec"), model)
    exec(compile(area_block, "notes.py", "exec"), area)
    exec(compile(field_block, "field.py", "exec"), {**vars(schema), **model})
    lines = next(text for language, text in read("adding-an-operation.md")[1] if language == "csv").splitlines()
    assert [line.split(",")[1:4] for line in lines] == [
        [row.method, row.path, row.scope] for row in area["AREA"].operations
    ]


def test_options_of_operations_in_the_guide_exist() -> None:
    section = read("adding-an-operation.md")[0].partition("| Option |")[2].partition("\n\n")[0]
    options = re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)
    assert len(options) > 3
    assert set(options) <= {field.name for field in dataclasses.fields(Operation)}


@pytest.mark.parametrize("page", GUIDES)
def test_dotted_names_of_the_guides_exist(page: str) -> None:
    wrong = []
    for name in dotted_names(page):
        head = re.sub(r"^tx\[(\w+)\]", r"\1", name).partition(".")[0]
        if name in OTHER_DOTTED_NAMES:
            continue
        if head not in TYPE_OF_VARIABLE and head not in PACKAGES and head not in classes_by_name():
            wrong.append(name)
            continue
        try:
            resolve(name)
        except LookupError:
            wrong.append(name)
    assert not wrong


@pytest.mark.parametrize("page", GUIDES)
def test_arguments_of_calls_in_the_guides_exist(page: str) -> None:
    wrong = [(span, unknown) for span, call in calls(page) if (unknown := unknown_arguments(call))]
    assert not wrong


@pytest.mark.parametrize("page", GUIDES)
def test_simple_names_of_the_guides_exist(page: str) -> None:
    diagrams = "\n".join(block for language, block in read(page)[1] if not language)
    wrong = [name for name in re.findall(rf"\b{_CLASS_NAME.pattern}\b", diagrams) if name not in all_names()]
    for span in spans(read(page)[0]):
        name = span.removeprefix("@").partition("(")[0]
        if re.fullmatch(r"_?[A-Z]\w*[a-z]\w*|_?[a-z]+_\w+|_\w+", name) and not name.endswith("_"):
            if name not in all_names():
                wrong.append(name)
        elif span.startswith("@") and name.isidentifier() and name not in all_names():
            wrong.append(span)
    assert not wrong


def test_classes_that_the_section_on_the_console_names_are_used_there() -> None:
    """A class of another package may have the name that a class of the console had."""
    section = read("architecture.md")[0].partition("\n## The console\n")[2].partition("\n## ")[0]
    used = "\n".join(path.read_text("utf-8") for path in (ROOT / "entrypoints" / "console").rglob("*.py"))
    names = {name for span in spans(section) for name in re.findall(r"\b[A-Z][a-z]\w+", span) if '"' not in span}
    assert len(names) > 3
    assert sorted(name for name in names if not re.search(rf"\b{name}\b", used)) == []


def test_classes_and_members_that_docs_name_exist() -> None:
    wrong = []
    for path in DOCS.rglob("*.md"):
        page = path.relative_to(DOCS).as_posix()
        for span in spans(read(page)[0]):
            name = span.partition("(")[0]
            if page.startswith("decisions/") and _CLASS_NAME.fullmatch(name) and name not in all_names():
                wrong.append((page, name))
            if re.fullmatch(r"[A-Z]\w+(\.\w+)+", name) and name.partition(".")[0] in classes_by_name():
                try:
                    resolve(name)
                except LookupError:
                    wrong.append((page, name))
    assert not wrong


def test_files_that_docs_name_exist() -> None:
    files = [
        f"/{path.relative_to(ROOT).as_posix()}"
        for folder in (*LAYERS, "tests", "benchmarks", "deploy", "docs")
        for path in (ROOT / folder).rglob("*.*")
    ]
    files += [f"/{path.name}" for path in ROOT.iterdir()]
    wrong = []
    for path in DOCS.rglob("*.md"):
        page = path.relative_to(DOCS).as_posix()
        if page == "style.md":
            continue  # names modules before their renaming
        text, blocks = read(page)
        parts = spans(text) + [block for language, block in blocks if not language and page in GUIDES]
        for name in {name for part in parts for name in _FILE.findall(part)}:
            is_ours = name.endswith(".py") or name.split("/")[0] in (*LAYERS, "tests", "deploy")
            is_placeholder = re.search(r"/X|\bX\b|NN", name) or name in ADDED
            if is_ours and not is_placeholder and not any(file.endswith("/" + name.lstrip("/")) for file in files):
                wrong.append((page, name))
    assert not wrong
