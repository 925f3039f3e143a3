"""Stored images in PostgreSQL, and their insertion into product documents under the products' locks."""

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
    """Media store of the tenant."""

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
        media = {product: _items(data) for product, data in page}
        for product, data in await self._rows("data_of_variants", ids=texts(media)):
            media[product] += _items(data)
        return [NamedMedia(product, tuple(items)) for product, items in media.items()]

    async def register(
        self, uses: Mapping[str, Collection[str]], addresses: Sequence[Address], stale: datetime
    ) -> Sequence[str]:
        pairs = jsonb([{"product": product, "address": used} for product, own in uses.items() for used in own])
        if addresses:
            rows = jsonb([{"address": row.address, "url": row.url, "host": row.host} for row in addresses])
            await self._run("add_addresses", rows=rows, run=addresses[0].run, stale=stale)
        with_image = await self._rows("found_of", addresses=texts(row.address for row in addresses))
        dropped = await self._rows("drop_uses", products=texts(uses), uses=pairs)
        await self._run("add_uses", uses=pairs, found=texts(address for (address,) in with_image))
        return await self._drop_unused_addresses({address for (address,) in dropped})

    async def _drop_unused_addresses(self, addresses: Collection[str]) -> Sequence[str]:
        """Delete the addresses that no product uses; return the object keys of images that are then unused.

        Each lock is a separate statement, so that the next statement sees everything committed before it.
        """
        if not addresses:
            return ()
        sorted_addresses = texts(sorted(addresses))
        await self._rows("lock_addresses", addresses=sorted_addresses)
        dropped = await self._rows("drop_addresses", addresses=sorted_addresses)
        return await self._drop_unused_images({image for (image,) in dropped if image is not None})

    async def _drop_unused_images(self, images: Collection[str]) -> Sequence[str]:
        """Delete the images that no address refers to; return the keys of their objects."""
        if not images:
            return ()
        ids = texts(sorted(images))
        await self._rows("lock_images", images=ids)
        dropped = await self._rows("drop_images", images=ids)
        return [key for own, renditions in dropped for key in (own, *(rendition["key"] for rendition in renditions))]

    async def found(self, address: Address, image: str) -> Sequence[str]:
        stored = await self._rows("knows", address=address.address)
        if not stored:
            return await self._drop_unused_images({image})
        before = stored[0][0]
        values = {"etag": address.etag, "last_modified": address.last_modified}
        await self._run("found", address=address.address, image=image, **values)
        if before != image:
            await self._run("outdate", address=address.address)
        return await self._drop_unused_images({before} - {None, image})

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
        survivors: dict[str, str] = dict(await self._rows("lock_products", ids=texts(stale)))
        others = await self._rows("lock_products", ids=texts(set(survivors.values()).difference(survivors)))
        locked = {*survivors, *(product for product, _ in others)}
        survivors = {product: survivor for product, survivor in survivors.items() if survivor in locked}
        images = await images_of(session, survivors.values())
        for product, body in await self._rows("bodies", ids=texts(survivors.values())):
            updated = self._rendering.with_images(body, images.get(product, {}))
            if updated != body:
                await self._run("replace_body", product=product, body=updated, etag=etag_of(updated))
        await self._run("shown", ids=texts(survivors))
        return len(survivors)

    async def unshown(self) -> bool:
        return bool(await self._rows("stale", limit=1))


def _items(data: bytes) -> list[tuple[str, str | None]]:
    return [(item.url, item.role) for item in _MEDIA.decode(data).media if item.url is not None]
