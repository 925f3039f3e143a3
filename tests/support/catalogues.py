"""Catalogues with chosen or random contents, and plain copies of the contents for comparison."""

import copy
import random
from collections.abc import Mapping, Sequence
from datetime import datetime

import psycopg

from domain.catalogue import categories
from domain.catalogue.batch import SLOT_COUNT, Batch, RowFingerprint, SlotRange
from domain.catalogue.model import Availability, OfferFilter, Product, ProductFilter, ProductStatus, Stream
from domain.catalogue.ports import CatalogueStore
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from domain.media.model import Image, Rendition, build_image_urls
from domain.media.ports import MediaStore
from ports.unit_of_work import UnitOfWork
from tests.support import builders

BRANDS = ("West  Elm", "WEST ELM", "Lindgren Möbler", "Fermob", "O'Keeffe & Co.", None)
WORDS = ("Oak", "table", "TABLE", "Söta", "sofa", "3-seater", "Café", "chair", "lamp", "rug")
CODES = ("AB-12/c", "ab12C", "LM 1001", "lm-1001.x", "Ö-7")
GTINS = ("4006381333931", "04006381333931", "96385074", "00000096385074", "012345678905")
LOCATIONS = ("main", "east")


def full_key_range(source: str, stream: Stream = Stream.CATALOGUE) -> SlotRange:
    """Return the key range that covers every slot of the stream."""
    return SlotRange(source, stream, 0, SLOT_COUNT)


def build_batch(*products: Product) -> Batch:
    """Return a batch that adds whole products."""
    batch = Batch(new_products=list(products), touched={product.id: product for product in products})
    batch.new_variants = [variant for product in products for variant in product.variants]
    batch.new_offers = [offer for variant in batch.new_variants for offer in variant.offers]
    return batch


async def store_batch(
    uow: UnitOfWork, tenant: Tenant, batch: Batch, key_range: SlotRange, now: datetime = builders.MOMENT
) -> None:
    """Write the batch in a separate transaction."""
    async with uow.begin(tenant, builders.CALL) as tx:
        await tx[CatalogueStore].save_batch(key_range, batch, now)


async def add_products(
    uow: UnitOfWork, tenant: Tenant, *products: Product, now: datetime = builders.MOMENT
) -> list[Product]:
    """Add whole products of one source; return plain copies as they should be stored."""
    copies = copy.deepcopy(list(products))
    await store_batch(uow, tenant, build_batch(*products), full_key_range(products[0].source), now)
    for product in copies:
        product.updated_at = now
        product.variants.sort(key=lambda variant: variant.id)
        for variant in product.variants:
            variant.updated_at = now
            variant.offers.sort(key=lambda offer: offer.id)
            for offer in variant.offers:
                offer.updated_at = now
    return copies


async def add_image(uow: UnitOfWork, tenant: Tenant, product: str, url: str = "https://a.example/1.jpg") -> Image:
    """Store an image that the product refers to."""
    [address] = build_image_urls([url], "run_1")
    async with uow.begin(tenant, builders.CALL) as tx:
        key = f"images/{tenant.org}/live/1-aa"
        small = (Rendition(f"{key}-320", 11_204, 320, 240), Rendition(f"{key}-960", 60_113, 960, 720))
        image = Image(new_id("img"), "aa", key, 148_213, 1600, 1200, tx.now, small)
        await tx[MediaStore].replace_image_urls({product: [address.url_digest]}, [address], tx.now)
        assert await tx[MediaStore].add(image)
        await tx[MediaStore].record_image(address, image.id)
    return image


FAMILIES: Mapping[str, tuple[Sequence[str], Sequence[str]]] = {
    "Walnut": ((), ("walnut",)),
    "Nussbaum / Schwarz": (("black",), ("walnut",)),
    "light grey": (("grey",), ()),
    "Anthrazit": (("grey",), ()),
    "Crème": (("cream",), ()),
    "Eiche": ((), ("oak",)),
    "Sunset": ((), ()),
}
"""Colours and finishes of random products, with the families of colours and of finishes to which they belong."""


def row_fingerprint(key: str, fingerprint: bytes = b"1", product: str = "", slot: int | None = None) -> RowFingerprint:
    """A fingerprint with the given key."""
    return RowFingerprint(hash(key) % SLOT_COUNT if slot is None else slot, key, fingerprint, product)


def random_product(dice: random.Random, source: str, catalogue: str, key: str) -> Product:
    """Return a product with up to three variants with up to two offers each."""
    data: dict[str, object] = {"title": " ".join(dice.sample(WORDS, dice.randint(1, 4)))}
    if brand := dice.choice(BRANDS):
        data["brand"] = brand
    if dice.random() < 0.7:
        data["category"] = dice.choice(list(categories.category_by_id()))
    product = builders.product(source, catalogue, key, data=data, status=dice.choice(list(ProductStatus)))
    for number in range(dice.randint(0, 3)):
        facts: dict[str, object] = {name: dice.choice(CODES) for name in ("sku", "mpn") if dice.random() < 0.5}
        if dice.random() < 0.5:
            facts["gtin"] = dice.choice(GTINS)
        if dice.random() < 0.6:
            facts[dice.choice(["colour", "finish"])] = dice.choice(list(FAMILIES))
        if dice.random() < 0.3:
            facts |= {"materials": ["wood"], "media": [{"url": "https://a.example/1.jpg"}]}
        variant = builders.variant(product, f"{key}/{number}", data=facts)
        for location in LOCATIONS[: dice.randint(0, 2)]:
            availability = dice.choice(list(Availability))
            offer: dict[str, object] = {"availability": availability, "quantity": dice.randint(0, 9)}
            if dice.random() < 0.7:
                offer |= {
                    "currency": dice.choice(["eur", "usd"]),
                    dice.choice(["price", "price", "msrp"]): dice.randint(0, 9),
                }
            withdrawn_at = builders.MOMENT if dice.random() < 0.2 else None
            builders.offer(variant, location=location, data=offer, withdrawn_at=withdrawn_at)
    return product


