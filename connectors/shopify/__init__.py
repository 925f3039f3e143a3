"""Connectors for Shopify shops, by the public product list and by the Admin API."""

from connectors.sdk.hooks import hookimpl
from connectors.sdk.spec import ConnectorSpec
from connectors.shopify.admin.connector import SPEC as ADMIN
from connectors.shopify.connector import SPEC


@hookimpl
def joinery_connectors() -> list[ConnectorSpec]:
    """Return the connectors `shopify`, for the public list, and `shopify-admin`."""
    return [SPEC, ADMIN]
