"""Shops on Shopify, read from the list of products that every shop publishes."""

from connectors.sdk.hooks import hookimpl
from connectors.sdk.spec import ConnectorSpec
from connectors.shopify.connector import SPEC


@hookimpl
def joinery_connectors() -> list[ConnectorSpec]:
    """The connector `shopify`."""
    return [SPEC]
