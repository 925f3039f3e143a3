"""Asks a shop for the stock of one variant, and tells it in the lines that a bulk operation of the stock stream writes."""

from typing import Any

from connectors.sdk.context import Context
from connectors.sdk.errors import BadData, Unreachable
from connectors.shopify.admin import queries
from connectors.shopify.admin.graphql import ask

_PAGES = 5
"""Requests at most: five hundred locations, as many as a variant has offers."""


async def stock_lines(ctx: Context, variant: str) -> list[dict[str, Any]]:
    """The variant's inventory item, and its level at each location. Raises ConnectorError."""
    if not variant.isdecimal():
        raise BadData("The item's key is none of a Shopify shop.")
    lines: list[dict[str, Any]] = []
    after = None
    for _ in range(_PAGES):
        asked = {"id": f"gid://shopify/ProductVariant/{variant}", "after": after}
        found = (await ask(ctx, queries.LEVELS, asked, patient=False)).get("productVariant")
        if found is None:
            raise Unreachable("The shop has no such variant any more.")
        item = _object(found, "inventoryItem")
        levels = _object(item, "inventoryLevels")
        if not lines:
            own = {name: found.get(name) for name in ("id", "availableForSale", "product")}
            lines.append({**{name: item.get(name) for name in ("id", "sku", "tracked")}, "variant": own})
        nodes = levels.get("nodes")
        lines += [{**node, "__parentId": item.get("id")} for node in nodes or [] if isinstance(node, dict)]
        about = _object(levels, "pageInfo")
        after = about.get("endCursor")
        if not about.get("hasNextPage") or not isinstance(after, str):
            break
    return lines


def _object(holder: Any, name: str) -> dict[str, Any]:
    found = holder.get(name) if isinstance(holder, dict) else None
    if not isinstance(found, dict):
        raise BadData("The shop's answer tells no stock of the variant.")
    return found
