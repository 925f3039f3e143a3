"""Connector SDK, the only package of Joinery that a connector may import. Names not listed here may change.

Plugins import the SDK as `joinery_sdk` (the distribution joinery-sdk), built-in connectors as `connectors.sdk`. Both
names give the same classes (adapters/pluggy/loader.py). Modules of the SDK import each other relatively, so that they
contain neither name.
"""

from .context import Context, HttpClient, HttpFailure, HttpResponse, Limits, Validators
from .errors import BadData, ConnectorError, Refused, RetryLater, TooLarge, Unreachable
from .hooks import ENTRY_POINT_GROUP, PROJECT, hookimpl, hookspec
from .spec import API, KINDS, STREAMS, Connector, ConnectorSpec, Fetched, StockChecker, StockCheckItem
from .tables import DECLARED_FIELD_PARTS, DECLARED_FIELDS, Cell, Report, Row, Table, base_field, is_declarable_field
from .version import VERSION

__version__ = VERSION

__all__ = [
    "API",
    "DECLARED_FIELDS",
    "DECLARED_FIELD_PARTS",
    "ENTRY_POINT_GROUP",
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
    "StockCheckItem",
    "StockChecker",
    "Table",
    "TooLarge",
    "Unreachable",
    "Validators",
    "__version__",
    "base_field",
    "hookimpl",
    "hookspec",
    "is_declarable_field",
]
