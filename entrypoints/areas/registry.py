"""The registry of areas, in the order in which they are described: a new area is one line here."""

from typing import Final

from entrypoints.areas import catalogue, changes, orgs, platform, request_logs, runs, sources, uploads, webhooks
from entrypoints.areas.area import Area

AREAS: Final[tuple[Area, ...]] = (
    sources.AREA,
    runs.AREA,
    uploads.AREA,
    changes.AREA,
    catalogue.AREA,
    webhooks.AREA,
    request_logs.AREA,
    orgs.AREA,
    platform.AREA,
)
