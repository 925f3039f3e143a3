"""List of all areas in the order of the documentation."""

from importlib import import_module
from typing import Final

from entrypoints.operations.operation import Area

_MODULES = (  # to add an area, add its module
    "sources",
    "runs",
    "uploads",
    "probes",
    "checks",
    "mappings",
    "mail",
    "changes",
    "catalogue",
    "matching",
    "publishing",
    "media",
    "exports",
    "webhooks",
    "notifications",
    "usage",
    "billing",
    "audit",
    "request_logs",
    "orgs",
    "platform",
    "assistant",
    "agents",
    "proposals",
    "agreements",
    "demand",
    "vendor_stats",
    "brand",
    "vendor_directory",
)
AREAS: Final[tuple[Area, ...]] = tuple(import_module(f"entrypoints.areas.{module}").AREA for module in _MODULES)
