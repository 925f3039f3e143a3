"""Refuses to start where another distribution's packages stand in for ours (their names are plain words)."""

import importlib.util
from pathlib import Path

PACKAGES = ("domain", "ports", "adapters", "connectors", "entrypoints")


class PreflightError(Exception):
    """A foreign package shadows one of ours."""


def refuse_foreign_packages() -> None:
    """Every package of ours must lie beside this one. Raises PreflightError naming the stranger."""
    home = Path(__file__).resolve().parent.parent
    for name in PACKAGES:
        spec = importlib.util.find_spec(name)
        origin = Path(spec.origin).resolve() if spec and spec.origin else None
        if origin is None or origin.parent.parent != home:
            raise PreflightError(
                f"The package {name!r} is not Joinery's but {origin}; uninstall what brought it, or use a virtual environment."
            )
