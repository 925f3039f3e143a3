"""Withdrawals by complete runs, and the removal limit."""

from typing import Any

from tests.flows.api_client import ApiClient
from tests.flows.feeds import FeedServer, build_catalogue, build_stock_sheet
from tests.flows.service_processes import ServiceProcesses, Tenancy


def _list_withdrawn(tenancy: Tenancy) -> int:
    return sum(1 for offer in tenancy.api.list_all("/v1/offers") if "withdrawn_at" in offer)


def test_a_withdrawn_offer_and_its_return(services: ServiceProcesses, fjord: Tenancy) -> None:
    api, source = fjord.api, fjord.api.create_source("file", config={"currency": "usd"})
    api.import_file(source, build_catalogue(5))
    run = api.import_file(source, build_catalogue(4))
    assert run["stats"]["withdrawn"] == 2 and _list_withdrawn(fjord) == 2
    gone = [offer for offer in api.list_all("/v1/offers") if "withdrawn_at" in offer]
    assert {(offer["quantity"], offer["availability"]) for offer in gone} == {(0, "out_of_stock")}
    types = _list_event_types(services, gone[0]["id"])
    assert types == [("offer.created", 1, None), ("offer.changed", 2, ["stock", "availability"])]
    assert len(api.list_all("/v1/products", source=source)) == 5, "unlisted products remain readable"
    api.import_file(source, build_catalogue(5))
    assert _list_withdrawn(fjord) == 0
    assert [entry[:2] for entry in _list_event_types(services, gone[0]["id"])][-1] == ("offer.changed", 3)


def _list_event_types(services: ServiceProcesses, subject: str) -> list[tuple[Any, ...]]:
    return services.fetch_rows(
        "SELECT type, version, convert_from(body, 'UTF8')::jsonb #> '{data,facets}' FROM events "
        "WHERE subject = %(subject)s ORDER BY position",
        subject=subject,
    )


def test_a_variant_moves_to_another_product(fjord: Tenancy) -> None:
    api, source = fjord.api, fjord.api.create_source("file", config={"currency": "usd"})
    api.import_file(source, build_catalogue(3, variants=3))
    run = api.import_file(source, build_catalogue(3, variants=2))
    assert run["stats"]["withdrawn"] == 3 and _list_withdrawn(fjord) == 3


def test_a_stock_sheet_withdraws_no_products(fjord: Tenancy) -> None:
    """The catalogue still contains the offers: they keep their prices, and their stock becomes unknown."""
    api, source = fjord.api, fjord.api.create_source("file", config={"currency": "usd"})
    api.import_file(source, build_catalogue(4))
    api.import_file(source, build_stock_sheet(4))
    api.import_file(source, build_stock_sheet(3, quantity=9))
    assert _list_withdrawn(fjord) == 0
    offers = api.list_all("/v1/offers")
    assert all(offer["price"] for offer in offers)
    assert sorted(offer.get("quantity", -1) for offer in offers) == [-1, -1, 9, 9, 9, 9, 9, 9]
    assert {offer["availability"] for offer in offers if "quantity" not in offer} == {"unknown"}


def test_a_stock_sheet_without_a_warehouse_withdraws_its_offers(fjord: Tenancy) -> None:
    """The offers of the warehouse are withdrawn; a blank cell of a remaining warehouse withdraws nothing."""
    api, source = fjord.api, fjord.api.create_source("file", config={"currency": "usd"})
    api.import_file(source, build_catalogue(3, variants=1))
    skus = sorted(variant["data"]["sku"] for product in api.list_all("/v1/products") for variant in product["variants"])
    wide = "SKU,NJ,CA,TX\n" + "".join(f"{sku},12,20+,7\n" for sku in skus)
    assert api.import_file(source, wide.encode())["stream"] == "stock"
    narrow = "SKU,NJ,CA\n" + "".join(f"{sku},{'' if sku == skus[0] else 11},20+\n" for sku in skus)
    run = api.import_file(source, narrow.encode())
    assert (run["status"], run["stats"]["withdrawn"]) == ("succeeded", 3)
    gone = {offer["location"] for offer in api.list_all("/v1/offers") if "withdrawn_at" in offer}
    assert gone == {"TX"}
    kept = [offer for offer in api.list_all("/v1/offers") if offer["location"] == "NJ"]
    assert sorted(offer["quantity"] for offer in kept) == [11, 11, 12]


