"""Images in memory."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Any

from adapters.memory.catalogue_overlay import DOCUMENTS, PRODUCTS, pictures_of, survivor_of
from adapters.memory.image_uses import ADDRESSES, IMAGES, USES, KnownAddress, Use
from adapters.memory.table import Transaction
from domain.catalogue.model import Document
from domain.catalogue.ports import Rendering
from domain.media.model import Address, Image, NamedMedia


class MemoryMedia:
    """MediaStore."""

    def __init__(self, transaction: Transaction, rendering: Rendering | None) -> None:
        self._transaction, self._rendering = transaction, rendering
        self._images, self._addresses = transaction.rows(IMAGES), transaction.rows(ADDRESSES)
        self._uses = transaction.rows(USES)
        self._products, self._documents = transaction.rows(PRODUCTS), transaction.rows(DOCUMENTS)

    async def image(self, id: str) -> Image | None:
        leading = {known.of.address for known in self._addresses.where(lambda known: known.of.image == id)}
        return self._images.get(id) if self._uses.where(lambda use: use.address in leading) else None

    async def named(self, source: str, since: datetime, before: str | None, limit: int) -> Sequence[NamedMedia]:
        changed = self._products.where(
            lambda one: one.source == source and one.updated_at >= since and (before is None or one.id < before)
        )
        page = sorted(changed, key=lambda product: product.id, reverse=True)[:limit]
        return [
            NamedMedia(
                one.id, (*_items(one.data), *(pair for variant in one.variants for pair in _items(variant.data)))
            )
            for one in page
        ]

    async def register(
        self, uses: Mapping[str, Collection[str]], addresses: Sequence[Address], stale: datetime
    ) -> Sequence[str]:
        now = self._transaction.now
        for address in addresses:
            known = self._addresses.get(address.address)
            if known is None:
                await self._addresses.put(KnownAddress(address, now))
            elif known.due_at is None and known.checked_at is not None and known.checked_at < stale:
                again = replace(known.of, tries=0, run=address.run)
                await self._addresses.put(replace(known, of=again, due_at=now))
        dropped = self._uses.where(lambda use: use.product in uses and use.address not in uses[use.product])
        for use in dropped:
            await self._uses.remove(USES.key(use))
        for product, own in uses.items():
            for one in own:
                known, new = self._addresses.get(one), Use(product, one, stale=False)
                if self._uses.get(USES.key(new)) is None:
                    await self._uses.put(replace(new, stale=known is not None and known.of.image is not None))
        return await self._forget({use.address for use in dropped})

    async def _forget(self, addresses: Collection[str]) -> Sequence[str]:
        led = set()
        for address in addresses:
            known = self._addresses.get(address)
            if known is not None and not self._uses.where(lambda use, of=address: use.address == of):  # type: ignore[misc]  # bound at once
                led.add(known.of.image)
                await self._addresses.remove(address)
        return await self._unneeded({image for image in led if image is not None})

    async def _unneeded(self, images: Collection[str]) -> Sequence[str]:
        keys: list[str] = []
        led_to = {known.of.image for known in self._addresses.where()}
        for id in images:
            image = self._images.get(id)
            if image is not None and id not in led_to:
                keys += image.keys
                await self._images.remove(id)
        return keys

    async def due(self, host: str, limit: int) -> Sequence[Address]:
        found = self._addresses.where(
            lambda one: one.of.host == host and one.due_at is not None and one.due_at <= self._transaction.now
        )
        return [one.of for one in sorted(found, key=lambda one: (one.due_at, one.of.address))[:limit]]

    async def next_due(self, host: str) -> datetime | None:
        found = self._addresses.where(lambda one: one.of.host == host)
        return min((one.due_at for one in found if one.due_at is not None), default=None)

    async def by_content(self, content: str) -> Image | None:
        await self._transaction.lock()
        return next(iter(self._images.where(lambda image: image.content == content)), None)

    async def add(self, image: Image) -> bool:
        if await self.by_content(image.content) is not None:
            return False
        await self._images.put(image)
        return True

    async def found(self, address: Address, image: str) -> Sequence[str]:
        await self._transaction.lock()
        known = self._addresses.get(address.address)
        if known is None:
            return await self._unneeded({image})
        before = known.of.image
        led = replace(address, run=known.of.run, tries=0, image=image)
        await self._addresses.put(KnownAddress(led, None, self._transaction.now))
        if before != image:
            for use in self._uses.where(lambda use: use.address == address.address):
                await self._uses.put(replace(use, stale=True))
        return await self._unneeded({before} - {image}) if before is not None else ()

    async def knows(self, address: str) -> bool:
        await self._transaction.lock()
        return self._addresses.get(address) is not None

    async def unchanged(self, address: str) -> None:
        if known := self._addresses.get(address):
            await self._addresses.put(KnownAddress(replace(known.of, tries=0), None, self._transaction.now))

    async def failed(self, address: str, tries: int, failure: str, again: datetime | None) -> None:
        if known := self._addresses.get(address):
            tried = replace(known.of, tries=tries)
            await self._addresses.put(KnownAddress(tried, again, self._transaction.now, failure))

    async def origin_failed(
        self, host: str, origin: str, failure: str, delays: Sequence[timedelta]
    ) -> Mapping[str, int]:
        now, given_up = self._transaction.now, Counter[str]()
        for known in self._addresses.where(lambda one: one.of.host == host):
            if known.due_at is None or known.due_at > now or not known.of.url.lower().startswith(origin):
                continue
            again = now + delays[known.of.tries] if known.of.tries < len(delays) else None
            await self._addresses.put(KnownAddress(replace(known.of, tries=known.of.tries + 1), again, now, failure))
            given_up.update([] if again else [known.of.run])
        return given_up

    async def postpone(self, host: str, until: datetime) -> None:
        for known in self._addresses.where(lambda one: one.of.host == host):
            if known.due_at is not None and known.due_at < until:
                await self._addresses.put(replace(known, due_at=until))

    async def show(self, limit: int) -> int:
        await self._transaction.lock()
        if self._rendering is None:
            raise RuntimeError("The unit of work was made without a Rendering, which products' documents need.")
        stale = sorted({use.product for use in self._uses.where(lambda use: use.stale)})[:limit]
        for product in stale:
            shown = survivor_of(self._transaction, product) or product
            if document := self._documents.get(shown):
                body = self._rendering.with_images(document.body, pictures_of(self._transaction, shown))
                await self._documents.put(Document(shown, body, blake2b(body, digest_size=12).hexdigest()))
        for use in self._uses.where(lambda use: use.product in stale and use.stale):
            await self._uses.put(replace(use, stale=False))
        return len(stale)

    async def unshown(self) -> bool:
        return bool(self._uses.where(lambda use: use.stale))


def _items(data: Mapping[str, Any]) -> list[tuple[str, str | None]]:
    return [(item["url"], item.get("role")) for item in data.get("media", ()) if "url" in item]
