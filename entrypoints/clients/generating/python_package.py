"""Every file of the Python package, by its path below the site's packages."""

from collections.abc import Mapping
from importlib.resources import files

from entrypoints.clients.generating.model import Json
from entrypoints.clients.generating.python_modules import python_client, python_events, python_init
from entrypoints.clients.generating.python_operations import python_operations
from entrypoints.clients.generating.python_types import python_types


def python_package(document: Json) -> Mapping[str, str]:
    """The generated modules, and those written by hand."""
    made = {
        "joinery_client/__init__.py": python_init(document),
        "joinery_client/async_operations.py": python_operations(document, awaited=True),
        "joinery_client/client.py": python_client(document),
        "joinery_client/events.py": python_events(document),
        "joinery_client/operations.py": python_operations(document, awaited=False),
        "joinery_client/py.typed": "",
        "joinery_client/types.py": python_types(document),
    }
    for file in files("entrypoints.clients.python.runtime").iterdir():
        if file.name.endswith(".py"):
            made[f"joinery_client/runtime/{file.name}"] = file.read_text("utf-8")
    return dict(sorted(made.items()))
