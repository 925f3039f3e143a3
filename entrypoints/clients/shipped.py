"""Distributed files: wheel, npm package and request collection, written by `python -m entrypoints.clients.shipped FOLDER`."""

import gzip
import hashlib
import inspect
import io
import json
import re
import sys
import tarfile
import zipfile
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Final

from jinja2 import Environment, select_autoescape

from entrypoints.areas.registry import AREAS
from entrypoints.clients.description import Json, camel, groups_of, type_name
from entrypoints.clients.languages import PYTHON, TYPESCRIPT, Language, Types, is_attribute
from entrypoints.clients.postman import collection
from entrypoints.clients.python.runtime import errors, tables
from entrypoints.operations.openapi import document
from entrypoints.operations.table import Table

VERSION = "0.1.0"
"""Version of the client packages, part of their file names."""
WHEEL = f"joinery_client-{VERSION}-py3-none-any.whl"
TARBALL = f"joinery-client-{VERSION}.tgz"
COLLECTION = "joinery.postman_collection.json"
NAMES = (WHEEL, TARBALL, COLLECTION)
_ADDRESS = "http://127.0.0.1:8080"
"""Default address of `joinery up`, used in the collection."""
_NPM_TIME = 499_162_500
"""Modification time that npm gives every file (26 October 1985)."""
_TEMPLATE = ".jinja"
_ASYNC = "async_"
_BLOCKING: Final[Mapping[str, str]] = {
    r"\basync (?=def|for|with)": "",
    r"\bawait ": "",
    r"\basyncio\.to_thread\(([\w.]+)(, )?": r"\1(",
    r"\basyncio\.sleep": "time.sleep",
    r"^import asyncio$": "import time",
    r"\bAsync(?=[A-Z])": "",
    r"\basync_(?=\w)": "",
    r"\baclose\b": "close",
    r"\b__a(?=enter|exit|iter)": "__",
}
"""Regular expressions and replacements that turn asyncio code into blocking code."""


def shipped(described: Json) -> Mapping[str, bytes]:
    """Build every file from the API description; the result is reproducible."""
    plain = json.loads(json.dumps(described))  # converts enumeration members to plain values
    return {
        WHEEL: _wheel(_package(plain, "python", PYTHON)),
        TARBALL: _tarball(_package(plain, "typescript", TYPESCRIPT)),
        COLLECTION: collection(plain),
    }


def _package(described: Json, folder: str, language: Language) -> Mapping[str, str]:
    """Return the files of a package by path: rendered templates, and blocking variants of asyncio modules."""
    schemas = described["components"]["schemas"]
    environment = Environment(
        autoescape=select_autoescape(default_for_string=False),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"type_name": type_name, "camel": camel, "comment": language.comment, "json": json.dumps}
    environment.tests |= {"attribute": is_attribute, "identifier": str.isidentifier}
    environment.globals |= {
        "type_of": Types(language, schemas).of,
        "types": Types(language, schemas, "t."),
        "schemas": schemas,
        "groups": groups_of(described),
        "version": described["info"]["version"],
        "package_version": VERSION,
        "known_types": sorted(schemas["typed_event"]["discriminator"]["mapping"]),
        "tables": {name: value for name, value in vars(tables).items() if name.isupper()},
        "statuses": {status: kind.__name__ for status, kind in errors.BY_STATUS.items()},
        "errors": {name: (_documentation(kind), kind.hint) for name, kind in error_classes().items()},
    }
    made: dict[str, str] = {}
    root = files("entrypoints.clients").joinpath(folder)
    for prefix, place in (("", root), ("runtime/", root.joinpath("runtime"))):
        for file in sorted((file for file in place.iterdir() if file.is_file()), key=lambda file: file.name):
            text, name = file.read_text("utf-8"), prefix + file.name.removesuffix(_TEMPLATE)
            made[name] = environment.from_string(text).render() if file.name.endswith(_TEMPLATE) else text
            if _ASYNC in name:
                made[name.replace(_ASYNC, "")] = blocking(made[name])
    return dict(sorted(made.items()))


def error_classes() -> dict[str, type[errors.JoineryError]]:
    """Return all subclasses of JoineryError in the order of the module."""
    base = errors.JoineryError
    return {
        name: kind
        for name, kind in vars(errors).items()
        if inspect.isclass(kind) and issubclass(kind, base) and kind is not base
    }


def _documentation(kind: type) -> str:
    """Return the class's docstring with names in camel case."""
    return re.sub(r"`([a-z_]+)`", lambda name: f"`{camel(name[1])}`", inspect.getdoc(kind) or "")


def blocking(text: str) -> str:
    """Convert an asyncio module to a blocking one."""
    for pattern, replacement in _BLOCKING.items():
        text = re.sub(pattern, replacement, text, flags=re.MULTILINE)
    return text


def _wheel(package: Mapping[str, str]) -> bytes:
    """Build a wheel (binary distribution format 1.0)."""
    info = f"joinery_client-{VERSION}.dist-info"
    contents = {f"joinery_client/{path}": text.encode() for path, text in package.items()}
    contents[f"{info}/METADATA"] = contents.pop("joinery_client/METADATA")
    contents[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: joinery\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    record = ""
    for path, body in contents.items():
        digest = urlsafe_b64encode(hashlib.sha256(body).digest()).rstrip(b"=").decode()
        record += f"{path},sha256={digest},{len(body)}\n"
    contents[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path, body in contents.items():
            entry = zipfile.ZipInfo(path)  # the default date 1980 makes the archive reproducible
            entry.compress_type, entry.create_system, entry.external_attr = zipfile.ZIP_DEFLATED, 3, 0o644 << 16
            archive.writestr(entry, body)
    return made.getvalue()


def _tarball(package: Mapping[str, str]) -> bytes:
    """Build a tarball like `npm pack`."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for path, text in package.items():
            entry = tarfile.TarInfo(f"package/{path}")
            entry.size, entry.mtime = len(text.encode()), _NPM_TIME
            archive.addfile(entry, io.BytesIO(text.encode()))
    return gzip.compress(made.getvalue(), 9, mtime=0)


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, body in shipped(document(Table(AREAS), _ADDRESS, _ADDRESS)).items():
        (folder / name).write_bytes(body)
        sys.stdout.write(f"{folder / name}\n")
