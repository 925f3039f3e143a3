"""What of a product's document a fat payload carries, and how it was with an earlier version."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

NOUNS: Final = ("product", "variant", "offer")
"""What events are about that have an object."""


def inside(product: Mapping[str, Any], subject: str) -> dict[str, Any] | None:
    """The product itself, or the variant or offer in it that has that id."""
    if product["id"] == subject:
        return dict(product)
    for variant in product["variants"]:
        if variant["id"] == subject:
            return {**variant, "product": product["id"]}
        for offer in variant["offers"]:
            if offer["id"] == subject:
                around = {"variant": variant["id"], "catalogue": product["catalogue"], "product": product["id"]}
                return {**offer, **around}
    return None


def reverted(found: dict[str, Any], later: Sequence[Mapping[str, Any]], version: int) -> dict[str, Any] | None:
    """The object at an earlier version: later events' (newest first) fields put back to what they were.

    None when they do not lead there step by step.
    """
    at = found["version"]
    for event in later:
        if event["version"] != at or at == version:
            continue
        for change in event["data"].get("fields", ()):
            _put(found, change["path"].split(".", 2), change["old"])  # axes may have dots
        at -= 1
    found["version"] = at
    return found if at == version else None


def _put(target: dict[str, Any], path: Sequence[str], value: Any) -> None:
    name, *rest = path
    if rest:
        inner = dict(target.get(name) or {})
        _put(inner, rest, value)
        value = inner or None
    if value is None:
        target.pop(name, None)
    else:
        target[name] = value
