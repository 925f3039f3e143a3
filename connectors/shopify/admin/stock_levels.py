"""Stock levels of one variant, as lines in the format of a bulk operation's file."""

from typing import Any

from connectors.sdk.context import Context
from connectors.sdk.errors import BadData, Unreachable
from connectors.shopify.admin import queries
from connectors.shopify.admin.graphql import run_query

_MAX_PAGES = 5
"""Maximum number of pages of locations. Further locations are omitted.

Five pages of 100 locations suffice for 500 offers, the maximum of a variant.
"""


async def fetch_stock_lines(ctx: Context, variant: str) -> list[dict[str, Any]]:
    """Fetch the stock of a variant; return a line for its inventory item and one for its stock at each location.

    Raises ConnectorError.
    """
    if not variant.isdecimal():
        raise BadData("The item's key is not a Shopify variant ID.")
    lines: list[dict[str, Any]] = []
    after = None
    for _ in range(_MAX_PAGES):
        variables = {"id": f"gid://shopify/ProductVariant/{variant}", "after": after}
        found = (await run_query(ctx, queries.VARIANT_STOCK, variables, can_wait=False)).get("productVariant")
        if found is None:
            raise Unreachable("The shop no longer has this variant.")
        item = _get_object(found, "inventoryItem")
        levels = _get_object(item, "inventoryLevels")
        if not lines:
            members = {name: found.get(name) for name in ("id", "availableForSale", "product")}
            lines.append({**{name: item.get(name) for name in ("id", "sku", "tracked")}, "variant": members})
        nodes = levels.get("nodes")
        lines += [{**node, "__parentId": item.get("id")} for node in nodes or [] if isinstance(node, dict)]
        page_info = _get_object(levels, "pageInfo")
        after = page_info.get("endCursor")
        if not page_info.get("hasNextPage") or not isinstance(after, str):
            break
    return lines


def _get_object(holder: Any, name: str) -> dict[str, Any]:
    found = holder.get(name) if isinstance(holder, dict) else None
    if not isinstance(found, dict):
        raise BadData("The shop's response contains no stock of the variant.")
    return found
