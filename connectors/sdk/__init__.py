"""Public interface of the connector kit, the only package that a connector may import; names not listed here may change.

Plugins import the kit as `joinery_sdk` (the distribution joinery-sdk), built-in connectors as `connectors.sdk`. Both
names give the same classes (adapters/pluggy/loading.py). Modules of the kit import each other relatively, so that they
contain neither name.
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
