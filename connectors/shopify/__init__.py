"""Connectors for Shopify shops: one for the public list of products, and one for the Admin API."""

from connectors.sdk.hooks import hookimpl
from connectors.sdk.spec import ConnectorSpec
from connectors.shopify.admin.connector import SPEC as ADMIN
from connectors.shopify.connector import SPEC


@hookimpl
def joinery_connectors() -> list[ConnectorSpec]:
    """Return the connectors `shopify`, for the public list of products, and `shopify-admin`, for the Admin API."""
    return [SPEC, ADMIN]
