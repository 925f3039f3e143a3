"""Connector for web shops without a feed, which reads the JSON-LD on one page or on all pages of a site."""

from connectors.json_ld.connector import SPEC
from connectors.sdk.hooks import hookimpl
from connectors.sdk.spec import ConnectorSpec


@hookimpl
def joinery_connectors() -> list[ConnectorSpec]:
    """Return the connector for JSON-LD in web pages, which is named `json_ld`."""
    return [SPEC]
