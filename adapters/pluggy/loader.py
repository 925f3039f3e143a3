"""Loading of plugins. A plugin that cannot be loaded is reported and skipped."""

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

from adapters.pluggy.allowlist import Allowlist, AllowlistEntry, is_in_range
from adapters.pluggy.spec_validation import find_spec_faults
from connectors import sdk
from connectors.sdk import hooks
from connectors.sdk.spec import ConnectorSpec
from connectors.sdk.version import VERSION

SDK_MODULE = "joinery_sdk"
SDK_DISTRIBUTION = "joinery-sdk"
PluginState = Literal["loaded", "broken", "disabled", "not_listed"]


@dataclass(frozen=True, slots=True)
class PluginReport:
    """State of one plugin, for `joinery plugins list|check`, /readyz and the log.

    Attributes:
        plugin: Module or distribution of the plugin.
        state: Whether the plugin is loaded.
        reason: Reason why the plugin is not loaded; None if it is.
        distribution: Distribution that provides the plugin, if known.
        version: Version of the distribution, if known.
        connectors: Names of the connectors that the plugin provides.
        hosts: Hosts that the connectors may reach.
    """

    plugin: str
    state: PluginState
    reason: str | None = None
    distribution: str | None = None
    version: str | None = None
    connectors: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProvidedConnector:
    """Connector of a loaded plugin, with the plugin's distribution and the hosts that the connector may reach."""

    spec: ConnectorSpec
    distribution: str
    version: str
    hosts: frozenset[str]


@dataclass(slots=True)
class LoadedPlugins:
    """Connectors of all loaded plugins by name, and reports of all plugins in plugins.toml and other installed ones."""

    connectors: dict[str, ProvidedConnector] = field(default_factory=dict)
    reports: list[PluginReport] = field(default_factory=list)


class _BrokenPlugin(Exception):
    """Fault of a plugin; the message is the reason why the plugin is not loaded."""


def load_plugins(allowlist: Allowlist, *, release_version: str) -> LoadedPlugins:
    """Load the plugins that plugins.toml lists and enables, in order; report all plugins.

    A fault of a plugin is reported, not raised. `release_version` is the version of Joinery.
    """
    manager = pluggy.PluginManager(hooks.PROJECT)
    manager.add_hookspecs(hooks)
    loaded = LoadedPlugins()
    for entry in allowlist.entries:
        loaded.reports.append(_load_entry(manager, entry, loaded, release_version))
    loaded.reports.extend(_report_unlisted(allowlist))
    return loaded


def _load_entry(
    manager: pluggy.PluginManager, entry: AllowlistEntry, loaded: LoadedPlugins, release_version: str
) -> PluginReport:
    facts: dict[str, Any] = {"plugin": entry.label, "hosts": tuple(sorted(entry.hosts))}
    if not entry.enabled:
        return PluginReport(**facts, state="disabled", reason="disabled in plugins.toml")
    try:
        plugin = _find_modules(entry, release_version)
        facts |= {"distribution": plugin.distribution, "version": plugin.version}
        names: list[str] = []
        for name, import_module in plugin.modules.items():
            specs = _collect_specs(manager, name, import_module)
            names.extend(_add_connectors(loaded, plugin, specs, entry.hosts))
    except _BrokenPlugin as broken:
        return PluginReport(**facts, state="broken", reason=str(broken))
    return PluginReport(**facts, state="loaded", connectors=tuple(names))


@dataclass(frozen=True, slots=True)
class _PluginModules:
    """Modules of one plugin, with the plugin's distribution.

    `modules` are functions that import a module, by the name under which the module is registered.
    """

    distribution: str
    version: str
    modules: Mapping[str, Callable[[], Any]]


def _find_modules(entry: AllowlistEntry, release_version: str) -> _PluginModules:
    if entry.module is not None:
        module = entry.module
        return _PluginModules("joinery", release_version, {module: lambda: importlib.import_module(module)})
    name = entry.distribution or ""
    try:
        found = importlib.metadata.distribution(name)
        version = found.version
        points = [point for point in found.entry_points if point.group == hooks.ENTRY_POINT_GROUP]
        missing_range = find_unmet_range(found.requires or ())
    except importlib.metadata.PackageNotFoundError:
        raise _BrokenPlugin("the distribution is not installed") from None
    except Exception as error:
        raise _BrokenPlugin(f"the distribution's metadata cannot be read ({type(error).__name__})") from None
    if not is_in_range(version, entry.version):
        raise _BrokenPlugin(f"version {version} is installed; plugins.toml allows {entry.version}")
    if not points:
        raise _BrokenPlugin(f"the distribution has no entry point in the group {hooks.ENTRY_POINT_GROUP}")
    if missing_range is not None:
        raise _BrokenPlugin(f"the plugin requires {SDK_DISTRIBUTION} {missing_range}; this Joinery has {VERSION}")
    install_sdk_alias()
    return _PluginModules(name, version, {f"{name}:{point.name}": point.load for point in points})


