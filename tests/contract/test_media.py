"""Storage of images (domain/media/ports.py): referenced, fetched, shown and deleted."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from domain.catalogue.batch import Batch
from domain.catalogue.model import Product
from domain.catalogue.ports import CatalogueStore
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from domain.media.model import REFETCH_AFTER, Image, ImageUrl, Rendition, build_image_urls
from domain.media.ports import MediaStore
from domain.storage.model import StoredKind, StoredObject, build_image_key
from domain.storage.ports import StorageLedger
from ports.unit_of_work import Tx, UnitOfWork
from tests.support import builders
from tests.support.backend import Backend
from tests.support.catalogues import add_products, full_key_range, store_batch

pytestmark = pytest.mark.asyncio
CALL = builders.CALL
SOURCE = "src_0000000000000000000001"
HOST = "a.example"
ORIGIN = f"https://{HOST}/"
A, B, C = (f"https://{HOST}/{letter}.jpg" for letter in "abc")


def _build_product(key: str, *urls: str, of_variant: Sequence[str] = ()) -> Product:
    made = builders.product(SOURCE, "cat_1", key, data={"title": key, "media": [{"url": url} for url in urls]})
    builders.variant(made, f"{key}/1", data={"sku": key, "media": [{"url": url} for url in of_variant]})
    return made


async def _register_images(uow: UnitOfWork, tenant: Tenant, run: str = "run_1") -> list[str]:
    """Register the image URLs of the source's products as the job does and return the keys to free."""
    async with uow.begin(tenant, CALL) as tx:
        page = await tx[MediaStore].list_media(SOURCE, builders.MOMENT, None, 100)
        addresses = build_image_urls((url for one in page for url in one.find_image_urls()), run)
        known = {one.url: one.url_digest for one in addresses}
        uses = {one.product: [known[url] for url in one.find_image_urls()] for one in page}
        return list(await tx[MediaStore].replace_image_urls(uses, addresses, tx.now - REFETCH_AFTER))


async def _list_due(uow: UnitOfWork, tenant: Tenant) -> dict[str, ImageUrl]:
    async with uow.begin(tenant, CALL) as tx:
        return {one.url: one for one in await tx[MediaStore].list_due(HOST, 100)}


def _build_image(tx: Tx, content: str) -> Image:
    return Image(new_id("img"), content, f"images/x/live/{content}", 7, 30, 20, tx.now)


async def _store_image(uow: UnitOfWork, tenant: Tenant, address: ImageUrl, content: str) -> tuple[str, list[str]]:
    """Store an image with that content for the URL; return its ID and the keys to free."""
    async with uow.begin(tenant, CALL) as tx:
        image = await tx[MediaStore].lock_by_content(content)
        if image is None:
            image = _build_image(tx, content)
            assert await tx[MediaStore].add(image)
        return image.id, list(await tx[MediaStore].record_image(address, image.id))


async def _rebuild_documents(uow: UnitOfWork, tenant: Tenant) -> int:
    async with uow.begin(tenant, CALL) as tx:
        return len(await tx[MediaStore].rebuild_documents(100))


async def _list_media(uow: UnitOfWork, tenant: Tenant, product: str) -> dict[str, Any]:
    """Return the images of a product's document by URL."""
    async with uow.begin_reading(tenant) as tx:
        document = await tx[CatalogueStore].get_product(product)
    assert document is not None
    product_document = json.loads(document.body)
    parts = [product_document["data"], *(variant["data"] for variant in product_document["variants"])]
    return {item["url"]: item.get("id") for part in parts for item in part["media"]}


async def test_image_urls_of_products_and_variants_are_listed(uow: UnitOfWork, tenant: Tenant) -> None:
    first, second, third = _build_product("1", A, of_variant=[B]), _build_product("2"), _build_product("3", C)
    await add_products(uow, tenant, first, second, third)
    other = _build_product("4", A)
    other.source = "src_0000000000000000000002"
    await add_products(uow, tenant, other)
    async with uow.begin_reading(tenant) as tx:
        page = await tx[MediaStore].list_media(SOURCE, builders.MOMENT, None, 2)
        assert [(one.product, {url for url, _ in one.items}) for one in page] == [
            (third.id, {C}), (second.id, set()),
        ]  # fmt: skip
        page = await tx[MediaStore].list_media(SOURCE, builders.MOMENT, second.id, 2)
        assert [(one.product, {url for url, _ in one.items}) for one in page] == [(first.id, {A, B})]
        assert not await tx[MediaStore].list_media(SOURCE, builders.MOMENT + timedelta(seconds=1), None, 9)


