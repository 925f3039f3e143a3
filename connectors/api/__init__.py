"""Any JSON service that answers in pages, described by settings instead of code."""

from connectors.api.connector import SPEC
from connectors.sdk.hooks import hookimpl
from connectors.sdk.spec import ConnectorSpec


@hookimpl
def joinery_connectors() -> list[ConnectorSpec]:
    """The connector `api`."""
    return [SPEC]
