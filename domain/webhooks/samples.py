"""Sample events for trying out receivers in test mode (docs/conventions.md#event-types)."""

import tomllib
from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import cache
from importlib.resources import files
from typing import Any

from domain.catalogue import categories, differences
from domain.events.model import TYPES, ChangedField, Event, FieldChange, Provenance
from domain.kernel.ids import new_id

TYPES_WITH_SAMPLE = tuple(sorted(name for name, entry in TYPES.items() if entry.has_sample))
"""Event types for which there is a sample."""


@cache
def _load_samples() -> Mapping[str, Any]:
    entry = tomllib.loads(files("domain.webhooks").joinpath("samples.toml").read_text("utf-8"))
    table = next(category for category in categories.category_by_id().values() if category.slug == "dining-tables")
    entry["objects"]["product"] |= {"category_path": list(table.path), "category": table.id}
    return entry


def create_sample(type: str, catalogue: str, now: datetime) -> Event:
    """Return a sample event of a type in TYPES_WITH_SAMPLE, with fictitious objects of the catalogue."""
    noun, entry = type.partition(".")[0], _load_samples()["types"][type]
    prefixes = {"product": "prod", "variant": "var", "offer": "ofr", "source": "src", "run": "run"}
    ids = {"catalogue": catalogue, **{name: new_id(prefix) for name, prefix in prefixes.items()}}
    data = {"id": ids[noun]}
    for name, value in entry.get("data", {}).items():
        is_id = isinstance(value, str) and value.startswith("@")
        data[name] = (ids.get(value[1:]) or new_id(value[1:])) if is_id else value
    fields: list[ChangedField] = [FieldChange(*change) for change in entry.get("fields", ())]
    if entry.get("all"):
        fields = differences.list_created_fields(_load_samples()["objects"][noun], "" if noun == "offer" else "data.")
    event = Event(type, ids[noun], entry["version"], data, fields=fields, catalogue=catalogue)
    if noun != "catalogue":
        event.source, event.correlation_id = ids["source"], ids["run"]
    if fields and noun != "source":
        event.provenance = Provenance(ids["source"], "mapped", 1.0, now - timedelta(seconds=2))
    if type == "offer.changed":
        event.facets = differences.find_affected_facets(fields)
    return event
