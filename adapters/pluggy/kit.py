"""Makes the kit importable as `joinery_sdk`, the name that plugins know: the very modules of connectors.sdk, so one set of classes.

The distribution joinery-sdk is built from the same folder, for authors without Joinery. Where it is installed beside Joinery,
its copy is passed over; else what a plugin raises or returns would be of classes that the host does not know.
"""

import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from adapters.pluggy.allowlist import in_range
from connectors.sdk.version import VERSION

NAME = "joinery_sdk"
DISTRIBUTION = "joinery-sdk"
_HOME = "connectors.sdk"


class _Kit(MetaPathFinder, Loader):
    """Finds `joinery_sdk.X` as connectors.sdk.X."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """A spec that loads the kit's own module; None for other names, and for what the kit does not have."""
        if fullname != NAME and not fullname.startswith(f"{NAME}."):
            return None
        found = find_spec(_home(fullname))
        if found is None:
            return None
        return ModuleSpec(fullname, self, is_package=found.submodule_search_locations is not None)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module itself. Importing puts the new spec on it, which exec_module takes off again."""
        module = import_module(_home(spec.name))
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Nothing to run: it has run under its own name."""
        alias = module.__spec__
        assert alias is not None
        module.__spec__ = alias.loader_state


def _home(name: str) -> str:
    return _HOME + name.removeprefix(NAME)


def provide() -> None:
    """Answer every import of `joinery_sdk` from now on with the kit. Another copy that was imported before is forgotten."""
    if not any(isinstance(finder, _Kit) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Kit())
    for name, module in list(sys.modules.items()):
        if (name == NAME or name.startswith(f"{NAME}.")) and module is not sys.modules.get(_home(name)):
            del sys.modules[name]


def lacking(requirements: Iterable[str]) -> str | None:
    """Return the range of joinery-sdk that a distribution needs where the kit lies outside it, else None.

    Args:
        requirements: those of its metadata. What only holds for an extra or a platform is passed over.

    """
    for requirement in map(Requirement, requirements):
        asks = canonicalize_name(requirement.name) == DISTRIBUTION and requirement.marker is None
        if asks and not in_range(VERSION, requirement.specifier):
            return str(requirement.specifier)
    return None
