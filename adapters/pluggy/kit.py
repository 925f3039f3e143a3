"""Makes the kit importable as `joinery_sdk`, the name that plugins know: the very modules of connectors.sdk, so one set of classes.

The distribution joinery-sdk is built from the same folder, for authors without Joinery. Where it is installed beside Joinery,
its copy is passed over; else what a plugin raises or returns would be of classes that the host does not know.
"""

import sys
from collections.abc import Iterable
from importlib import import_module
from pkgutil import walk_packages

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from adapters.pluggy.allowlist import in_range
from connectors import sdk

NAME = "joinery_sdk"
DISTRIBUTION = "joinery-sdk"


def provide() -> None:
    """Answer every import of `joinery_sdk` from now on with the kit's own modules. Another copy that was imported before is forgotten."""
    for name in [name for name in sys.modules if name.startswith(f"{NAME}.")]:
        del sys.modules[name]
    sys.modules[NAME] = sdk
    for module in walk_packages(sdk.__path__, f"{sdk.__name__}."):
        sys.modules[NAME + module.name.removeprefix(sdk.__name__)] = import_module(module.name)


def lacking(requirements: Iterable[str]) -> str | None:
    """Return the range of joinery-sdk that a distribution needs where the kit lies outside it, else None.

    Args:
        requirements: those of its metadata. What only holds for an extra or a platform is passed over.

    """
    for requirement in map(Requirement, requirements):
        asks = canonicalize_name(requirement.name) == DISTRIBUTION and requirement.marker is None
        if asks and not in_range(sdk.VERSION, requirement.specifier):
            return str(requirement.specifier)
    return None
