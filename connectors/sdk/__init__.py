"""Everything a connector needs and the only package it may import from; what is not named here may change."""

from connectors.sdk.context import Context, HttpClient, HttpFailure, HttpResponse, Limits, Validators
from connectors.sdk.errors import BadData, ConnectorError, Refused, RetryLater, TooLarge, Unreachable
from connectors.sdk.hooks import ENTRY_POINT_GROUP, PROJECT, hookimpl, hookspec
from connectors.sdk.spec import API, KINDS, STREAMS, Connector, ConnectorSpec, Fetched
from connectors.sdk.tables import GIVEN_FIELDS, Cell, Report, Row, Table, given_field

__all__ = [
    "API",
    "ENTRY_POINT_GROUP",
    "GIVEN_FIELDS",
    "KINDS",
    "PROJECT",
    "STREAMS",
    "BadData",
    "Cell",
    "Connector",
    "ConnectorError",
    "ConnectorSpec",
    "Context",
    "Fetched",
    "HttpClient",
    "HttpFailure",
    "HttpResponse",
    "Limits",
    "Refused",
    "Report",
    "RetryLater",
    "Row",
    "Table",
    "TooLarge",
    "Unreachable",
    "Validators",
    "given_field",
    "hookimpl",
    "hookspec",
]
