"""Stored images in PostgreSQL. Adding an image changes product documents, under locks on the products."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta

import msgspec

from adapters.postgres.catalogue_batch import compute_etag, load_images
from adapters.postgres.session import TenantSession, encode_jsonb, encode_texts
from adapters.postgres.stores import (
    TenantStore,
    execute_count,
    execute_one,
    fetch_all,
    fetch_first,
    fetch_scalar,
    load_statements,
)
from adapters.postgres.table import RowMapping
from domain.catalogue.ports import CatalogueRenderer
from domain.media.model import Image, ImageUrl, ProductMedia
from domain.media.ports import MediaStore

SQL = load_statements("media")


class _MediaItem(msgspec.Struct):
    """Entry of `media` in the data of a product or variant."""

    url: str | None = None
    role: str | None = None


class _DataWithMedia(msgspec.Struct):
    """Excerpt of the data of a product or variant that contains only `media`."""

    media: list[_MediaItem] = []


_IMAGES = RowMapping(Image)
_MEDIA_DECODER = msgspec.json.Decoder(_DataWithMedia)


class PostgresMediaStore(TenantStore, MediaStore):
    """Media store of the tenant."""

    _sql = SQL
    get_image = fetch_first(_IMAGES.build_from_row)
    list_due = fetch_all(ImageUrl)
    find_next_due = fetch_scalar()
    lock_by_content = fetch_first(_IMAGES.build_from_row)
    add = execute_one(values=_IMAGES.build_params)
    record_unchanged = execute_count()
    record_failure = execute_count()
    postpone = execute_count()

    def __init__(self, session: TenantSession, rendering: CatalogueRenderer) -> None:
        super().__init__(session)
        self._rendering = rendering

    async def list_media(self, source: str, since: datetime, before: str | None, limit: int) -> Sequence[ProductMedia]:
        values = {"source": source, "since": since, "before": before, "limit": limit}
        page = await self._fetch_rows("list_changed_products", **values)
        media = {product: _list_media(data) for product, data in page}
        for product, data in await self._fetch_rows("list_variant_data", ids=encode_texts(media)):
            media[product] += _list_media(data)
        return [ProductMedia(product, tuple(items)) for product, items in media.items()]

    async def replace_image_urls(
        self,
        url_digests_by_product: Mapping[str, Collection[str]],
        image_urls: Sequence[ImageUrl],
        fetched_before: datetime,
    ) -> Sequence[str]:
        pairs = encode_jsonb(
            [{"product": product, "address": used} for product, own in url_digests_by_product.items() for used in own]
        )
        if image_urls:
            rows = encode_jsonb([{"address": row.url_digest, "url": row.url, "host": row.host} for row in image_urls])
            await self._run("add_addresses", rows=rows, run=image_urls[0].run, fetched_before=fetched_before)
        with_image = await self._fetch_rows(
            "list_addresses_with_image", addresses=encode_texts(row.url_digest for row in image_urls)
        )
        dropped = await self._fetch_rows(
            "delete_outdated_uses", products=encode_texts(url_digests_by_product), uses=pairs
        )
        await self._run("add_uses", uses=pairs, with_image=encode_texts(address for (address,) in with_image))
        return await self._delete_unused_urls({address for (address,) in dropped})

    async def _delete_unused_urls(self, url_digests: Collection[str]) -> Sequence[str]:
        """Delete image URLs that no product uses, and the images that no URL then refers to.

        Args:
            url_digests: Digests of the image URLs to check.

        Returns:
            Object keys of the deleted images and their renditions.
        """
        if not url_digests:
            return ()
        sorted_digests = encode_texts(sorted(url_digests))
        # each lock is a separate statement, so that the next statement sees everything committed before the lock
        await self._fetch_rows("lock_addresses", addresses=sorted_digests)
        dropped = await self._fetch_rows("delete_unused_addresses", addresses=sorted_digests)
        return await self._delete_unused_images({image for (image,) in dropped if image is not None})

    async def _delete_unused_images(self, images: Collection[str]) -> Sequence[str]:
        """Delete images that no URL refers to; return the object keys of the deleted images and their renditions.

        `images` are the IDs of the images to check.
        """
        if not images:
            return ()
        ids = encode_texts(sorted(images))
        await self._fetch_rows("lock_images", images=ids)
        dropped = await self._fetch_rows("delete_unused_images", images=ids)
        return [key for own, renditions in dropped for key in (own, *(rendition["key"] for rendition in renditions))]

    async def record_image(self, image_url: ImageUrl, image: str) -> Sequence[str]:
        stored = await self._fetch_rows("lock_image_url", address=image_url.url_digest)
        if not stored:
            return await self._delete_unused_images({image})
        before = stored[0][0]
        values = {"etag": image_url.etag, "last_modified": image_url.last_modified}
        await self._run("record_image", address=image_url.url_digest, image=image, **values)
        if before != image:
            await self._run("mark_uses_stale", address=image_url.url_digest)
        return await self._delete_unused_images({before} - {None, image})

    async def lock_image_url(self, url_digest: str) -> bool:
        return bool(await self._fetch_rows("lock_image_url", address=url_digest))

    async def record_origin_failure(
        self, host: str, origin: str, failure: str, delays: Sequence[timedelta]
    ) -> Mapping[str, int]:
        now = self._session.now
        values = {"origin": origin, "failure": failure, "retry_times": [now + delay for delay in delays]}
        return dict(await self._fetch_rows("record_origin_failure", host=host, **values))

    async def rebuild_documents(self, limit: int) -> Sequence[str]:
        session = self._session
        stale = [product for (product,) in await self._fetch_rows("list_stale_products", limit=limit)]
        if not stale:
            return []
        survivors: dict[str, str] = dict(await self._fetch_rows("lock_products", ids=encode_texts(stale)))
        others = await self._fetch_rows(
            "lock_products", ids=encode_texts(set(survivors.values()).difference(survivors))
        )
        locked = {*survivors, *(product for product, _ in others)}
        survivors = {product: survivor for product, survivor in survivors.items() if survivor in locked}
        images = await load_images(session, survivors.values())
        for product, body in await self._fetch_rows("list_documents", ids=encode_texts(survivors.values())):
            updated = self._rendering.set_images(body, images.get(product, {}))
            if updated != body:
                await self._run("replace_document", product=product, body=updated, etag=compute_etag(updated))
        await self._run("mark_uses_current", ids=encode_texts(survivors))
        return list(survivors.values())

    async def has_pending_documents(self) -> bool:
        return bool(await self._fetch_rows("list_stale_products", limit=1))


def _list_media(data: bytes) -> list[tuple[str, str | None]]:
    return [(item.url, item.role) for item in _MEDIA_DECODER.decode(data).media if item.url is not None]
