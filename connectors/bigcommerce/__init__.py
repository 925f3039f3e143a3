"""Connector for BigCommerce stores, by the catalogue API (V3)."""

from connectors.bigcommerce.connector import SPEC
from connectors.sdk.hooks import hookimpl
from connectors.sdk.spec import ConnectorSpec


@hookimpl
def joinery_connectors() -> list[ConnectorSpec]:
    """Return the connector for BigCommerce stores."""
    return [SPEC]
