"""Names of the code (docs/style.md): no forbidden words, unique classes, a glossary that defines each term once."""

import ast
import builtins
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
LAYERS = ("domain", "ports", "adapters", "connectors", "entrypoints")
FORBIDDEN = frozenset(
    "anew ask asked asking asks attend beside crowded crowding drowsy furnished hasty homes kinship kit kits kitting "
    "laid lain lay lays lie lies lying mend mended mends picky reckoned rehearsal rehearsals said say saying says "
    "sight stranger strangers tell telling tells told visit visited visitor visits walls".split()
)
"""Words that docs/style.md replaces by terms of the field; a name must not contain one."""
DISTRIBUTIONS = ("connectors/sdk", "entrypoints/clients/python/runtime")
"""Packages that are installed without Joinery; their classes may have the names of classes of Joinery."""
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_NAME_IN_TEXT = re.compile(r"(?<!`)`([a-z.]*_[\w.]*|(?:\w+\.)*[A-Z][a-z]+[A-Z]\w*|[A-Z]+_[A-Z_]+)(?:\(\))?`(?!`)")
"""A name in backticks: with an underscore, or of a class."""
_EXAMPLES = (
    "offer_changed_event",
    "source_list",
    "SourceList",
    "sources_create",
    "IfMatch",
    "_dmarc",
    "XMinioStorageFull",
    "prometheus_client",
    "Metric",
)
"""Names in docstrings that are computed, or defined elsewhere."""
_EXAMPLE = re.compile(r"`([\w.]+)(?:\([\w, ]*\))?`")
"""A name in backticks, with or without arguments."""
_TERM = re.compile(r"- \*\*(.+?)\*\*(?: \(`([\w.]+)`\))?: .+\.")


def trees(*folders: str) -> Iterator[tuple[str, ast.Module]]:
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield path.relative_to(ROOT).as_posix(), ast.parse(path.read_text("utf-8"))


def defined(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of everything that the module defines."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield node.lineno, name
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield node.lineno, name
            case _:
                pass


def classes() -> Iterator[tuple[str, str]]:
    """Yield the module and the name of each public class."""
    for path, tree in trees(*LAYERS):
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                yield path, node.name


def test_no_name_contains_a_forbidden_word() -> None:
    found = [
        f"{path}:{line} {name}"
        for path, tree in trees(*LAYERS, "benchmarks", "tests")
        for line, name in defined(tree)
        if not FORBIDDEN.isdisjoint(word.lower() for word in _WORD.findall(name))
    ]
    assert not found


def test_no_file_or_sql_statement_has_a_forbidden_word() -> None:
    names = [path for path, _ in trees(*LAYERS, "benchmarks", "tests")]
    for path in (ROOT / "adapters" / "postgres" / "sql").glob("*.sql"):
        names += re.findall(r"^-- (\w+) --$", path.read_text("utf-8"), re.MULTILINE)
    for path in (ROOT / "entrypoints" / "console" / "static").glob("*.css"):
        names += re.findall(r"\.([a-z][\w-]*)", path.read_text("utf-8"))
    assert len(names) > 2000
    assert [name for name in names if not FORBIDDEN.isdisjoint(word.lower() for word in _WORD.findall(name))] == []


def test_no_two_classes_have_the_same_name() -> None:
    names = Counter(name for path, name in classes() if not path.startswith(DISTRIBUTIONS))
    assert [name for name, count in names.items() if count > 1] == []


def test_each_term_is_defined_once_and_names_one_class() -> None:
    lines = [line for line in (ROOT / "docs" / "glossary.md").read_text("utf-8").splitlines() if line.startswith("- ")]
    entries = [found.groups() for line in lines if (found := _TERM.fullmatch(line))]
    assert len(entries) == len(lines) > 100
    terms = Counter(term.lower() for term, _ in entries)
    named = Counter(name for _, name in entries if name)
    assert [term for term, count in (terms + named).items() if count > 1] == []
    assert named.keys() <= {name for _, name in classes()}


def test_terms_are_in_alphabetical_order() -> None:
    _, *sections = (ROOT / "docs" / "glossary.md").read_text("utf-8").split("\n## ")
    for section in sections:
        terms = [found[1].lower() for line in section.splitlines() if (found := _TERM.fullmatch(line))]
        assert terms == sorted(terms)


def test_docstrings_of_classes_start_without_an_article() -> None:
    definitions = [
        (path, node) for path, tree in trees(*LAYERS) for node in ast.walk(tree) if isinstance(node, ast.ClassDef)
    ]
    exceptions = {
        name for name, value in vars(builtins).items() if isinstance(value, type) and issubclass(value, BaseException)
    }
    while derived := {
        node.name
        for _, node in definitions
        if node.name not in exceptions
        and any(ast.unparse(base).rpartition(".")[2] in exceptions for base in node.bases)
    }:
        exceptions |= derived
    assert [
        f"{path}:{node.lineno} {node.name}"
        for path, node in definitions
        if node.name not in exceptions and (ast.get_docstring(node) or "").startswith(("A ", "An ", "The "))
    ] == []


def test_names_in_the_style_guide_exist() -> None:
    names = {name for _, tree in trees(*LAYERS) for _, name in defined(tree)}
    for path, _ in trees(*LAYERS):
        names |= {Path(path).name, *Path(path).with_suffix("").parts}
    guide = (ROOT / "docs" / "style.md").read_text("utf-8")
    rules = guide.partition("## Names in code\n")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in guide.splitlines() if line.startswith("| ")]
    code = [
        row[-1] for row in rows if row[0] in ("class", "function", "boolean", "variable", "module") or len(row) == 4
    ]
    examples = [name for text in (rules, *code) for name in _EXAMPLE.findall(text)]
    assert len(examples) > 60
    assert [name for name in examples if name not in names] == []


def test_names_in_docstrings_exist() -> None:
    docstrings, words = [], set(_EXAMPLES)
    for path, tree in trees(*LAYERS):
        texts = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            match node:
                case ast.Constant(value=str(text)) if id(node) in texts:
                    docstrings += [(f"{path}:{node.lineno}", name) for name in _NAME_IN_TEXT.findall(text)]
                case ast.Constant(value=str(text)):
                    words.update(re.findall(r"\w+", text))
                case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name) | ast.keyword(arg=str(name)):
                    words.update(name.split("."))
                case _:
                    pass
        words.update(name for _, name in defined(tree))
        words.update(path.removesuffix(".py").split("/"))
    for folder in (*LAYERS, "docs"):
        for file in (ROOT / folder).rglob("*.*"):
            if file.suffix in (".md", ".sql", ".toml", ".jinja", ".html") and "html" not in file.parts:
                words.update(re.findall(r"\w+", file.read_text("utf-8")))
    assert [(place, name) for place, name in docstrings if not words.issuperset(name.split("."))] == []
