"""Connector for any JSON service that responds in pages, described by settings instead of code."""

from connectors.api.connector import SPEC
from connectors.sdk.hooks import hookimpl
from connectors.sdk.spec import ConnectorSpec


@hookimpl
def joinery_connectors() -> list[ConnectorSpec]:
    """Return the connector `api`."""
    return [SPEC]
