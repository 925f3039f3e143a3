"""Stock of one variant, fetched in the format of the stock stream's bulk operation."""

from typing import Any

from connectors.sdk.context import Context
from connectors.sdk.errors import BadData, Unreachable
from connectors.shopify.admin import queries
from connectors.shopify.admin.graphql import ask

_PAGES = 5
"""Requests at most: five hundred locations, as many as a variant has offers."""


async def stock_lines(ctx: Context, variant: str) -> list[dict[str, Any]]:
    """Return the variant's inventory item, and its level at each location. Raises ConnectorError."""
    if not variant.isdecimal():
        raise BadData("The item's key is not a Shopify variant ID.")
    lines: list[dict[str, Any]] = []
    after = None
    for _ in range(_PAGES):
        variables = {"id": f"gid://shopify/ProductVariant/{variant}", "after": after}
        found = (await ask(ctx, queries.LEVELS, variables, patient=False)).get("productVariant")
        if found is None:
            raise Unreachable("The shop no longer has this variant.")
        item = _object(found, "inventoryItem")
        levels = _object(item, "inventoryLevels")
        if not lines:
            own = {name: found.get(name) for name in ("id", "availableForSale", "product")}
            lines.append({**{name: item.get(name) for name in ("id", "sku", "tracked")}, "variant": own})
        nodes = levels.get("nodes")
        lines += [{**node, "__parentId": item.get("id")} for node in nodes or [] if isinstance(node, dict)]
        page_info = _object(levels, "pageInfo")
        after = page_info.get("endCursor")
        if not page_info.get("hasNextPage") or not isinstance(after, str):
            break
    return lines


def _object(holder: Any, name: str) -> dict[str, Any]:
    found = holder.get(name) if isinstance(holder, dict) else None
    if not isinstance(found, dict):
        raise BadData("The shop's response contains no stock of the variant.")
    return found