def test_the_loss_of_the_main_warehouse_is_refused(fjord: Tenancy) -> None:
    api, source = fjord.api, fjord.api.create_source("file", config={"currency": "usd"})
    api.import_file(source, build_catalogue(60, variants=1))
    skus = sorted(variant["data"]["sku"] for product in api.list_all("/v1/products") for variant in product["variants"])
    api.import_file(source, ("SKU,NJ,CA\n" + "".join(f"{sku},12,20+\n" for sku in skus)).encode())
    run = api.import_file(source, ("SKU,NJ Qty\n" + "".join(f"{sku},11\n" for sku in skus)).encode())
    assert (run["status"], run["error"]["code"]) == ("failed", "shrink_refused")
    assert _list_withdrawn(fjord) == 0


def test_too_many_removals_are_refused_until_a_second_run_confirms_them(fjord: Tenancy, feeds: FeedServer) -> None:
    api = fjord.api
    url = feeds.serve("/shrink.csv", build_catalogue(60))
    source = api.create_source("url", config={"url": url, "currency": "usd"})
    api.pull(source)
    feeds.serve("/shrink.csv", build_catalogue(20, price=300))
    refused = api.pull(source)
    assert (refused["status"], refused["error"]["code"]) == ("failed", "shrink_refused")
    assert (refused["stats"]["stated"], refused["stats"]["would_withdraw"]) == (120, 80)
    assert _list_withdrawn(fjord) == 0 and {offer["price"] for offer in api.list_all("/v1/offers")}.isdisjoint({30050})
    found = api.get(f"/v1/sources/{source}")
    assert found["status"] == "active", "refusing to shrink says nothing against the source"
    feeds.serve("/shrink.csv", build_catalogue(20, price=301))
    agreed = api.pull(source)
    assert (agreed["status"], agreed["stats"]["withdrawn"]) == ("succeeded", 80)
    assert _list_withdrawn(fjord) == 80


def test_a_second_run_that_removes_more_is_no_confirmation(fjord: Tenancy, feeds: FeedServer) -> None:
    api = fjord.api
    source = api.create_source("url", config={"url": feeds.serve("/less.csv", build_catalogue(60)), "currency": "usd"})
    api.pull(source)
    feeds.serve("/less.csv", build_catalogue(30))
    assert api.pull(source)["error"]["code"] == "shrink_refused"
    feeds.serve("/less.csv", build_catalogue(2))
    assert api.pull(source)["error"]["code"] == "shrink_refused"
    feeds.serve("/less.csv", build_catalogue(60))
    assert api.pull(source)["status"] == "succeeded"
    feeds.serve("/less.csv", build_catalogue(30))
    assert api.pull(source)["error"]["code"] == "shrink_refused", "a successful run in between resets the refusal"


def test_a_person_can_accept_the_removals(fjord: Tenancy, feeds: FeedServer) -> None:
    api = fjord.api
    source = api.create_source(
        "url", config={"url": feeds.serve("/accept.csv", build_catalogue(60)), "currency": "usd"}
    )
    api.pull(source)
    feeds.serve("/accept.csv", build_catalogue(1))
    run = api.pull(source, accept_shrink=True)
    assert (run["status"], run["stats"]["withdrawn"]) == ("succeeded", 118)


def _create_refused_upload(api: ApiClient) -> tuple[str, Any]:
    """Create a file source and a run that exceeds the removal limit."""
    source = api.create_source("file", config={"currency": "usd"})
    api.import_file(source, build_catalogue(60))
    refused = api.import_file(source, build_catalogue(2, price=300))
    assert (refused["status"], refused["error"]["code"]) == ("failed", "shrink_refused")
    return source, refused


def test_a_refused_upload_is_accepted_by_a_replay(fjord: Tenancy) -> None:
    api = fjord.api
    source, refused = _create_refused_upload(api)
    assert "/replay" in refused["error"]["message"] and "accept_shrink" in refused["error"]["message"]
    pull = api.call("POST", f"/v1/sources/{source}/runs", {"accept_shrink": True})
    assert pull.status == 422 and "/replay" in pull.json()["detail"]
    run = api.wait_for_end(api.post(f"/v1/sources/{source}/replay", {"accept_shrink": True})["id"])
    assert (run["status"], run["trigger"], run["stats"]["withdrawn"]) == ("succeeded", "replay", 116)
    assert _list_withdrawn(fjord) == 116
    assert {offer["price"] for offer in api.list_all("/v1/offers") if "withdrawn_at" not in offer} == {30050, 30150}


def test_a_replay_without_confirmation_accepts_nothing(fjord: Tenancy) -> None:
    api = fjord.api
    source, _ = _create_refused_upload(api)
    run = api.wait_for_end(api.post(f"/v1/sources/{source}/replay")["id"])
    assert run["status"] == "succeeded" and _list_withdrawn(fjord) == 0


