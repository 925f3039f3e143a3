"""Common settings of sources (docs/conventions.md#source), as JSON Schema for connectors to extend."""

from collections.abc import Mapping
from typing import Any

URL: Mapping[str, Any] = {
    "type": "string",
    "format": "uri",
    "pattern": "^https?://",
    "x-words": "a URL that starts with http:// or https://",
    "maxLength": 2048,
}

COMMON: Mapping[str, Any] = {
    "platform": {
        "enum": ["shopify", "woocommerce", "bigcommerce", "magento", "squarespace", "custom"],
        "description": "The shop's platform.",
    },
    "format": {
        "enum": ["csv", "tsv", "xlsx", "json", "jsonl", "xml", "google_merchant", "json_ld"],
        "description": "The feed's format, if its content is ambiguous.",
    },
    "currency": {
        "type": "string",
        "pattern": "^[a-z]{3}$",
        "x-words": "three lower-case letters (ISO 4217), such as usd",
        "description": "The default currency of prices (ISO 4217, lower case).",
    },
    "decimal": {"enum": ["dot", "comma", "auto"], "description": "The decimal mark of numbers in texts."},
    "role": {
        "enum": ["supplier", "brand", "retailer", "warehouse"],
        "description": "Whether the feed comes from a supplier, a brand, a retailer or a warehouse.",
    },
    "warehouse": {
        "type": "string",
        "minLength": 1,
        "maxLength": 200,
        "description": "The default location of stock and prices.",
    },
    "price_code": {
        "type": "string",
        "minLength": 1,
        "maxLength": 200,
        "description": "Text in the header of the price column to use, if the price list has several.",
    },
    "media_base_url": {
        "type": "string",
        "format": "uri",
        "pattern": r"^https?://[^?#\s]+$",
        "x-words": "a URL that starts with http:// or https://, without query, fragment and spaces",
        "maxLength": 1024,
        "description": "The base URL of images that the feed lists by file name.",
    },
    "inbound": {
        "type": "object",
        "description": "Senders whose mail is accepted.",
        "properties": {"senders": {"type": "array", "items": {"type": "string", "maxLength": 320}, "maxItems": 100}},
        "additionalProperties": False,
    },
}

NEUTRAL_SETTINGS = frozenset(COMMON)
"""Names of the common settings, none of which affects where data is fetched (ConnectorSpec.neutral_settings)."""


def build_config_schema(connector_settings: Mapping[str, Any], required: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the JSON Schema of a connector's settings: the common ones and the connector's `connector_settings`, and no others."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {**COMMON, **connector_settings},
        "required": list(required),
        "additionalProperties": False,
    }
