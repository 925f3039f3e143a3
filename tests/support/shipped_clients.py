"""The clients as they are shipped, unpacked where programs find them."""

import atexit
import importlib
import io
import shutil
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from entrypoints.areas.registry import AREAS
from entrypoints.clients.distribution import TARBALL, WHEEL, build_distribution
from entrypoints.operations.openapi import build_document
from entrypoints.operations.table import OperationTable

BASE = "http://127.0.0.1:8080"


@cache
def load_description() -> Mapping[str, Any]:
    """The API's description."""
    return build_document(OperationTable(AREAS), BASE, BASE)


@cache
def build_client_files() -> Mapping[str, bytes]:
    """Return the files of the distributed clients."""
    return build_distribution(load_description())


def unpack_wheel(folder: Path) -> Path:
    """The folder, with the Python package in it."""
    zipfile.ZipFile(io.BytesIO(build_client_files()[WHEEL])).extractall(folder)
    return folder


def unpack_tarball(folder: Path) -> Path:
    """The folder, with the TypeScript package in its node_modules."""
    place = folder / "node_modules" / "joinery-client"
    with tarfile.open(fileobj=io.BytesIO(build_client_files()[TARBALL])) as archive:
        for entry in archive.getmembers():
            path = place / entry.name.removeprefix("package/")
            path.parent.mkdir(parents=True, exist_ok=True)
            taken = archive.extractfile(entry)
            assert taken is not None
            path.write_bytes(taken.read())
    return folder


@cache
def import_client() -> ModuleType:
    """The Python package out of its wheel, in this process."""
    folder = Path(tempfile.mkdtemp(prefix="joinery-client-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    sys.path.insert(0, str(unpack_wheel(folder)))
    return importlib.import_module("joinery_client")
