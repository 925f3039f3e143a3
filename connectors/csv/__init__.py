"""Connector for vendors' files: CSV, TSV, XLSX, JSON, JSON Lines, XML and Google Merchant feeds."""

from connectors.csv.connector import SPEC
from connectors.sdk.hooks import hookimpl
from connectors.sdk.spec import ConnectorSpec


@hookimpl
def joinery_connectors() -> list[ConnectorSpec]:
    """Return the connector `csv`."""
    return [SPEC]