def _collect_specs(manager: pluggy.PluginManager, name: str, import_module: Callable[[], Any]) -> list[ConnectorSpec]:
    """Import a module of a plugin; return the connector descriptions of its hook. Raises _BrokenPlugin."""
    try:
        plugin = import_module()
    except (Exception, SystemExit) as error:
        raise _BrokenPlugin(f"the plugin cannot be imported: {_summarise_error(error)}") from None
    try:
        manager.register(plugin, name)
    except Exception as error:
        raise _BrokenPlugin(f"the plugin cannot be registered: {_summarise_error(error)}") from None
    try:
        manager.check_pending()
        return _call_hook(manager, plugin)
    except pluggy.PluginValidationError as error:
        manager.unregister(plugin)
        raise _BrokenPlugin(f"the hook joinery_connectors is invalid: {_summarise_error(error)}") from None
    except _BrokenPlugin:
        manager.unregister(plugin)
        raise


def _call_hook(manager: pluggy.PluginManager, plugin: ModuleType) -> list[ConnectorSpec]:
    others = [other for other in manager.get_plugins() if other is not plugin]
    try:
        results = manager.subset_hook_caller("joinery_connectors", others)()
    except (Exception, SystemExit) as error:
        raise _BrokenPlugin(f"the hook joinery_connectors failed: {_summarise_error(error)}") from None
    if not results:
        raise _BrokenPlugin("the plugin has no hook joinery_connectors marked with joinery_sdk.hookimpl")
    specs = results[0]
    if not isinstance(specs, list) or not specs:
        raise _BrokenPlugin("the hook joinery_connectors does not return a list of ConnectorSpec")
    for spec in specs:
        faults = find_spec_faults(spec)
        if faults:
            raise _BrokenPlugin(f"connector {getattr(spec, 'name', '?')!r}: {'; '.join(faults)}")
    return specs


def _add_connectors(
    loaded: LoadedPlugins, plugin: _PluginModules, specs: list[ConnectorSpec], hosts: frozenset[str]
) -> list[str]:
    """Add all connectors of a plugin and return their names. Raises _BrokenPlugin if a name is already used."""
    for at, spec in enumerate(specs):
        other = loaded.connectors.get(spec.name)
        if other is not None:
            raise _BrokenPlugin(
                f"connector {spec.name!r} is provided by both {other.distribution} {other.version} "
                f"and {plugin.distribution} {plugin.version}; disable one of these plugins in plugins.toml"
            )
        if spec.name in {earlier.name for earlier in specs[:at]}:
            raise _BrokenPlugin(f"connector {spec.name!r} is defined twice by {plugin.distribution}")
    for spec in specs:
        loaded.connectors[spec.name] = ProvidedConnector(spec, plugin.distribution, plugin.version, hosts)
    return [spec.name for spec in specs]


def _report_unlisted(allowlist: Allowlist) -> list[PluginReport]:
    """Return a report for each installed plugin that plugins.toml does not list. Such a plugin is never imported."""
    reports: dict[str, PluginReport] = {}
    for point in importlib.metadata.entry_points(group=hooks.ENTRY_POINT_GROUP):
        dist = point.dist
        if dist is None or allowlist.is_listed(dist.name):
            continue
        reports[dist.name] = PluginReport(
            plugin=dist.name, state="not_listed", reason="not listed in plugins.toml",
            distribution=dist.name, version=dist.version,
        )  # fmt: skip
    return [reports[name] for name in sorted(reports)]


def _summarise_error(error: BaseException) -> str:
    text = " ".join(str(error).split())[:300]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


# Plugins import the SDK as `joinery_sdk`. The name maps to the modules of connectors.sdk, so that there is one set of
# classes. The distribution joinery-sdk is built from the same folder, for authors without Joinery. If it is installed
# with Joinery, its copy is ignored; otherwise a plugin would raise and return classes that the host does not know.


def install_sdk_alias() -> None:
    """Make imports of `joinery_sdk` return the modules of connectors.sdk, even if another copy is already imported."""
    for name in [name for name in sys.modules if name.startswith(f"{SDK_MODULE}.")]:
        del sys.modules[name]
    sys.modules[SDK_MODULE] = sdk
    for module in walk_packages(sdk.__path__, f"{sdk.__name__}."):
        sys.modules[SDK_MODULE + module.name.removeprefix(sdk.__name__)] = importlib.import_module(module.name)


def find_unmet_range(requirements: Iterable[str]) -> str | None:
    """Return the range of joinery-sdk that a distribution requires, if it excludes this version of the SDK; else None.

    Args:
        requirements: Requirements in the distribution's metadata. A requirement with a marker, such as for an extra or
            a platform, is ignored.
    """
    for requirement in map(Requirement, requirements):
        is_sdk = canonicalize_name(requirement.name) == SDK_DISTRIBUTION and requirement.marker is None
        if is_sdk and not is_in_range(VERSION, requirement.specifier):
            return str(requirement.specifier)
    return None
