"""Connector of a source that does not name one."""

import pytest

from domain.sources.connector_selection import select_default_connector


@pytest.mark.parametrize(
    ("kind", "config", "connector"),
    [
        ("url", {}, "csv"),
        ("url", {"platform": "shopify", "format": "json"}, "shopify"),
        ("url", {"format": "json_ld"}, "json_ld"),
        ("url", {"platform": "woocommerce"}, "csv"),
        ("api", {}, "api"),
        ("api", {"platform": "shopify"}, "shopify-admin"),
        ("api", {"platform": "woocommerce"}, "woocommerce"),
        ("api", {"platform": "bigcommerce"}, "bigcommerce"),
        ("api", {"platform": "magento"}, "api"),
        ("file", {"format": "json_ld", "platform": "shopify"}, "csv"),
        ("mail", {}, "csv"),
        ("push", {}, "push"),
    ],
)
def test_the_connector_depends_on_kind_platform_and_format(kind: str, config: dict[str, str], connector: str) -> None:
    assert select_default_connector(kind, config) == connector
