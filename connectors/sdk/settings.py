"""Common settings of sources (docs/conventions.md#source), as JSON Schema for connectors to extend."""

from collections.abc import Mapping
from typing import Any

URL: Mapping[str, Any] = {
    "type": "string",
    "format": "uri",
    "pattern": "^https?://",
    "x-words": "an address that starts with http:// or https://",
    "maxLength": 2048,
}

COMMON: Mapping[str, Any] = {
    "platform": {
        "enum": ["shopify", "woocommerce", "bigcommerce", "magento", "squarespace", "custom"],
        "description": "What the shop runs on.",
    },
    "format": {
        "enum": ["csv", "tsv", "xlsx", "json", "jsonl", "xml", "google_merchant", "json_ld"],
        "description": "What the feed is, where its content leaves that open.",
    },
    "currency": {
        "type": "string",
        "pattern": "^[a-z]{3}$",
        "x-words": "three lower-case letters (ISO 4217), such as usd",
        "description": "The currency of prices that name none (ISO 4217, lower case).",
    },
    "decimal": {"enum": ["dot", "comma", "auto"], "description": "The decimal mark of numbers in texts."},
    "role": {"enum": ["supplier", "brand", "retailer", "warehouse"], "description": "Who states the feed."},
    "warehouse": {
        "type": "string",
        "minLength": 1,
        "maxLength": 200,
        "description": "The place of stock and prices that name none.",
    },
    "price_code": {
        "type": "string",
        "minLength": 1,
        "maxLength": 200,
        "description": "Which price column is taken, of a price list with several.",
    },
    "media_base_url": {
        "type": "string",
        "format": "uri",
        "pattern": r"^https?://[^?#\s]+$",
        "x-words": "an address that starts with http:// or https:// and has no query, no fragment and no spaces",
        "maxLength": 1024,
        "description": "The folder in which pictures lie that the feed gives by their file names alone.",
    },
    "inbound": {
        "type": "object",
        "description": "Whose mail is taken.",
        "properties": {"senders": {"type": "array", "items": {"type": "string", "maxLength": 320}, "maxItems": 100}},
        "additionalProperties": False,
    },
}

HARMLESS = frozenset(COMMON)
"""The common settings say how a feed is read, never where it is asked for: for ConnectorSpec.harmless."""


def config_schema(own: Mapping[str, Any], required: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return a closed JSON Schema (Draft 2020-12) of the common settings and a connector's own ones."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {**COMMON, **own},
        "required": list(required),
        "additionalProperties": False,
    }
