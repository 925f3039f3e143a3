"""Files of the API clients: Python wheel, npm package and Postman collection.

`python -m entrypoints.clients.distribution FOLDER` writes them.
"""

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
from entrypoints.clients.description import Json, build_groups, format_type_name, to_camel_case
from entrypoints.clients.languages import PYTHON, TYPESCRIPT, Language, TypeConverter, is_attribute_name
from entrypoints.clients.postman import build_collection
from entrypoints.clients.python.runtime import errors, tables
from entrypoints.operations.openapi import build_document
from entrypoints.operations.table import OperationTable

VERSION = "0.1.0"
"""Version of the client packages, which is part of the file names."""
WHEEL = f"joinery_client-{VERSION}-py3-none-any.whl"
TARBALL = f"joinery-client-{VERSION}.tgz"
COLLECTION = "joinery.postman_collection.json"
FILE_NAMES = (WHEEL, TARBALL, COLLECTION)
_DEFAULT_URL = "http://127.0.0.1:8080"
"""URL of the service in the Postman collection: the default URL of `joinery up`."""
_NPM_TIMESTAMP = 499_162_500
"""Modification time that npm gives every file, in seconds since 1970 (26 October 1985)."""
_TEMPLATE_SUFFIX = ".jinja"
_ASYNC_PREFIX = "async_"
_BLOCKING_REPLACEMENTS: Final[Mapping[str, str]] = {
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


def build_distribution(document: Json) -> Mapping[str, bytes]:
    """Build the files of all API clients from an OpenAPI document. The same document results in the same bytes."""
    plain = json.loads(json.dumps(document))  # converts enumeration members to plain values
    return {
        WHEEL: _build_wheel(_render_package(plain, "python", PYTHON)),
        TARBALL: _build_tarball(_render_package(plain, "typescript", TYPESCRIPT)),
        COLLECTION: build_collection(plain),
    }


def _render_package(document: Json, folder: str, language: Language) -> Mapping[str, str]:
    """Return the source files of a client package by path.

    The package consists of rendered templates, copied files, and blocking versions of asyncio modules.

    Args:
        document: The OpenAPI document.
        folder: The folder with the templates and files, relative to entrypoints/clients.
        language: The language of the package.
    """
    schemas = document["components"]["schemas"]
    environment = Environment(
        autoescape=select_autoescape(default_for_string=False),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "type_name": format_type_name,
        "camel": to_camel_case,
        "comment": language.format_comment,
        "json": json.dumps,
    }
    environment.tests |= {"attribute": is_attribute_name, "identifier": str.isidentifier}
    environment.globals |= {
        "type_of": TypeConverter(language, schemas).type_of,
        "types": TypeConverter(language, schemas, "t."),
        "schemas": schemas,
        "groups": build_groups(document),
        "version": document["info"]["version"],
        "package_version": VERSION,
        "known_types": sorted(schemas["typed_event"]["discriminator"]["mapping"]),
        "tables": {name: value for name, value in vars(tables).items() if name.isupper()},
        "statuses": {status: error_class.__name__ for status, error_class in errors.BY_STATUS.items()},
        "errors": {
            name: (_read_class_docstring(error_class), error_class.hint)
            for name, error_class in list_error_classes().items()
        },
    }
    text_by_path: dict[str, str] = {}
    root = files("entrypoints.clients").joinpath(folder)
    for prefix, directory in (("", root), ("runtime/", root.joinpath("runtime"))):
        for file in sorted((file for file in directory.iterdir() if file.is_file()), key=lambda file: file.name):
            text, name = file.read_text("utf-8"), prefix + file.name.removesuffix(_TEMPLATE_SUFFIX)
            text_by_path[name] = (
                environment.from_string(text).render() if file.name.endswith(_TEMPLATE_SUFFIX) else text
            )
            if _ASYNC_PREFIX in name:
                text_by_path[name.replace(_ASYNC_PREFIX, "")] = convert_to_blocking(text_by_path[name])
    return dict(sorted(text_by_path.items()))


def list_error_classes() -> dict[str, type[errors.JoineryError]]:
    """Return the subclasses of JoineryError by name, in the order of their module."""
    base = errors.JoineryError
    return {
        name: value
        for name, value in vars(errors).items()
        if inspect.isclass(value) and issubclass(value, base) and value is not base
    }


def _read_class_docstring(error_class: type) -> str:
    """Return the docstring of a class, with the names in backticks converted to camel case."""
    return re.sub(r"`([a-z_]+)`", lambda name: f"`{to_camel_case(name[1])}`", inspect.getdoc(error_class) or "")


def convert_to_blocking(text: str) -> str:
    """Convert the source text of an asyncio module to that of a blocking module."""
    for pattern, replacement in _BLOCKING_REPLACEMENTS.items():
        text = re.sub(pattern, replacement, text, flags=re.MULTILINE)
    return text


def _build_wheel(package: Mapping[str, str]) -> bytes:
    """Build a Python wheel (binary distribution format 1.0) from source files by path."""
    info = f"joinery_client-{VERSION}.dist-info"
    contents = {f"joinery_client/{path}": text.encode() for path, text in package.items()}
    contents[f"{info}/METADATA"] = contents.pop("joinery_client/METADATA")
    contents[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: joinery\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    record = ""
    for path, body in contents.items():
        digest = urlsafe_b64encode(hashlib.sha256(body).digest()).rstrip(b"=").decode()
        record += f"{path},sha256={digest},{len(body)}\n"
    contents[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path, body in contents.items():
            entry = zipfile.ZipInfo(path)  # the default date 1980 makes the archive reproducible
            entry.compress_type, entry.create_system, entry.external_attr = zipfile.ZIP_DEFLATED, 3, 0o644 << 16
            archive.writestr(entry, body)
    return buffer.getvalue()


def _build_tarball(package: Mapping[str, str]) -> bytes:
    """Build an npm package from source files by path, with the layout of `npm pack`."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for path, text in package.items():
            entry = tarfile.TarInfo(f"package/{path}")
            entry.size, entry.mtime = len(text.encode()), _NPM_TIMESTAMP
            archive.addfile(entry, io.BytesIO(text.encode()))
    return gzip.compress(buffer.getvalue(), 9, mtime=0)


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, body in build_distribution(build_document(OperationTable(AREAS), _DEFAULT_URL, _DEFAULT_URL)).items():
        (folder / name).write_bytes(body)
        sys.stdout.write(f"{folder / name}\n")
