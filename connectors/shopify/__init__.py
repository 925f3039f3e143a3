"""Shops on Shopify, read from the list of products that every shop publishes."""

from connectors.sdk.hooks import hookimpl
from connectors.sdk.spec import ConnectorSpec
from connectors.shopify.admin.connector import SPEC as ADMIN
from connectors.shopify.connector import SPEC


@hookimpl
def joinery_connectors() -> list[ConnectorSpec]:
    """The connectors `shopify`, for the public list, and `shopify-admin`."""
    return [SPEC, ADMIN]
