"""The settings every source has (docs/conventions.md#source), as JSON Schema for connectors to build on."""

from collections.abc import Mapping
from typing import Any

URL: Mapping[str, Any] = {"type": "string", "format": "uri", "pattern": "^https?://", "maxLength": 2048}

COMMON: Mapping[str, Any] = {
    "platform": {"enum": ["shopify", "woocommerce", "bigcommerce", "magento", "squarespace", "custom"]},
    "format": {"enum": ["csv", "tsv", "xlsx", "json", "jsonl", "xml", "google_merchant", "json_ld"]},
    "currency": {"type": "string", "pattern": "^[a-z]{3}$"},
    "decimal": {"enum": ["dot", "comma", "auto"]},
    "role": {"enum": ["supplier", "brand", "retailer", "warehouse"]},
    "warehouse": {"type": "string", "minLength": 1, "maxLength": 200},
    "price_code": {"type": "string", "minLength": 1, "maxLength": 200},
    "inbound": {
        "type": "object",
        "properties": {"senders": {"type": "array", "items": {"type": "string", "maxLength": 320}, "maxItems": 100}},
        "additionalProperties": False,
    },
}

HARMLESS = frozenset(COMMON)
"""The common settings say how a feed is read, never where it is asked for: for ConnectorSpec.harmless."""


def config_schema(own: Mapping[str, Any], required: tuple[str, ...] = ()) -> dict[str, Any]:
    """A closed JSON Schema (Draft 2020-12) of the common settings and a connector's own ones."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {**COMMON, **own},
        "required": list(required),
        "additionalProperties": False,
    }