async def test_a_registered_image_is_fetched_and_shown(uow: UnitOfWork, tenant: Tenant) -> None:
    first, second = _build_product("1", A, of_variant=[B]), _build_product("2", A)
    await add_products(uow, tenant, first, second)
    for _ in range(2):
        assert await _register_images(uow, tenant) == [], "registration is idempotent"
    due = await _list_due(uow, tenant)
    assert due.keys() == {A, B} and due[A].run == "run_1"
    assert await _rebuild_documents(uow, tenant) == 0
    image, _ = await _store_image(uow, tenant, replace(due[A], etag='"1"', last_modified="Mon"), "aa")
    assert (await _list_due(uow, tenant)).keys() == {B}
    before = await _load_document(uow, tenant, first.id)
    async with uow.begin(tenant, CALL) as tx:
        assert await tx[MediaStore].has_pending_documents()
        assert [
            len(await tx[MediaStore].rebuild_documents(1)),
            len(await tx[MediaStore].rebuild_documents(1)),
            len(await tx[MediaStore].rebuild_documents(1)),
        ] == [1, 1, 0]
        assert not await tx[MediaStore].has_pending_documents()
    assert await _list_media(uow, tenant, first.id) == {A: image, B: None}
    assert await _list_media(uow, tenant, second.id) == {A: image}
    after = await _load_document(uow, tenant, first.id)
    assert after.etag != before.etag and json.loads(after.body)["updated_at"] == json.loads(before.body)["updated_at"]
    async with uow.begin_reading(tenant) as tx:
        found = await tx[MediaStore].get_image(image)
        assert found is not None and (found.content, found.width, found.height, found.bytes) == ("aa", 30, 20, 7)


async def _load_document(uow: UnitOfWork, tenant: Tenant, product: str) -> Any:
    async with uow.begin_reading(tenant) as tx:
        return await tx[CatalogueStore].get_product(product)


async def test_a_run_that_writes_the_product_again_keeps_its_images(uow: UnitOfWork, tenant: Tenant) -> None:
    [copy] = await add_products(uow, tenant, _build_product("1", A, of_variant=[B]))
    await _register_images(uow, tenant)
    due = await _list_due(uow, tenant)
    image, _ = await _store_image(uow, tenant, due[B], "bb")
    await _rebuild_documents(uow, tenant)
    copy.data = {"title": "renamed", "media": [{"url": A}]}
    await store_batch(uow, tenant, Batch(changed_products=[copy], touched={copy.id: copy}), full_key_range(SOURCE))
    assert await _list_media(uow, tenant, copy.id) == {A: None, B: image}


async def test_the_same_content_is_one_image(uow: UnitOfWork, tenant: Tenant) -> None:
    first, second = _build_product("1", A), _build_product("2", B)
    await add_products(uow, tenant, first, second)
    await _register_images(uow, tenant)
    due = await _list_due(uow, tenant)
    one, _ = await _store_image(uow, tenant, due[A], "aa")
    other, _ = await _store_image(uow, tenant, due[B], "aa")
    assert one == other
    async with uow.begin(tenant, CALL) as tx:
        assert not await tx[MediaStore].add(_build_image(tx, "aa")), "content is stored once"
    third = _build_product("3", A)
    await add_products(uow, tenant, third)
    await _register_images(uow, tenant)
    assert not await _list_due(uow, tenant), "known images are not fetched again"
    await _rebuild_documents(uow, tenant)
    for product in (first, second, third):
        assert list((await _list_media(uow, tenant, product.id)).values()) == [one]


async def test_unreferenced_images_are_deleted(uow: UnitOfWork, tenant: Tenant) -> None:
    [_first, second] = await add_products(uow, tenant, _build_product("1", A), _build_product("2", A, B))
    await _register_images(uow, tenant)
    due = await _list_due(uow, tenant)
    shared, _ = await _store_image(uow, tenant, due[A], "aa")
    own, _ = await _store_image(uow, tenant, due[B], "bb")
    second.data = {"title": "2", "media": []}
    await store_batch(
        uow, tenant, Batch(changed_products=[second], touched={second.id: second}), full_key_range(SOURCE)
    )
    assert await _register_images(uow, tenant) == ["images/x/live/bb"], "another product references the other image"
    async with uow.begin(tenant, CALL) as tx:
        assert await tx[MediaStore].get_image(own) is None and await tx[MediaStore].get_image(shared) is not None
        assert not await tx[MediaStore].lock_image_url(due[B].url_digest)
    async with uow.begin(tenant, CALL) as tx:
        late = _build_image(tx, "late")
        assert await tx[MediaStore].add(late)
        assert await tx[MediaStore].record_image(due[B], late.id) == [late.key], "the image is no longer referenced"
        assert await tx[MediaStore].lock_by_content("late") is None


