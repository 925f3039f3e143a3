"""Loading of plugins one by one; a broken one is reported and skipped."""

import importlib
import importlib.metadata
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pkgutil import walk_packages
from types import ModuleType
from typing import Any, Literal

import pluggy
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from adapters.pluggy.allowlist import Allowlist, Entry, in_range
from adapters.pluggy.checking import faults
from connectors import sdk
from connectors.sdk import hooks
from connectors.sdk.spec import ConnectorSpec
from connectors.sdk.version import VERSION

NAME = "joinery_sdk"
DISTRIBUTION = "joinery-sdk"
State = Literal["loaded", "broken", "disabled", "not_listed"]


@dataclass(frozen=True, slots=True)
class PluginReport:
    """State of one plugin, for `joinery plugins list|check`, /readyz and the log; with a `reason` unless loaded."""

    plugin: str
    state: State
    reason: str | None = None
    distribution: str | None = None
    version: str | None = None
    connectors: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Provided:
    """Usable connector and its origin."""

    spec: ConnectorSpec
    distribution: str
    version: str
    hosts: frozenset[str]


@dataclass(slots=True)
class Loaded:
    """All usable connectors by name, and one report for each plugin that is listed or installed."""

    connectors: dict[str, Provided] = field(default_factory=dict)
    reports: list[PluginReport] = field(default_factory=list)


class _Broken(Exception):
    """Reason to skip a plugin."""


def load(allowlist: Allowlist, *, product_version: str) -> Loaded:
    """Load the listed and enabled plugins in order, and report unlisted ones. Never raises for a plugin."""
    manager = pluggy.PluginManager(hooks.PROJECT)
    manager.add_hookspecs(hooks)
    loaded = Loaded()
    for entry in allowlist.entries:
        loaded.reports.append(_loaded(manager, entry, loaded, product_version))
    loaded.reports.extend(_unlisted(allowlist))
    return loaded


def _loaded(manager: pluggy.PluginManager, entry: Entry, loaded: Loaded, product_version: str) -> PluginReport:
    facts: dict[str, Any] = {"plugin": entry.label, "hosts": tuple(sorted(entry.hosts))}
    if not entry.enabled:
        return PluginReport(**facts, state="disabled", reason="disabled in plugins.toml")
    try:
        source = _source(entry, product_version)
        facts |= {"distribution": source.distribution, "version": source.version}
        names: list[str] = []
        for name, find in source.modules.items():
            specs = _offered(manager, name, find)
            names.extend(_taken(loaded, source, specs, entry.hosts))
    except _Broken as broken:
        return PluginReport(**facts, state="broken", reason=str(broken))
    return PluginReport(**facts, state="loaded", connectors=tuple(names))


@dataclass(frozen=True, slots=True)
class _Source:
    """Modules of a plugin. `modules` maps a plugin's name to the function that imports it."""

    distribution: str
    version: str
    modules: Mapping[str, Callable[[], Any]]


def _source(entry: Entry, product_version: str) -> _Source:
    if entry.module is not None:
        module = entry.module
        return _Source("joinery", product_version, {module: lambda: importlib.import_module(module)})
    name = entry.distribution or ""
    try:
        found = importlib.metadata.distribution(name)
        version = found.version
        points = [point for point in found.entry_points if point.group == hooks.ENTRY_POINT_GROUP]
        missing_range = lacking(found.requires or ())
    except importlib.metadata.PackageNotFoundError:
        raise _Broken("the distribution is not installed") from None
    except Exception as error:
        raise _Broken(f"its metadata cannot be read ({type(error).__name__})") from None
    if not in_range(version, entry.version):
        raise _Broken(f"version {version} is installed; plugins.toml allows {entry.version}")
    if not points:
        raise _Broken(f"it has no entry point in the group {hooks.ENTRY_POINT_GROUP}")
    if missing_range is not None:
        raise _Broken(f"it needs {DISTRIBUTION} {missing_range}; this Joinery has {VERSION}")
    provide()
    return _Source(name, version, {f"{name}:{point.name}": point.load for point in points})


