"""Web shops without a feed, read by the JSON-LD on their pages: one page, or all that a sitemap lists."""

from connectors.json_ld.connector import SPEC
from connectors.sdk.hooks import hookimpl
from connectors.sdk.spec import ConnectorSpec


@hookimpl
def joinery_connectors() -> list[ConnectorSpec]:
    """The connector `json_ld`."""
    return [SPEC]