async def test_a_url_with_a_changed_image_is_updated(uow: UnitOfWork, tenant: Tenant) -> None:
    [product] = await add_products(uow, tenant, _build_product("1", A))
    await _register_images(uow, tenant)
    [address] = (await _list_due(uow, tenant)).values()
    await _store_image(uow, tenant, replace(address, etag='"1"'), "aa")
    await _rebuild_documents(uow, tenant)
    image, freed = await _store_image(uow, tenant, address, "bb")
    assert freed == ["images/x/live/aa"]
    assert await _rebuild_documents(uow, tenant) == 1 and await _list_media(uow, tenant, product.id) == {A: image}
    assert (await _store_image(uow, tenant, address, "bb"))[1] == [] and await _rebuild_documents(uow, tenant) == 0


async def test_failures_wait_and_are_given_up(uow: UnitOfWork, tenant: Tenant) -> None:
    await add_products(uow, tenant, _build_product("1", A, B, C))
    await _register_images(uow, tenant)
    due = await _list_due(uow, tenant)
    async with uow.begin(tenant, CALL) as tx:
        again = tx.now + timedelta(minutes=5)
        await tx[MediaStore].record_failure(due[A].url_digest, 1, "no answer", again)
        await tx[MediaStore].record_failure(due[B].url_digest, 6, "no answer", None)
        await tx[MediaStore].record_unchanged(due[C].url_digest)
        assert await tx[MediaStore].find_next_due(HOST) == again
        assert not await tx[MediaStore].list_due(HOST, 9)
        await tx[MediaStore].postpone(HOST, later := tx.now + timedelta(hours=1))
        assert await tx[MediaStore].find_next_due(HOST) == later
        await tx[MediaStore].postpone(HOST, tx.now)
        assert await tx[MediaStore].find_next_due(HOST) == later, "a later retry is kept"
        assert await tx[MediaStore].find_next_due("b.example") is None
        await tx[MediaStore].record_failure(due[A].url_digest, 2, "no answer", tx.now)
    assert (await _list_due(uow, tenant))[A].tries == 2
    await _register_images(uow, tenant)
    assert (await _list_due(uow, tenant)).keys() == {A}, "given up for now"


async def test_an_unreachable_host_fails_all_its_urls(uow: UnitOfWork, tenant: Tenant) -> None:
    """URLs wait according to their own failures, exhausted ones are given up, and other hosts are unaffected."""
    await add_products(uow, tenant, _build_product("1", A, B, C))
    await _register_images(uow, tenant)
    due = await _list_due(uow, tenant)
    delays = (timedelta(minutes=5), timedelta(minutes=20))
    async with uow.begin(tenant, CALL) as tx:
        await tx[MediaStore].record_failure(due[B].url_digest, 2, "no answer", tx.now)
        await tx[MediaStore].record_failure(due[C].url_digest, 1, "no answer", later := tx.now + timedelta(hours=1))
        assert await tx[MediaStore].record_origin_failure(HOST, f"ftp://{HOST}/", "it has no address", delays) == {}
        assert (
            await tx[MediaStore].record_origin_failure("b.example", "https://b.example/", "it has no address", delays)
            == {}
        )
        assert await tx[MediaStore].record_origin_failure(HOST, ORIGIN, "it has no address", delays) == {due[B].run: 1}
        assert await tx[MediaStore].find_next_due(HOST) == tx.now + timedelta(minutes=5) < later
        assert await tx[MediaStore].record_origin_failure(HOST, ORIGIN, "it has no address", delays) == {}, (
            "nothing is due"
        )
        await tx[MediaStore].record_failure(due[A].url_digest, 1, "no answer", tx.now)
        assert await tx[MediaStore].record_origin_failure(HOST, ORIGIN, "it has no address", delays) == {}
        assert await tx[MediaStore].find_next_due(HOST) == tx.now + timedelta(minutes=20)