def _offered(manager: pluggy.PluginManager, name: str, find: Callable[[], Any]) -> list[ConnectorSpec]:
    """Return the valid descriptions from one plugin's hook. Raises _Broken."""
    try:
        plugin = find()
    except (Exception, SystemExit) as error:
        raise _Broken(f"it cannot be imported: {_summary(error)}") from None
    try:
        manager.register(plugin, name)
    except Exception as error:
        raise _Broken(f"it cannot be registered: {_summary(error)}") from None
    try:
        manager.check_pending()
        return _called(manager, plugin)
    except pluggy.PluginValidationError as error:
        manager.unregister(plugin)
        raise _Broken(f"its hook is wrong: {_summary(error)}") from None
    except _Broken:
        manager.unregister(plugin)
        raise


def _called(manager: pluggy.PluginManager, plugin: ModuleType) -> list[ConnectorSpec]:
    others = [other for other in manager.get_plugins() if other is not plugin]
    try:
        answers = manager.subset_hook_caller("joinery_connectors", others)()
    except (Exception, SystemExit) as error:
        raise _Broken(f"its hook failed: {_summary(error)}") from None
    if not answers:
        raise _Broken("it has no hook joinery_connectors marked with joinery_sdk.hookimpl")
    specs = answers[0]
    if not isinstance(specs, list) or not specs:
        raise _Broken("its hook does not return a list of ConnectorSpec")
    for spec in specs:
        wrong = faults(spec)
        if wrong:
            raise _Broken(f"connector {getattr(spec, 'name', '?')!r}: {'; '.join(wrong)}")
    return specs


def _taken(loaded: Loaded, source: _Source, specs: list[ConnectorSpec], hosts: frozenset[str]) -> list[str]:
    """Add all connectors of a plugin, or none if a name is in use. Raises _Broken."""
    for at, spec in enumerate(specs):
        other = loaded.connectors.get(spec.name)
        if other is not None:
            raise _Broken(
                f"connector {spec.name!r} is provided by {other.distribution} {other.version} already, "
                f"and by {source.distribution} {source.version}"
            )
        if spec.name in {earlier.name for earlier in specs[:at]}:
            raise _Broken(f"connector {spec.name!r} is described twice by {source.distribution}")
    for spec in specs:
        loaded.connectors[spec.name] = Provided(spec, source.distribution, source.version, hosts)
    return [spec.name for spec in specs]


def _unlisted(allowlist: Allowlist) -> list[PluginReport]:
    """Return reports on installed plugins that are not listed; they are never imported."""
    reports: dict[str, PluginReport] = {}
    for point in importlib.metadata.entry_points(group=hooks.ENTRY_POINT_GROUP):
        dist = point.dist
        if dist is None or allowlist.named(dist.name):
            continue
        reports[dist.name] = PluginReport(
            plugin=dist.name, state="not_listed", reason="not listed in plugins.toml",
            distribution=dist.name, version=dist.version,
        )  # fmt: skip
    return [reports[name] for name in sorted(reports)]


def _summary(error: BaseException) -> str:
    text = " ".join(str(error).split())[:300]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


# Plugins import the kit as `joinery_sdk`. The name maps to the modules of connectors.sdk, so that there is one set of classes. The
# distribution joinery-sdk is built from the same folder, for authors without Joinery. If it is installed with Joinery, its copy is
# ignored; otherwise a plugin would raise and return classes that the host does not know.


def provide() -> None:
    """Map every import of `joinery_sdk` to the kit's own modules, and drop another copy that was imported before."""
    for name in [name for name in sys.modules if name.startswith(f"{NAME}.")]:
        del sys.modules[name]
    sys.modules[NAME] = sdk
    for module in walk_packages(sdk.__path__, f"{sdk.__name__}."):
        sys.modules[NAME + module.name.removeprefix(sdk.__name__)] = importlib.import_module(module.name)


def lacking(requirements: Iterable[str]) -> str | None:
    """Return the range of joinery-sdk that a distribution requires if this kit is not in it, else None.

    Args:
        requirements: Those of its metadata. Requirements of an extra or a platform are ignored.

    """
    for requirement in map(Requirement, requirements):
        is_kit = canonicalize_name(requirement.name) == DISTRIBUTION and requirement.marker is None
        if is_kit and not in_range(VERSION, requirement.specifier):
            return str(requirement.specifier)
    return None
