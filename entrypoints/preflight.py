"""Checks before a command starts: installed packages, and the limit of open files."""

import contextlib
import importlib.util
import resource
from pathlib import Path

from entrypoints.errors import OperatorError

PACKAGES = ("domain", "ports", "adapters", "connectors", "entrypoints")


class PreflightError(OperatorError):
    """A foreign package shadows one of Joinery's."""


def refuse_foreign_packages() -> None:
    """Check that all of Joinery's packages are next to this one, because other packages may have the same names.

    Raises PreflightError with the name of the foreign package.
    """
    home = Path(__file__).resolve().parent.parent
    for name in PACKAGES:
        spec = importlib.util.find_spec(name)
        origin = Path(spec.origin).resolve() if spec and spec.origin else None
        if origin is None or origin.parent.parent != home:
            raise PreflightError(
                f"The package {name!r} at {origin} is not Joinery's. Uninstall its distribution, or use a virtual environment."
            )


def allow_many_files() -> None:
    """Raise the limit of open files to the maximum, because every follower and receiver needs a socket."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):  # macOS rejects "unlimited"
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
