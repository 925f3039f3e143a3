"""Parser of plugins.toml, the operator's list of permitted plugins; others are never imported."""

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
    """Invalid plugins.toml; the message states where and why."""


@dataclass(frozen=True, slots=True)
class Entry:
    """Permitted plugin: a built-in module (`connectors.csv`) or an installed distribution.

    `hosts` are the names its connectors may reach (`api.acme.example`, `*.acme.example`, `*` for any public one).
    """

    module: str | None = None
    distribution: str | None = None
    version: SpecifierSet = _ANY_VERSION
    enabled: bool = True
    hosts: frozenset[str] = _EVERY_HOST

    @property
    def label(self) -> str:
        """Name in reports."""
        return self.module or self.distribution or ""


@dataclass(frozen=True, slots=True)
class Allowlist:
    """Permitted plugins, in loading order."""

    entries: tuple[Entry, ...]

    def named(self, distribution: str) -> bool:
        """Return whether a distribution is listed, enabled or not."""
        names = {canonicalize_name(entry.distribution) for entry in self.entries if entry.distribution}
        return canonicalize_name(distribution) in names


_BUILT_IN = ("csv", "shopify", "api", "woocommerce", "bigcommerce", "json_ld")
BUILT_IN = Allowlist(tuple(Entry(module=f"connectors.{name}") for name in _BUILT_IN))
"""Plugins without a plugins.toml."""


def read(path: Path) -> Allowlist:
    """Return the list in the file, or BUILT_IN if the file does not exist. Raises AllowlistError."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return BUILT_IN
    except (OSError, UnicodeDecodeError):
        raise AllowlistError(f"{path.name} cannot be read") from None
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise AllowlistError(f"{path.name} is not TOML: {error}") from None
    rows = tables.pop("plugin", [])
    if tables or not isinstance(rows, list):
        raise AllowlistError(f"{path.name} may contain only [[plugin]] tables")
    return Allowlist(tuple(_entry(row, f"{path.name}, [[plugin]] {at}") for at, row in enumerate(rows, start=1)))


def _entry(row: Any, place: str) -> Entry:
    if not isinstance(row, dict):
        raise AllowlistError(f"{place}: this is not a table")
    if unknown := row.keys() - _KEYS:
        raise AllowlistError(f"{place}: unknown key {', '.join(sorted(unknown))}")
    module, distribution = _origin(row, place)
    enabled = row.get("enabled", True)
    try:
        version = SpecifierSet(str(row.get("version", "")))  # other types give no valid range as text either
    except InvalidSpecifier:
        raise AllowlistError(f'{place}: version is a range such as ">=1.2,<2"') from None
    if not isinstance(enabled, bool):
        raise AllowlistError(f"{place}: enabled is true or false")
    return Entry(module, distribution, version, enabled, _hosts(row.get("hosts"), place, built_in=module is not None))


def _origin(row: dict[str, Any], place: str) -> tuple[str | None, str | None]:
    module, distribution = row.get("module"), row.get("distribution")
    if (module is None) == (distribution is None):
        raise AllowlistError(f"{place}: name either a module or a distribution")
    if module is not None and not (isinstance(module, str) and module.startswith("connectors.")):
        raise AllowlistError(f"{place}: only built-in modules (connectors.…) are named by module")
    if distribution is not None and not (isinstance(distribution, str) and _NAME.fullmatch(distribution)):
        raise AllowlistError(f"{place}: distribution is not a distribution's name")
    return module, distribution


def _hosts(hosts: Any, place: str, *, built_in: bool) -> frozenset[str]:
    if hosts is None:
        if built_in:
            return _EVERY_HOST
        raise AllowlistError(f'{place}: hosts names what its connectors may reach, ["*"] for any public host')
    if not isinstance(hosts, list) or not all(isinstance(host, str) and host for host in hosts):
        raise AllowlistError(f"{place}: hosts is a list of host names")
    return frozenset(host.lower() for host in hosts)


def in_range(version: str, wanted: SpecifierSet) -> bool:
    """Return whether a version is in a range (PEP 440); an invalid version is in the empty range only."""
    try:
        return wanted.contains(version, prereleases=True)
    except InvalidVersion:
        return not wanted
