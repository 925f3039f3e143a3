"""Connector for vendors' files: CSV, TSV, workbooks, JSON, JSON Lines, XML and Google Merchant feeds."""

from connectors.csv.connector import SPEC
from connectors.sdk.hooks import hookimpl
from connectors.sdk.spec import ConnectorSpec


@hookimpl
def joinery_connectors() -> list[ConnectorSpec]:
    """Return the connector for vendors' files in all formats. Its name is `csv`, the value of the field `connector` of sources."""
    return [SPEC]
