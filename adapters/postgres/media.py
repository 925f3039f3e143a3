"""Images in PostgreSQL: set by set, and documents made anew under their products' locks."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta

import msgspec

from adapters.postgres.catalogue_batch import etag_of, images_of
from adapters.postgres.session import Session, jsonb, texts
from adapters.postgres.stores import TenantStore, done, every, first, run, statements, value
from adapters.postgres.table import Record
from domain.catalogue.ports import Rendering
from domain.media.model import Address, Image, NamedMedia
from domain.media.ports import MediaStore

SQL = statements("media")


class _Item(msgspec.Struct):
    url: str | None = None
    role: str | None = None


class _Data(msgspec.Struct):
    media: list[_Item] = []


_IMAGES = Record(Image)
_MEDIA = msgspec.json.Decoder(_Data)


class PostgresMediaStore(TenantStore, MediaStore):
    """MediaStore."""

    _sql = SQL
    image = first(_IMAGES.row_of)
    due = every(Address)
    next_due = value()
    by_content = first(_IMAGES.row_of)
    add = done(values=_IMAGES.values)
    unchanged = run()
    failed = run()
    postpone = run()

    def __init__(self, session: Session, rendering: Rendering) -> None:
        super().__init__(session)
        self._rendering = rendering

    async def named(self, source: str, since: datetime, before: str | None, limit: int) -> Sequence[NamedMedia]:
        values = {"source": source, "since": since, "before": before, "limit": limit}
        page = await self._rows("changed_products", **values)
        found = {product: _items(data) for product, data in page}
        for product, data in await self._rows("data_of_variants", ids=texts(found)):
            found[product] += _items(data)
        return [NamedMedia(product, tuple(items)) for product, items in found.items()]

    async def register(
        self, uses: Mapping[str, Collection[str]], addresses: Sequence[Address], stale: datetime
    ) -> Sequence[str]:
        pairs = jsonb([{"product": product, "address": one} for product, own in uses.items() for one in own])
        if addresses:
            rows = jsonb([{"address": one.address, "url": one.url, "host": one.host} for one in addresses])
            await self._run("add_addresses", rows=rows, run=addresses[0].run, stale=stale)
        there = await self._rows("found_of", addresses=texts(one.address for one in addresses))
        dropped = await self._rows("drop_uses", products=texts(uses), uses=pairs)
        await self._run("add_uses", uses=pairs, found=texts(address for (address,) in there))
        return await self._forget({address for (address,) in dropped})

    async def _forget(self, addresses: Collection[str]) -> Sequence[str]:
        """Those of the addresses that no product uses; each lock is a statement of its own, so that what follows sees all."""
        if not addresses:
            return ()
        these = texts(sorted(addresses))
        await self._rows("lock_addresses", addresses=these)
        led = await self._rows("drop_addresses", addresses=these)
        return await self._unneeded({image for (image,) in led if image is not None})

    async def _unneeded(self, images: Collection[str]) -> Sequence[str]:
        """Those of the images that no address leads to are forgotten; the keys of their objects."""
        if not images:
            return ()
        these = texts(sorted(images))
        await self._rows("lock_images", images=these)
        dropped = await self._rows("drop_images", images=these)
        return [key for own, renditions in dropped for key in (own, *(one["key"] for one in renditions))]

    async def found(self, address: Address, image: str) -> Sequence[str]:
        known = await self._rows("knows", address=address.address)
        if not known:
            return await self._unneeded({image})
        before = known[0][0]
        values = {"etag": address.etag, "last_modified": address.last_modified}
        await self._run("found", address=address.address, image=image, **values)
        if before != image:
            await self._run("outdate", address=address.address)
        return await self._unneeded({before} - {None, image})

    async def knows(self, address: str) -> bool:
        return bool(await self._rows("knows", address=address))

    async def origin_failed(
        self, host: str, origin: str, failure: str, delays: Sequence[timedelta]
    ) -> Mapping[str, int]:
        now = self._session.now
        values = {"origin": origin, "failure": failure, "again": [now + delay for delay in delays]}
        return dict(await self._rows("origin_failed", host=host, **values))

    async def show(self, limit: int) -> int:
        session = self._session
        stale = [product for (product,) in await self._rows("stale", limit=limit)]
        if not stale:
            return 0
        held: dict[str, str] = dict(await self._rows("lock_products", ids=texts(stale)))
        others = await self._rows("lock_products", ids=texts(set(held.values()).difference(held)))
        locked = {*held, *(product for product, _ in others)}
        held = {product: shown for product, shown in held.items() if shown in locked}
        images = await images_of(session, held.values())
        for product, body in await self._rows("bodies", ids=texts(held.values())):
            made = self._rendering.with_images(body, images.get(product, {}))
            if made != body:
                await self._run("replace_body", product=product, body=made, etag=etag_of(made))
        await self._run("shown", ids=texts(held))
        return len(held)

    async def unshown(self) -> bool:
        return bool(await self._rows("stale", limit=1))


def _items(data: bytes) -> list[tuple[str, str | None]]:
    return [(item.url, item.role) for item in _MEDIA.decode(data).media if item.url is not None]
