"""The data of a source without IDs and times, which is equal for sources with equal files."""

import json
from typing import Any

from tests.flows.service_processes import ServiceProcesses

_OF_THE_MOMENT = frozenset(
    "id source catalogue product variant created_at updated_at observed_at withdrawn_at correlation_id time".split()
)
_PRODUCTS = """
SELECT p.key, p.status, p.version, p.visibility, p.brand_key, convert_from(p.data, 'UTF8'), convert_from(d.body, 'UTF8'),
       (SELECT array_agg(term ORDER BY term) FROM product_terms t WHERE t.product = p.id)
FROM products p LEFT JOIN product_documents d ON d.product = p.id WHERE p.source = %(source)s ORDER BY p.key
"""
_VARIANTS = """
SELECT v.key, p.key, v.sku_code, v.status, v.version, convert_from(v.data, 'UTF8')
FROM variants v JOIN products p ON p.id = v.product WHERE v.source = %(source)s ORDER BY v.key
"""
_OFFERS = """
SELECT v.key, p.key, o.location, o.currency, o.cost, o.price, o.quantity, o.availability, o.version, o.stated,
       o.withdrawn_at IS NOT NULL
FROM offers o JOIN variants v ON v.id = o.variant JOIN products p ON p.id = o.product
WHERE o.source = %(source)s ORDER BY v.key, o.location
"""
_MARKS = """
SELECT stream, slot, key, encode(fingerprint, 'hex'), absent_since IS NOT NULL, absent_runs
FROM row_fingerprints WHERE source = %(source)s ORDER BY stream, key
"""
_EVENTS = """
SELECT coalesce('product ' || p.key, 'variant ' || v.key, 'offer ' || ov.key, e.subject), e.type, e.version,
       convert_from(e.body, 'UTF8')
FROM events e LEFT JOIN products p ON p.id = e.subject LEFT JOIN variants v ON v.id = e.subject
LEFT JOIN offers o ON o.id = e.subject LEFT JOIN variants ov ON ov.id = o.variant
WHERE e.source = %(source)s ORDER BY e.position
"""


def load_state(services: ServiceProcesses, source: str) -> dict[str, Any]:
    """Return all rows of the source."""
    return {
        "products": [
            _remove_source(_parse_columns(row, 5, 6), source) for row in services.fetch_rows(_PRODUCTS, source=source)
        ],
        "variants": [_parse_columns(row, 5) for row in services.fetch_rows(_VARIANTS, source=source)],
        "offers": services.fetch_rows(_OFFERS, source=source),
        "row_fingerprints": services.fetch_rows(_MARKS, source=source),
        "events": load_events(services, source),
    }


def load_events(services: ServiceProcesses, source: str) -> dict[str, list[Any]]:
    """Return the events of each subject in order."""
    found: dict[str, list[Any]] = {}
    for subject, kind, version, body in services.fetch_rows(_EVENTS, source=source):
        data = _remove_times(json.loads(body)["data"])
        data["fields"] = [field for field in data.get("fields", []) if field["path"] != "withdrawn_at"]
        found.setdefault(subject, []).append((kind, version, data))
    return found


def _remove_source(row: list[Any], source: str) -> list[Any]:
    """Return the row without the source's ID, which the terms of category paths contain."""
    return [
        [one.replace(source, "") if isinstance(one, str) else one for one in value]
        if isinstance(value, list)
        else value
        for value in row
    ]


def _parse_columns(row: tuple[Any, ...], *columns: int) -> list[Any]:
    """Return the row with the columns as JSON without times."""
    return [_remove_times(json.loads(value)) if at in columns and value else value for at, value in enumerate(row)]


def _remove_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _remove_times(entry) for name, entry in value.items() if name not in _OF_THE_MOMENT}
    if isinstance(value, list):
        return sorted((_remove_times(entry) for entry in value), key=lambda entry: json.dumps(entry, sort_keys=True))
    return value
