"""The view with corrections, compared with a plain computation, and that removing corrections restores it."""

import copy
import random
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from domain.catalogue.corrections import Correction, CorrectionAction, Corrections, FeedState
from domain.catalogue.merged_statements import ProductCluster, compute_view
from domain.catalogue.merged_view import MergedViewBuilder, ViewChangeCause
from domain.catalogue.model import Product
from domain.corrections.usecases.editing import CorrectionEditor
from domain.kernel.ids import new_id
from tests.support import builders

FIELDS = {
    "product": ("title", "brand", "compliance.country_of_origin"),
    "variant": ("colour", "dimensions.width", "dimensions.depth", "axes.Size"),
    "offer": ("price", "msrp", "quantity", "availability", "lead_time_days"),
}


def create_correction(object: str, product: str, field: str, value: Any, **changes: Any) -> Correction:
    action = CorrectionAction.CLEAR if value is None else CorrectionAction.OVERRIDE
    return Correction(
        **{
            "id": new_id("cor"), "source": "src_corrections", "product": product, "object": object, "field": field,
            "action": action, "value": value, "made_by": "usr_anna", "made_at": builders.MOMENT,
            "created_at": builders.MOMENT, "updated_at": builders.MOMENT,
        } | changes
    )  # fmt: skip


def draw_value(dice: random.Random, field: str) -> Any:
    """Return a value of a field, or None."""
    if dice.random() < 0.25:
        return None
    if field in ("price", "msrp"):
        return {"amount": dice.randint(1, 999), "currency": dice.choice(("usd", "eur"))}
    if field in ("quantity", "lead_time_days"):
        return dice.randint(0, 9)
    return dice.choice(("in_stock", "preorder", "discontinued")) if field == "availability" else dice.choice("abc")


def draw_cluster(dice: random.Random) -> ProductCluster:
    """Return products of two sources, some of them merged, with random values."""
    products = {}
    for key in "ABC":
        product = builders.product(f"src_{key}", "cat_1", key, data={"title": key, "brand": dice.choice("xy")})
        for number in range(dice.randint(1, 3)):
            data = {"colour": dice.choice("rgb"), "dimensions": {"width": dice.randint(1, 3)}}
            variant = builders.variant(product, f"{key}{number}", data=data)
            offer = {
                "currency": "usd",
                "price": dice.randint(1, 9),
                "availability": "in_stock",
                "quantity": dice.randint(1, 9),
            }
            builders.offer(variant, data=offer)
        products[product.id] = product
    [one, *others] = products.values()
    merged = {}
    for other in others[: dice.randint(0, 2)]:
        merged |= {other.id: one.id, other.variants[0].id: one.variants[0].id}
    return ProductCluster(products, merged)


def draw_corrections(dice: random.Random, cluster: ProductCluster) -> list[Correction]:
    """Return at most one correction of each field."""
    found = []
    for product in cluster.products.values():
        objects = [("product", product.id)]
        objects += [("variant", variant.id) for variant in product.variants]
        objects += [("offer", offer.id) for variant in product.variants for offer in variant.offers]
        for level, id in objects:
            for field in FIELDS[level]:
                if dice.random() < 0.3:
                    made_at = builders.MOMENT + timedelta(seconds=dice.randint(0, 99))
                    found.append(create_correction(id, product.id, field, draw_value(dice, field), made_at=made_at))
    return found


def overlay(data: dict[str, Any], corrections: list[Correction]) -> dict[str, Any]:
    """Return data with corrections, one path after the other, without empty objects."""
    data = copy.deepcopy(data)
    for one in corrections:
        name, _, part = one.field.partition(".")
        target = data.setdefault(name, {}) if part else data
        target[part or name] = one.value
        if one.value is None:
            del target[part or name]
        if part and not data[name]:
            del data[name]
    return data


@pytest.mark.parametrize("seed", range(60))
def test_the_view_is_the_merged_view_with_corrections_on_top(seed: int) -> None:
    dice = random.Random(seed)
    cluster = draw_cluster(dice)
    plain = compute_view(cluster)
    corrections = draw_corrections(dice, cluster)
    cluster.corrections = Corrections.from_list(corrections)
    view = compute_view(cluster)
    assert view.products.keys() == plain.products.keys()
    for items, stated in ((view.products, plain.products), (view.map_variants(), plain.map_variants())):
        for id, item in items.items():
            own = sorted(
                (one for one in corrections if cluster.find_representative(one.object) == id),
                key=lambda one: (one.object == id, one.made_at, one.id),
            )
            own = [one for one in own if one.object == id or not one.field.startswith("axes.")]
            latest = {one.field: one for one in own}
            assert item.data == overlay(stated[id].data, list(latest.values()))
            for field, one in latest.items():
                assert view.origins[id][field] == (one.source, one.made_at, "person_edit")
    for id, offer in view.map_offers().items():
        own = {one.field: one for one in corrections if one.object == id}
        data = offer.data
        for field in ("availability", "lead_time_days"):
            if field in own:
                assert data.get(field, None) == (
                    own[field].value or ("unknown" if field == "availability" else own[field].value)
                )
        if "quantity" in own:
            assert data.get("quantity") == own["quantity"].value
            if own["quantity"].value == 0 and "availability" not in own:
                assert data["availability"] == "out_of_stock"
        prices = [own[name] for name in ("price", "msrp") if name in own and own[name].value]
        if prices:
            newest = max(prices, key=lambda one: (one.made_at, one.id))
            assert data["currency"] == newest.value["currency"] and data[newest.field] == newest.value["amount"]
        assert ("currency" in data) == any(name in data for name in ("price", "msrp"))


