"""Where a source's credentials may go: the connector, and the origins that its settings name (docs/conventions.md#source)."""

import json
from collections.abc import Collection, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

_PORTS: Final = {"http": 80, "https": 443}


def origin(address: str) -> str:
    """Scheme, host and port of an address (RFC 6454), the usual port written out; what is no address stands as it is."""
    try:
        parts = urlsplit(address)
        port = parts.port or _PORTS[parts.scheme]
    except (ValueError, KeyError):
        return address
    return f"{parts.scheme}://{parts.hostname}:{port}" if parts.hostname else address


def destination(
    connector: str, config: Mapping[str, Any], addresses: Collection[str], harmless: Collection[str]
) -> str:
    """What credentials are bound to, as a text that differs when they would go elsewhere.

    Of the settings that are `addresses` only their origins count, `harmless` ones not at all, all others as they are:
    nothing is known of what they decide.
    """
    origins = {origin(str(config[name])) for name in addresses if name in config}
    others = {name: value for name, value in config.items() if name not in addresses and name not in harmless}
    bound = {"connector": connector, "origins": sorted(origins), "settings": others}
    return json.dumps(bound, sort_keys=True, separators=(",", ":"), default=float)