async def test_a_url_is_fetched_again_after_a_while(uow: UnitOfWork, tenant: Tenant) -> None:
    await add_products(uow, tenant, _build_product("1", A))
    await _register_images(uow, tenant)
    [address] = (await _list_due(uow, tenant)).values()
    image, _ = await _store_image(uow, tenant, replace(address, etag='"1"', last_modified="Mon"), "aa")
    async with uow.begin(tenant, CALL) as tx:
        page = await tx[MediaStore].list_media(SOURCE, builders.MOMENT, None, 9)
        stale = tx.now + timedelta(seconds=1)  # more than a week has passed
        assert not await tx[MediaStore].replace_image_urls(
            {page[0].product: [address.url_digest]}, [replace(address, run="run_2")], stale
        )
    found = (await _list_due(uow, tenant))[A]
    assert (found.image, found.etag, found.last_modified, found.run, found.tries) == (image, '"1"', "Mon", "run_2", 0)


async def test_images_belong_to_one_tenant_and_mode(backend: Backend, tenant: Tenant) -> None:
    await add_products(backend.uow, tenant, _build_product("1", A))
    await _register_images(backend.uow, tenant)
    [address] = (await _list_due(backend.uow, tenant)).values()
    image, _ = await _store_image(backend.uow, tenant, address, "aa")
    for other in (replace(tenant, livemode=False), await backend.tenant()):
        async with backend.uow.begin(other, CALL) as tx:
            assert await tx[MediaStore].get_image(image) is None and await tx[MediaStore].lock_by_content("aa") is None
            assert not await tx[MediaStore].list_due(HOST, 9) and not await tx[MediaStore].has_pending_documents()
            assert not await tx[MediaStore].list_media(SOURCE, builders.MOMENT, None, 9) and not await tx[
                MediaStore
            ].lock_image_url(address.url_digest)


async def test_a_locked_product_is_skipped(backend: Backend, tenant: Tenant) -> None:
    [product] = await add_products(backend.uow, tenant, _build_product("1", A))
    await _register_images(backend.uow, tenant)
    [address] = (await _list_due(backend.uow, tenant)).values()
    image, _ = await _store_image(backend.uow, tenant, address, "aa")
    async with backend.uow.begin(tenant, CALL) as tx:
        await tx[CatalogueStore].load_products(SOURCE, ["1"])
        async with asyncio.timeout(5):
            assert await _rebuild_documents(backend.uow, tenant) == 0
    async with backend.uow.begin(tenant, CALL) as tx:
        assert await tx[MediaStore].has_pending_documents()
    assert await _rebuild_documents(backend.uow, tenant) == 1 and await _list_media(
        backend.uow, tenant, product.id
    ) == {A: image}


async def test_settled_image_entries_are_kept(uow: UnitOfWork, tenant: Tenant) -> None:
    async with uow.begin(tenant, CALL) as tx:
        entry = StoredObject(build_image_key(tenant, "aa", "1"), StoredKind.IMAGE, 30, tx.now)
        other = replace(entry, key=build_image_key(tenant, "aa", "2"))
        assert await tx[StorageLedger].add_entry(entry) == entry and await tx[StorageLedger].add_entry(other) == other
        assert await tx[StorageLedger].remove_age_limit(entry.key)
    async with uow.begin(tenant, CALL) as tx:
        keys = [entry.key, other.key]
        assert await tx[StorageLedger].free_due(keys, tx.now + timedelta(days=1)) == 30
        assert [await tx[StorageLedger].get(key) is not None for key in keys] == [True, False]
        assert not await tx[StorageLedger].remove_age_limit(other.key) and not await tx[StorageLedger].remove_age_limit(
            "images/unknown"
        )
        await tx[StorageLedger].free(entry.key)
        assert await tx[StorageLedger].count_used_bytes() == 0


async def test_renditions_are_created_and_deleted_with_their_image(uow: UnitOfWork, tenant: Tenant) -> None:
    product = _build_product("1", A)
    await add_products(uow, tenant, product)
    await _register_images(uow, tenant)
    address = (await _list_due(uow, tenant))[A]
    async with uow.begin(tenant, CALL) as tx:
        small = (Rendition("images/x/live/1-320", 3, 320, 200), Rendition("images/x/live/1-960", 5, 960, 600))
        image = replace(_build_image(tx, "aa"), renditions=small)
        assert await tx[MediaStore].add(image)
        assert list(await tx[MediaStore].record_image(address, image.id)) == []
    async with uow.begin_reading(tenant) as tx:
        assert await tx[MediaStore].get_image(image.id) == image
    async with uow.begin(tenant, CALL) as tx:
        assert await tx[MediaStore].lock_by_content("aa") == image
        assert sorted(await tx[MediaStore].replace_image_urls({product.id: []}, [], tx.now)) == sorted(image.keys)
        assert len(image.keys) == 3
