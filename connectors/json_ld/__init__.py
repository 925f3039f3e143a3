"""Connector for web shops without a feed, by the JSON-LD on one page, or on all pages of a sitemap."""

from connectors.json_ld.connector import SPEC
from connectors.sdk.hooks import hookimpl
from connectors.sdk.spec import ConnectorSpec


@hookimpl
def joinery_connectors() -> list[ConnectorSpec]:
    """Return the connector `json_ld`."""
    return [SPEC]
