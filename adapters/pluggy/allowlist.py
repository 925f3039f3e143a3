"""Parser of plugins.toml, the operator's list of permitted plugins. Other plugins are never imported."""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_KEYS = frozenset({"distribution", "module", "version", "enabled", "hosts"})
_EVERY_HOST = frozenset({"*"})
_ANY_VERSION = SpecifierSet()


class AllowlistError(Exception):
    """Error in plugins.toml. The message states the entry and the reason."""


@dataclass(frozen=True, slots=True)
class AllowlistEntry:
    """Permitted plugin, which is either a built-in module (`connectors.csv`) or an installed distribution.

    `version` is the range of permitted versions of the distribution. `hosts` are the hosts that the plugin's connectors
    may reach (`api.acme.example`, `*.acme.example`, `*` for any public host).
    """

    module: str | None = None
    distribution: str | None = None
    version: SpecifierSet = _ANY_VERSION
    enabled: bool = True
    hosts: frozenset[str] = _EVERY_HOST

    @property
    def label(self) -> str:
        """Name of the plugin in reports, which is the name of its module or distribution."""
        return self.module or self.distribution or ""


@dataclass(frozen=True, slots=True)
class Allowlist:
    """Permitted plugins, in the order in which they are loaded."""

    entries: tuple[AllowlistEntry, ...]

    def is_listed(self, distribution: str) -> bool:
        """Return whether the list contains a distribution, enabled or disabled."""
        names = {canonicalize_name(entry.distribution) for entry in self.entries if entry.distribution}
        return canonicalize_name(distribution) in names


_BUILT_IN = ("csv", "shopify", "api", "woocommerce", "bigcommerce", "json_ld")
BUILT_IN = Allowlist(tuple(AllowlistEntry(module=f"connectors.{name}") for name in _BUILT_IN))
"""Permitted plugins if there is no plugins.toml: all built-in modules."""


def read_allowlist(path: Path) -> Allowlist:
    """Read plugins.toml; return BUILT_IN if the file does not exist. Raises AllowlistError."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return BUILT_IN
    except (OSError, UnicodeDecodeError):
        raise AllowlistError(f"{path.name} is unreadable") from None
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise AllowlistError(f"{path.name} is not TOML: {error}") from None
    rows = tables.pop("plugin", [])
    if tables or not isinstance(rows, list):
        raise AllowlistError(f"{path.name} must contain only tables with the heading [[plugin]]")
    return Allowlist(tuple(_parse_entry(row, f"{path.name}, [[plugin]] {at}") for at, row in enumerate(rows, start=1)))


def _parse_entry(row: Any, subject: str) -> AllowlistEntry:
    if not isinstance(row, dict):
        raise AllowlistError(f"{subject}: must be a table")
    if unknown := row.keys() - _KEYS:
        raise AllowlistError(f"{subject}: unknown key {', '.join(sorted(unknown))}")
    module, distribution = _parse_origin(row, subject)
    enabled = row.get("enabled", True)
    try:
        version = SpecifierSet(str(row.get("version", "")))  # values of other types are no valid range as text either
    except InvalidSpecifier:
        raise AllowlistError(f'{subject}: version must be a range such as ">=1.2,<2"') from None
    if not isinstance(enabled, bool):
        raise AllowlistError(f"{subject}: enabled must be true or false")
    return AllowlistEntry(
        module, distribution, version, enabled, _parse_hosts(row.get("hosts"), subject, is_built_in=module is not None)
    )


def _parse_origin(row: dict[str, Any], subject: str) -> tuple[str | None, str | None]:
    module, distribution = row.get("module"), row.get("distribution")
    if (module is None) == (distribution is None):
        raise AllowlistError(f"{subject}: set either module or distribution, not both")
    if module is not None and not (isinstance(module, str) and module.startswith("connectors.")):
        raise AllowlistError(f'{subject}: module must be a built-in module, whose name starts with "connectors."')
    if distribution is not None and not (isinstance(distribution, str) and _NAME.fullmatch(distribution)):
        raise AllowlistError(f"{subject}: distribution is not a valid name")
    return module, distribution


def _parse_hosts(hosts: Any, subject: str, *, is_built_in: bool) -> frozenset[str]:
    if hosts is None:
        if is_built_in:
            return _EVERY_HOST
        raise AllowlistError(
            f'{subject}: hosts must list the hosts that the connectors may reach; ["*"] permits any public host'
        )
    if not isinstance(hosts, list) or not all(isinstance(host, str) and host for host in hosts):
        raise AllowlistError(f"{subject}: hosts must be a list of host names")
    return frozenset(host.lower() for host in hosts)


def is_in_range(version: str, permitted_range: SpecifierSet) -> bool:
    """Return whether a version is in the permitted range (PEP 440).

    An invalid version is permitted only if `permitted_range` is empty, which permits all versions.
    """
    try:
        return permitted_range.contains(version, prereleases=True)
    except InvalidVersion:
        return not permitted_range
