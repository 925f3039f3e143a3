"""Items that join or leave a family keep their IDs and offers; parts of bundles are not products."""

from typing import Any

from tests.flows.service_processes import Tenancy

_HEAD = "SKU,Record Kind,Parts,Title,Color,Price,Weight (lb)\n"
_QUEEN = 'WREN10Q-BED,Single,,"Queen Bed, Sand",Sand,900,150\n'
_KING = 'WREN10EK-BED,Single,,"E.King Bed, Sand",Sand,990,170\n'
_LAMP = "LAMP7,Single,,Reading Lamp,Brass,40,4\n"


def _read_variants(tenancy: Tenancy) -> tuple[dict[str, tuple[str, str]], set[str]]:
    """Return ID and product of each variant by SKU, and the SKUs with current offers."""
    products = tenancy.api.list_all("/v1/products")
    variants = {v["data"]["sku"]: (v["id"], product["id"]) for product in products for v in product["variants"]}
    offers = [offer for offer in tenancy.api.list_all("/v1/offers") if "withdrawn_at" not in offer]
    skus = {number: sku for sku, (number, _) in variants.items()}
    return variants, {skus[offer["variant"]] for offer in offers}


def _import_file(tenancy: Tenancy, source: str, *rows: str) -> dict[str, Any]:
    run: dict[str, Any] = tenancy.api.import_file(source, (_HEAD + "".join(rows)).encode())
    assert run["status"] == "succeeded"
    return run


def test_an_item_joins_and_leaves_a_family(fjord: Tenancy) -> None:
    source = fjord.api.create_source("file", config={"currency": "usd"})
    _import_file(fjord, source, _QUEEN, _LAMP)
    alone, _ = _read_variants(fjord)
    _import_file(fjord, source, _QUEEN, _LAMP, _KING)
    joined, stated = _read_variants(fjord)
    assert joined["WREN10Q-BED"][0] == alone["WREN10Q-BED"][0]
    assert joined["WREN10Q-BED"][1] == joined["WREN10EK-BED"][1]
    assert stated == {"WREN10Q-BED", "WREN10EK-BED", "LAMP7"}
    _import_file(fjord, source, _LAMP, _QUEEN)
    left, stated = _read_variants(fjord)
    assert left["WREN10Q-BED"][0] == alone["WREN10Q-BED"][0]
    assert stated == {"WREN10Q-BED", "LAMP7"}


def test_bundle_parts_are_not_products_and_update_their_bundle(fjord: Tenancy) -> None:
    source = fjord.api.create_source("file", config={"currency": "usd"})
    bundle = 'FINCH-5,Set,"FINCH-T, FINCH-C-2PK",5 Pc. Dining Set,Oak,700,160\n'
    table, chairs = "FINCH-T,Part,,,,300,100\n", "FINCH-C-2PK,Part,,,,90,{}\n"
    run = _import_file(fjord, source, bundle, table, chairs.format(30))
    assert [problem["field"] for problem in run["problems"]] == ["title"]
    (product,) = fjord.api.list_all("/v1/products")
    assert [part["quantity"] for part in product["variants"][0]["data"]["components"]] == [1, 2]
    _import_file(fjord, source, bundle, table, chairs.format(15))
    (product,) = fjord.api.list_all("/v1/products")
    parts = product["variants"][0]["data"]["components"]
    assert ["quantity" in part for part in parts] == [False, False], "four packs of two would be more pieces than five"
