"""What is looked after before anything starts: whose packages these are, and how many files may be open."""

import contextlib
import importlib.util
import resource
from pathlib import Path

from entrypoints.errors import OperatorError

PACKAGES = ("domain", "ports", "adapters", "connectors", "entrypoints")


class PreflightError(OperatorError):
    """A foreign package shadows one of ours."""


def refuse_foreign_packages() -> None:
    """Every package of ours must lie beside this one: their names are plain words, which others take too.

    Raises PreflightError naming the stranger.
    """
    home = Path(__file__).resolve().parent.parent
    for name in PACKAGES:
        spec = importlib.util.find_spec(name)
        origin = Path(spec.origin).resolve() if spec and spec.origin else None
        if origin is None or origin.parent.parent != home:
            raise PreflightError(
                f"The package {name!r} is not Joinery's but {origin}; uninstall what brought it, or use a virtual environment."
            )


def allow_many_files() -> None:
    """Every follower and every receiver is a socket, and shells allow 1,024 files: ask for as many as may be had."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):  # macOS takes no "unlimited" here
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