def random_product_filter(dice: random.Random, products: list[Product], moments: list[datetime]) -> ProductFilter:
    """Return a filter of one to three conditions, most of which match a product."""
    some = dice.choice(products)
    ids = list(categories.category_by_id())
    possible: dict[str, object] = {
        "updated_since": dice.choice(moments),
        "status": dice.sample(list(ProductStatus), dice.choice([1, 1, 2])),
        "brand": dice.choice(["westelm", "west elm", " Fermob ", "LINDGREN MÖBLER", "nobody"]),
        "brands": dice.choices(["westelm", " Fermob ", "LINDGREN MÖBLER", "nobody"], k=dice.choice([1, 2])),
        "category": dice.sample(
            [*categories.path_ids(some.data.get("category")), dice.choice(ids), "ctg_" + "0" * 22],
            dice.choice([1, 1, 2]),
        ),
        "availability": dice.sample(list(Availability), dice.choice([1, 1, 3])),
        "source": dice.sample([some.source, "src_0000000000000000000000"], dice.choice([1, 1, 2])),
        "colour": dice.sample(["grey", "black", "cream", "red"], dice.choice([1, 2])),
        "finish": dice.sample(["walnut", "oak", "brass"], dice.choice([1, 2])),
        "completeness": dice.sample(["low", "medium", "high", "complete"], dice.choice([1, 2])),
        "currency": dice.choice(["eur", "usd", "chf"]),
        "catalogue": dice.choice([some.catalogue, some.catalogue, "cat_0000000000000000000000"]),
        "q": dice.choice(
            ["oak", "OAK table", "sota", "seater 3", "cafe chair lamp", "ab12c", "LM-1001", "elm", "tab", "ö7"]
        ),
    }
    possible |= _random_codes(dice, [product.key for product in products], products)
    possible["id"] = [one.id for one in dice.choices(products, k=dice.randint(1, 9))]
    possible["variant"] = _some_ids(dice, [variant.id for product in products for variant in product.variants])
    possible["offer"] = _some_ids(dice, [o.id for product in products for v in product.variants for o in v.offers])
    chosen = dice.sample(sorted(possible), dice.randint(1, 3))
    if "currency" in chosen and dice.random() < 0.7:
        possible |= {"min_price": dice.randint(0, 5), "max_price": dice.randint(4, 9)}
        chosen += dice.sample(["min_price", "max_price"], dice.choice([1, 2]))
    return ProductFilter(**{name: possible[name] for name in chosen})  # type: ignore[arg-type]


def _some_ids(dice: random.Random, ids: list[str]) -> list[str]:
    """Return some of the IDs and one unknown ID."""
    return [*dice.choices(ids, k=dice.randint(1, 9)), ids[0][:-22] + "0" * 22]


def _random_codes(dice: random.Random, keys: list[str], products: list[Product]) -> dict[str, object]:
    """Return codes, most of which are exactly or nearly a variant's."""
    codes = (*CODES, "AB-12/C", "lm 1001", "--", "")
    keys = [*keys, *(variant.key for product in products for variant in product.variants), "none", ""]
    return {
        "external_id": dice.choices(keys, k=dice.randint(1, 9)),
        "sku": dice.choices(codes, k=dice.randint(1, 3)),
        "mpn": dice.choices(codes, k=dice.randint(1, 3)),
        "gtin": dice.choices((*GTINS, "4006381333931 ", "9638-5074", "12345678905", "0", "x"), k=dice.randint(1, 3)),
    }


def random_offer_filter(dice: random.Random, products: list[Product], moments: list[datetime]) -> OfferFilter:
    """Return a filter of one to three conditions, most of which match an offer."""
    offers = [offer for product in products for variant in product.variants for offer in variant.offers]
    some = dice.choice(offers)
    possible: dict[str, object] = {
        "variant": some.variant,
        "product": some.product,
        "source": some.source,
        "availability": dice.choice(list(Availability)),
        "updated_since": dice.choice(moments),
    }
    possible |= _random_codes(dice, [variant.key for product in products for variant in product.variants], products)
    possible["id"] = _some_ids(dice, [offer.id for offer in offers])
    chosen = dice.sample(sorted(possible), dice.randint(1, 3))
    return OfferFilter(**{name: possible[name] for name in chosen})  # type: ignore[arg-type]


def publish_product(address: str, org: str, product: str, *, livemode: bool = True) -> None:
    """Store the row of a published product that every organisation can read."""
    values = {"livemode": livemode, "id": product, "org": org, "catalogue": f"cat_of_{org}"}
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO published_products (livemode, id, org, catalogue, source, key, status, version, data, updated_at) "
            "VALUES (%(livemode)s, %(id)s, %(org)s, %(catalogue)s, 'src_1', 'A', 'active', 1, '{}', now())",
            values,
        )
        connection.execute(
            "INSERT INTO licences (org, livemode, catalogue, holder, groups) "
            "VALUES (%(org)s, %(livemode)s, %(catalogue)s, '*', '{base,retail}') ON CONFLICT DO NOTHING",
            values,
        )
