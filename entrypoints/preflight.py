"""Checks before a command starts: installed packages, and the limit of open files."""

import contextlib
import importlib.util
import resource
from pathlib import Path

from entrypoints.errors import OperatorError

PACKAGES = ("domain", "ports", "adapters", "connectors", "entrypoints")
"""Joinery's top-level packages."""


class PreflightError(OperatorError):
    """Conflict of package names: a name in PACKAGES leads to a package of another distribution."""


def check_packages() -> None:
    """Raise PreflightError if a package in PACKAGES is missing, or would be imported from another distribution."""
    home = Path(__file__).resolve().parent.parent
    for name in PACKAGES:
        spec = importlib.util.find_spec(name)
        origin = Path(spec.origin).resolve() if spec and spec.origin else None
        if origin is None or origin.parent.parent != home:
            raise PreflightError(
                f"The package {name!r} at {origin} is not Joinery's. Uninstall its distribution, or use a virtual environment."
            )


def raise_file_limit() -> None:
    """Raise this process's limit of open files to the permitted maximum."""
    # each event stream and each delivery needs a socket
    _, maximum = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):  # macOS rejects "unlimited"
        resource.setrlimit(resource.RLIMIT_NOFILE, (maximum, maximum))
