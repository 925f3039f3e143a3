"""The distributed client libraries, unpacked for programs."""

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
    """Return the OpenAPI description."""
    return build_document(OperationTable(AREAS), BASE, BASE)


@cache
def build_client_files() -> Mapping[str, bytes]:
    """Return the files of the distributed clients."""
    return build_distribution(load_description())


def unpack_wheel(folder: Path) -> Path:
    """Unpack the Python package into the folder."""
    zipfile.ZipFile(io.BytesIO(build_client_files()[WHEEL])).extractall(folder)
    return folder


def unpack_tarball(folder: Path) -> Path:
    """Unpack the TypeScript package into the folder's `node_modules`."""
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
    """Import the Python package from its wheel."""
    folder = Path(tempfile.mkdtemp(prefix="joinery-client-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    sys.path.insert(0, str(unpack_wheel(folder)))
    return importlib.import_module("joinery_client")
