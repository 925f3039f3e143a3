"""The table of parsers in docs/threat-model.md lists exactly the modules that import one."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LAYERS = ("domain", "adapters", "connectors", "entrypoints")
OPERATORS = tuple(
    f"entrypoints/{name}/" for name in ("backup", "cli", "clients", "demo", "mirror", "operators", "site", "up")
)
"""Modules that only read the operator's files and the project's pages."""
PARSERS: dict[str, set[str] | None] = {
    "PIL": None, "aiosmtpd": None, "anthropic": None, "argon2": None, "asyncssh": None, "authlib": None, "bs4": None, "bz2": None, "cbor2": None, "codecs": None,
    "cryptography.hazmat.primitives.serialization": None, "cryptography.x509": None, "csv": None,
    "difflib": None, "dkim": None, "dns": None, "email": None, "fractions": None, "gzip": None, "h11": None, "html.parser": None,
    "http.cookiejar": None, "http.cookies": None, "hypercorn": None, "idna": None, "ipaddress": None, "isal": None, "joserfc": None,
    "json": {"load", "loads", "JSONDecoder"}, "jsonschema": None, "jsonschema_rs": None, "lxml": None, "lzma": None, "markdown_it": None,
    "mcp": None, "msgspec": {"decode", "Decoder"}, "openai": None, "pickle": None, "plistlib": None, "protego": None, "python_calamine": None,
    "quopri": None, "shelve": None, "spf": None, "tarfile": None, "unicodedata": None,
    "urllib.parse": {"parse_qs", "parse_qsl"}, "webauthn": None, "werkzeug": None, "xml": None, "yaml": None, "yarl": None,
    "zipfile": None, "zlib": {"decompress", "decompressobj"}, "zxcvbn": None,
}  # fmt: skip
"""Parsers, and the reading functions of those that also write (None: all)."""
NEVER = {"pickle", "shelve", "http.cookies", "http.cookiejar", "cryptography.x509"}
_ROW = re.compile(r"\| `([^`]+)` \| (`[^|]+`) \| [^|]+ \| [^|]+ \|")


@cache
def _find_parsers() -> set[tuple[str, str]]:
    """Return every parser with every module that uses it."""
    paths = [path for layer in LAYERS for path in (ROOT / layer).rglob("*.py")]
    modules = {str(path.relative_to(ROOT)): ast.parse(path.read_text(encoding="utf-8")) for path in paths}
    outside = {name: tree for name, tree in modules.items() if not name.startswith(OPERATORS)}
    return {(parser, name) for name, tree in outside.items() for parser in _list_parsers(tree)}


def _list_parsers(tree: ast.Module) -> Iterator[str]:
    names = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=imported):
                for alias in imported:
                    yield from (
                        parser for parser, readers in _find_parser(alias.name) if readers is None or readers & names
                    )
            case ast.ImportFrom(module=str(module), names=imported, level=0):
                for alias in imported:
                    of = _find_parser(f"{module}.{alias.name}")
                    yield from (parser for parser, readers in of if readers is None or readers & {alias.name, *names})
            case ast.Call(func=ast.Attribute(value=ast.Name(id="re"), attr=_), args=[pattern, *_]):
                if not _is_literal(pattern):
                    yield "re (composed)"
            case ast.Call(func=ast.Attribute(attr="decode"), args=[label, ast.Constant()]) if not _is_literal(label):
                yield "bytes.decode (named)"
            case ast.Call(
                func=ast.Attribute(attr="encode" | "decode"), args=[ast.Constant(value="idna" | "punycode"), *_]
            ):
                yield "idna (codec)"


def _find_parser(name: str) -> list[tuple[str, set[str] | None]]:
    return [(parser, readers) for parser, readers in PARSERS.items() if f"{name}.".startswith(f"{parser}.")]


def _is_literal(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) or (isinstance(node, ast.Name) and node.id.isupper())


def _read_table() -> set[tuple[str, str]]:
    text = (
        (ROOT / "docs" / "threat-model.md")
        .read_text(encoding="utf-8")
        .partition("\n## Parsers\n")[2]
        .partition("\n## ")[0]
    )
    rows = [_ROW.fullmatch(line) for line in text.splitlines() if line.startswith("| `")]
    assert all(rows), "a row has another form"
    return {(row[1], module) for row in rows if row for module in re.findall(r"`([^`]+)`", row[2])}


def test_every_parser_has_a_row() -> None:
    assert sorted(_find_parsers() - _read_table()) == []


def test_every_row_has_its_parser() -> None:
    assert sorted(_read_table() - _find_parsers()) == []


def test_forbidden_parsers_are_never_used() -> None:
    assert {parser for parser, _ in _find_parsers()} & NEVER == set()


@pytest.mark.parametrize(
    ("code", "parsers"),
    [
        ("import cbor2", {"cbor2"}),
        ("import lxml.etree as e", {"lxml"}),
        ("def f():\n    from email.header import decode_header", {"email"}),
        ("import json\njson.dumps(1)", set()),
        ("import json\njson.loads(x)", {"json"}),
        ("from json import loads", {"json"}),
        ("from urllib.parse import urlsplit", set()),
        ("from urllib.parse import parse_qsl", {"urllib.parse"}),
        ("import re\nre.compile('a')\nre.compile(PATTERN)", set()),
        ("import re\nre.compile(f'{x}')", {"re (composed)"}),
        ("import re\nre.fullmatch(given, x)", {"re (composed)"}),
        ("b.decode(charset, 'replace')", {"bytes.decode (named)"}),
        ("b.decode('utf-8', 'replace')", set()),
        ("b.encode('idna')", {"idna (codec)"}),
    ],
)
def test_uses_of_parsers_are_recognised(code: str, parsers: set[str]) -> None:
    assert set(_list_parsers(ast.parse(code))) == parsers
