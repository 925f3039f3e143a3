"""Which events an endpoint wants (docs/conventions.md#subscription)."""

from typing import Final

from domain.events.model import TYPES, LoggedEvent
from domain.webhooks.model import EVERY_TYPE, SUBSCRIBABLE, Endpoint

FILED: Final = ("product.", "variant.", "offer.")
OF_A_SOURCE: Final = ("offer.", "source.")
ON_REQUEST: Final = frozenset(name for name, entry in TYPES.items() if not entry.channels)
WEBHOOKS_ONLY: Final = frozenset(name for name in SUBSCRIBABLE if "feed" not in TYPES[name].channels)


def matches_type(endpoint: Endpoint, type: str) -> bool:
    """Whether the endpoint subscribes to the type; `*` is every type but those sent on request alone."""
    if EVERY_TYPE in endpoint.event_types:
        return type not in ON_REQUEST
    return type in endpoint.event_types


def narrowed_by_category(endpoint: Endpoint, event: LoggedEvent) -> bool:
    """Whether `matches` looks at where the event's product is filed."""
    return bool(endpoint.filters.categories) and event.type.startswith(FILED)


def matches(endpoint: Endpoint, event: LoggedEvent, filed: bool) -> bool:
    """Whether the event goes to the endpoint. `filed`: its product is filed under or below a wanted category.

    Sources narrow offers and events of sources themselves; categories narrow products, variants and offers;
    catalogues narrow everything that has to do with one. Types that only webhooks carry are narrowed by type alone.
    """
    if not matches_type(endpoint, event.type):
        return False
    if event.type in WEBHOOKS_ONLY:
        return True
    filters = endpoint.filters
    if filters.catalogues and event.catalogue not in filters.catalogues:
        return False
    if filters.sources and event.type.startswith(OF_A_SOURCE) and event.source not in filters.sources:
        return False
    return filed or not narrowed_by_category(endpoint, event)
