"""The files that are shipped, by their names: a wheel, an npm package and a collection of requests."""

import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any, Final

from entrypoints.clients.generating.python_package import python_package
from entrypoints.clients.generating.typescript_package import typescript_package
from entrypoints.clients.packing.postman import collection
from entrypoints.clients.packing.tarball import tarball
from entrypoints.clients.packing.wheel import wheel
from entrypoints.clients.version import VERSION

WHEEL: Final = f"joinery_client-{VERSION}-py3-none-any.whl"
TARBALL: Final = f"joinery-client-{VERSION}.tgz"
COLLECTION: Final = "joinery.postman_collection.json"
NAMES: Final = (WHEEL, TARBALL, COLLECTION)


def shipped(document: Mapping[str, Any]) -> Mapping[str, bytes]:
    """Every file's bytes, made of the API's description alone: the same description gives the same bytes."""
    plain = json.loads(json.dumps(document))  # choices are members of enumerations until they are written
    readme = files("entrypoints.clients.python").joinpath("README.md").read_text("utf-8")
    return {
        WHEEL: wheel(python_package(plain), readme, VERSION),
        TARBALL: tarball(typescript_package(plain)),
        COLLECTION: collection(plain),
    }
