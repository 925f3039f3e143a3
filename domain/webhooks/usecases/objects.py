"""What fat payloads carry: the product, variant or offer as it was with the event's version."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from domain.events.model import LoggedEvent
from domain.kernel.tenancy import Tenant
from ports.codec import Codec
from ports.events import EventReader
from ports.unit_of_work import UnitOfWork

_NOUNS: Final = ("product", "variant", "offer")


class ObjectsAsOf:
    """ObjectReader: the present document with later changes taken back, as the log tells them."""

    def __init__(self, uow: UnitOfWork, events: EventReader, codec: Codec) -> None:
        self._uow, self._events, self._codec = uow, events, codec

    async def as_of(self, tenant: Tenant, event: LoggedEvent) -> bytes | None:
        """The object's JSON, as reading it answers; None when it has none, is another's, or cannot be told any more."""
        if event.type.partition(".")[0] not in _NOUNS or event.groups is not None:
            return None
        async with self._uow.read(tenant) as tx:
            document = await tx.catalogue.product(event.product or event.subject)
        if document is None:
            return None
        found = inside(self._codec.decode(document.body), event.subject)
        if found is None or found["version"] < event.version:
            return None
        if found["version"] > event.version:
            later = await self._events.later(tenant, event.subject, event.position)
            found = reverted(found, [self._codec.decode(one.body) for one in later], event.version)
        return None if found is None else self._codec.encode(found)


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
    name, *long_poll = path
    if long_poll:
        inner = dict(target.get(name) or {})
        _put(inner, long_poll, value)
        value = inner or None
    if value is None:
        target.pop(name, None)
    else:
        target[name] = value
