"""Connector for WooCommerce shops, by the REST API (wc/v3)."""

from connectors.sdk.hooks import hookimpl
from connectors.sdk.spec import ConnectorSpec
from connectors.woocommerce.connector import SPEC


@hookimpl
def joinery_connectors() -> list[ConnectorSpec]:
    """Return the connector for WooCommerce shops."""
    return [SPEC]