def test_an_upload_can_be_completed_with_accepted_removals(fjord: Tenancy) -> None:
    api = fjord.api
    source, _ = _create_refused_upload(api)
    content = build_catalogue(1)
    announcement = {"filename": "prices.csv", "content_type": "text/csv", "bytes": len(content)}
    upload = api.post(f"/v1/sources/{source}/uploads", announcement)
    api.put_file(upload["target"], content)
    run = api.wait_for_end(api.post(f"/v1/uploads/{upload['id']}/complete", {"accept_shrink": True})["run"])
    assert (run["status"], run["stats"]["withdrawn"]) == ("succeeded", 118)


def test_few_removals_need_no_confirmation(fjord: Tenancy) -> None:
    api, source = fjord.api, fjord.api.create_source("file", config={"currency": "usd"})
    api.import_file(source, build_catalogue(30))
    assert api.import_file(source, build_catalogue(5))["stats"]["withdrawn"] == 50


def test_offers_of_other_sources_remain(fjord: Tenancy) -> None:
    api = fjord.api
    one, other = (api.create_source("file", config={"currency": "usd"}) for _ in range(2))
    api.import_file(one, build_catalogue(3))
    api.import_file(other, build_catalogue(3))
    api.import_file(one, build_catalogue(1))
    assert {offer["source"] for offer in api.list_all("/v1/offers") if "withdrawn_at" in offer} == {one}


def test_a_price_list_changes_only_prices(services: ServiceProcesses, fjord: Tenancy) -> None:
    """Without columns for stock, products and status, repeated runs withdraw, regroup and reactivate nothing."""
    api, source = fjord.api, fjord.api.create_source("file", config={"currency": "usd"})
    head = b"Parent SKU,SKU,Product Name,Color,Price,Qty NJ,Qty CA,Status,Carton 1 Width (in),Carton 1 Weight (lb)\n"
    full = head + b"".join(
        b"OAK,OAK-%s,Oak stool,%s,79.00,4,5,%s,16,25\n" % row
        for row in ((b"R", b"Red", b"Active"), (b"B", b"Blue", b"Discontinued"))
    )
    api.import_file(source, full)
    before = {offer["id"]: offer for offer in api.list_all("/v1/offers")}
    for price in (b"81.00", b"82.00"):
        run = api.import_file(source, b"SKU,Price\nOAK-R,%s\nOAK-B,%s\n" % (price, price))
        assert run["stats"]["offers_changed"] == 4 and "withdrawn" not in run["stats"]
    api.import_file(source, b"SKU,Carton 1 Weight (lb)\nOAK-R,26\nOAK-B,26\n")
    after = {offer["id"]: offer for offer in api.list_all("/v1/offers")}
    moving = {"price", "version", "observed_at", "updated_at"}
    assert {id: {**offer, **{name: before[id].get(name) for name in moving}} for id, offer in after.items()} == {
        id: {**offer, **{name: offer.get(name) for name in moving}} for id, offer in before.items()
    }
    assert {offer["price"] for offer in after.values()} == {8200}
    (product,) = api.list_all("/v1/products", source=source)
    found = {one["external_id"]: one for one in api.get(f"/v1/products/{product['id']}")["variants"]}
    assert {key: one["status"] for key, one in found.items()} == {"OAK-R": "active", "OAK-B": "discontinued"}
    cartons = [carton for one in found.values() for carton in one["data"]["cartons"]]
    assert [(one["width"]["hundredths_in"], one["weight"]["hundredths_lb"]) for one in cartons] == [(1600, 2600)] * 2
    run = api.import_file(source, full)
    assert run["stats"]["offers_changed"] == 4, "the full file states its prices again"
    assert {offer["price"] for offer in api.list_all("/v1/offers")} == {7900}


def test_a_price_list_of_a_large_catalogue_is_not_refused(fjord: Tenancy) -> None:
    api, source = fjord.api, fjord.api.create_source("file", config={"currency": "usd"})
    names = [(f"P{number}", f"P{number}-{colour}", colour) for number in range(2500) for colour in ("Red", "Blue")]
    rows = "".join(f"{parent},{sku},Oak stool {parent},{colour},79.00,4\n" for parent, sku, colour in names)
    api.import_file(source, f"Parent SKU,SKU,Product Name,Color,Price,Qty\n{rows}".encode())
    prices = "".join(f"{sku},80.00\n" for _, sku, _ in names)
    run = api.import_file(source, f"SKU,Price\n{prices}".encode())
    assert (run["status"], run["stats"]["offers_changed"]) == ("succeeded", 5000), run
    run = api.import_file(source, f"SKU,Price\n{prices[:600]}\n".encode())
    assert run["error"]["code"] == "shrink_refused", "most products are missing"
