"""Connector for any service that returns JSON in pages; the source's settings describe the paging."""

from connectors.api.connector import SPEC
from connectors.sdk.hooks import hookimpl
from connectors.sdk.spec import ConnectorSpec


@hookimpl
def joinery_connectors() -> list[ConnectorSpec]:
    """Return the connector for JSON services, which is named `api`."""
    return [SPEC]
