"""Shops on WooCommerce, read by its REST API (wc/v3)."""

from connectors.sdk.hooks import hookimpl
from connectors.sdk.spec import ConnectorSpec
from connectors.woocommerce.connector import SPEC


@hookimpl
def joinery_connectors() -> list[ConnectorSpec]:
    """The connector `woocommerce`."""
    return [SPEC]
