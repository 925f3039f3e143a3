"""Variants of an earlier release have their GTIN's key after migration 0022, and documents tell the source's keys."""

import json

import psycopg
import pytest

from adapters.postgres import migrate
from adapters.wire.catalogue import product as rendered
from domain.catalogue import search
from domain.catalogue.model import Product
from tests.postgres.databases import database_alone
from tests.support import builders

pytestmark = pytest.mark.asyncio
GTINS = ("4006381333931", "00012345678905", "9638-5074", "no number", "0", None)
KEYS = ("K-1", 'a"b\\c\u2028ö', "\ttab")


def _products() -> list[Product]:
    products = []
    for number, key in enumerate(KEYS):
        product = builders.product(
            "src_1", "cat_1", key, data={"title": 'A {"object":"variant","id":"var_x"} in a text'}
        )
        for place, gtin in enumerate(GTINS if number < 2 else ()):
            data = {"axes": {"object": "variant", "id": "var_0000000000000000000000"}} | (
                {"gtin": gtin} if gtin else {}
            )
            builders.offer(builders.variant(product, f"{key}/{place}", data=data))
        products.append(product)
    return products


def _as_before(product: Product) -> bytes:
    """The document as it was rendered before keys were told."""
    value = json.loads(rendered(product, {}))
    for part in (value, *value["variants"]):
        del part["external_id"]
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


async def test_gtins_and_documents_are_as_runs_write_them(monkeypatch: pytest.MonkeyPatch) -> None:
    products = _products()
    async with database_alone("finding", migrated=False) as address:
        with monkeypatch.context() as patched:
            before = [entry for entry in migrate.available() if entry[0] < "0022"]
            patched.setattr(migrate, "available", lambda: before)
            await migrate.migrate(address)
        async with await psycopg.AsyncConnection.connect(address, autocommit=True) as owner:
            for product in products:
                await _store(owner, product)
            await migrate.migrate(address)
            keys = dict(await (await owner.execute("SELECT id, gtin_key FROM variants")).fetchall())
            found = await (await owner.execute("SELECT product, body, etag FROM product_documents")).fetchall()
    assert keys == {one.id: search.gtin_key(one.data.get("gtin")) for product in products for one in product.variants}
    assert {id: json.loads(body) for id, body, _ in found} == {
        one.id: json.loads(rendered(one, {})) for one in products
    }
    assert all(len(etag) == 24 for _, _, etag in found)


async def _store(owner: psycopg.AsyncConnection, product: Product) -> None:
    await owner.execute(
        "INSERT INTO products (org, livemode, id, catalogue, source, key, status, version, visibility, data, created_at, "
        "updated_at) VALUES ('org_1', true, %s, 'cat_1', 'src_1', %s, 'active', 1, 'listed', '{}', now(), now())",
        (product.id, product.key),
    )
    await owner.execute(
        "INSERT INTO product_documents (org, livemode, product, body, etag) VALUES ('org_1', true, %s, %s, 'before')",
        (product.id, _as_before(product)),
    )
    for variant in product.variants:
        await owner.execute(
            "INSERT INTO variants (org, livemode, id, product, source, key, status, version, data, updated_at) "
            "VALUES ('org_1', true, %s, %s, 'src_1', %s, 'active', 1, %s, now())",
            (variant.id, product.id, variant.key, json.dumps(variant.data).encode()),
        )