@pytest.mark.parametrize("seed", range(30))
def test_removing_corrections_after_runs_gives_the_view_without_them(seed: int) -> None:
    """Corrections are made, feeds change values, and corrections are removed: every step has the events of what readers see."""
    dice = random.Random(1000 + seed)
    cluster = draw_cluster(dice)
    cluster.corrections = Corrections.from_list(draw_corrections(dice, cluster))
    copies = {offer.id: dict(offer.data) for offer in compute_view(cluster).map_offers().values()}
    for step in range(6):
        before = compute_view(cluster)
        for product in cluster.products.values():
            if dice.random() < 0.5:
                product.data = {**product.data, "title": dice.choice("abcx"), "brand": dice.choice("abxy")}
            for variant in product.variants:
                for offer in variant.offers:
                    offer.data = {**offer.data, "price": dice.randint(1, 9), "quantity": dice.randint(1, 9)}
        builder = MergedViewBuilder(before, cluster, ViewChangeCause("run_1", builders.MOMENT + timedelta(hours=step)))
        merged_view = builder.build()
        cluster.corrections = builder.cluster.corrections
        for event in builder.events:
            if event.type == "offer.changed":
                for path, old, new in event.fields:
                    assert copies[event.subject].get(path) == old
                    copies[event.subject] = {
                        n: v for n, v in {**copies[event.subject], path: new}.items() if v is not None
                    }
        for offer, stated in merged_view.corrected_offers:
            assert copies[offer.id] == offer.data
            assert stated == next(o.data for o in list_offers(cluster) if o.id == offer.id)
        for one in cluster.corrections.list_all():
            expected = FeedState.AGREES if one.feed_value == one.value else FeedState.CHANGED
            assert one.feed_state == (FeedState.UNCHANGED if one.feed_value == one.stated_value else expected)
    cluster.corrections = Corrections()
    after = compute_view(cluster)
    untouched = compute_view(ProductCluster(cluster.products, cluster.survivor_by_id))
    assert after == untouched and not cluster.map_merge_groups().keys() - merged_ids(cluster)


def list_offers(cluster: ProductCluster) -> list[Any]:
    return [offer for product in cluster.products.values() for variant in product.variants for offer in variant.offers]


def merged_ids(cluster: ProductCluster) -> set[str]:
    return {id for pair in cluster.survivor_by_id.items() for id in pair}


def test_a_withdrawn_offer_stays_withdrawn() -> None:
    product = builders.product("src_A", "cat_1", "A", data={})
    variant = builders.variant(product, "A0", data={})
    offer = builders.offer(variant, data={"quantity": 0, "availability": "out_of_stock", "currency": "usd", "price": 5})
    offer.withdrawn_at = builders.MOMENT
    corrections = [
        create_correction(offer.id, product.id, "quantity", 7),
        create_correction(offer.id, product.id, "price", {"amount": 9, "currency": "usd"}),
    ]
    view = compute_view(ProductCluster({product.id: product}, corrections=Corrections.from_list(corrections)))
    assert view.map_offers()[offer.id].data == {
        "quantity": 0,
        "availability": "out_of_stock",
        "currency": "usd",
        "price": 9,
    }


def test_a_corrected_product_is_a_merge_group() -> None:
    product = builders.product("src_A", "cat_1", "A", data={"title": "A"})
    cluster = ProductCluster({product.id: product})
    assert cluster.map_merge_groups() == {}
    cluster.corrections = Corrections.from_list([create_correction(product.id, product.id, "title", "B")])
    assert cluster.map_merge_groups() == {product.id: product.id}
    other: Product = builders.product("src_B", "cat_1", "B", data={})
    assert not cluster.corrections.restrict_to({other.id})


def test_an_editor_does_not_copy_all_corrections_for_each_change() -> None:
    """Copies made a bulk correction of many offers take time in proportion to the square of their number."""
    product = builders.product("src_a", "cat_1", "A")
    for number in range(3):
        builders.offer(builders.variant(product, str(number)), data={"currency": "usd", "price": 1})
    tx: Any = SimpleNamespace(now=builders.MOMENT)
    cluster = ProductCluster({product.id: product}, {})
    editor = CorrectionEditor(tx, cluster, "src_corrections", "usr_anna")
    held = editor.corrections
    offers = editor.list_objects(product.id, "offer")
    for offer in offers:
        assert editor.apply(offer, "price", "override", {"amount": 2, "currency": "usd"})
    assert editor.corrections is held and {*held.by_object} == {*offers}
    assert not cluster.corrections, "the corrections before the changes are kept"
    for offer in offers:
        assert editor.apply(offer, "price", "remove")
    assert not editor.corrections
