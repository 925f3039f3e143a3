"""Everything a connector needs and the only package it may import from; what is not named here may change.

Plugins import it as `joinery_sdk`, the distribution joinery-sdk. Built-in connectors say `connectors.sdk`; both are the
same classes (adapters/pluggy/loading.py).
Modules in here import each other relatively, so that neither name is written into them.
"""

from .context import Context, HttpClient, HttpFailure, HttpResponse, Limits, Validators
from .errors import BadData, ConnectorError, Refused, RetryLater, TooLarge, Unreachable
from .hooks import ENTRY_POINT_GROUP, PROJECT, hookimpl, hookspec
from .spec import API, KINDS, STREAMS, Connector, ConnectorSpec, Fetched, Item, StockChecker
from .tables import GIVEN_FIELDS, GIVEN_PARTS, Cell, Report, Row, Table, given_field, is_given
from .version import VERSION

__version__ = VERSION

__all__ = [
    "API",
    "ENTRY_POINT_GROUP",
    "GIVEN_FIELDS",
    "GIVEN_PARTS",
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
    "Item",
    "Limits",
    "Refused",
    "Report",
    "RetryLater",
    "Row",
    "StockChecker",
    "Table",
    "TooLarge",
    "Unreachable",
    "Validators",
    "__version__",
    "given_field",
    "hookimpl",
    "hookspec",
    "is_given",
]
