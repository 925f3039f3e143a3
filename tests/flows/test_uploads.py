"""Uploads from the announcement to products, and repeated uploads."""

import hashlib

from tests.flows.feeds import build_catalogue, build_stock_sheet
from tests.flows.service_processes import ServiceProcesses, Tenancy

USD = {"currency": "usd"}


def test_an_announced_file_becomes_products(fjord: Tenancy) -> None:
    api, content = fjord.api, build_catalogue(12)
    source = api.create_source("file", config=USD)
    announcement = {"filename": "prices.csv", "content_type": "text/csv", "bytes": len(content)}
    upload = api.post(f"/v1/sources/{source}/uploads", announcement, 201)
    assert (upload["object"], upload["status"], upload["target"]["method"]) == ("upload", "pending", "PUT")
    early = api.call("POST", f"/v1/uploads/{upload['id']}/complete")
    assert (early.status, early.code) == (409, "conflict")
    assert api.put_file(upload["target"], content).status in (200, 201, 204)
    completed = api.post(f"/v1/uploads/{upload['id']}/complete", expect=200)
    assert (completed["status"], "target" in completed) == ("completed", False)
    run = api.wait_for_end(completed["run"])
    assert (run["status"], run["stage"], run["trigger"], run["stream"]) == ("succeeded", "done", "upload", "catalogue")
    assert run["stats"]["rows"] == 24 and run["stats"]["products_created"] == 12 and run["problems"] == []
    assert api.get(f"/v1/uploads/{upload['id']}")["run"] == run["id"]
    products = api.list_all("/v1/products", source=source)
    assert min(product["data"]["title"] for product in products) == "Ash chair 10"
    offer = products[-1]["variants"][0]["offers"][0]
    assert (offer["price"], offer["cost"], offer["currency"], offer["quantity"]) == (10050, 5000, "usd", 7)
    fresh = api.get(f"/v1/sources/{source}")["freshness"]
    assert fresh["catalogue"]["state"] == "fresh" and fresh["stock"] is None


def test_the_target_accepts_the_announced_file_only(fjord: Tenancy) -> None:
    api = fjord.api
    source = api.create_source("file", config=USD)
    announcement = {"filename": "prices.csv", "content_type": "text/csv", "bytes": 10}
    upload = api.post(f"/v1/sources/{source}/uploads", announcement)
    target = upload["target"]
    assert api.put_file(target, b"x" * 11).status == 413
    assert api.put_file(target | {"headers": {"Content-Type": "image/png"}}, b"x" * 10).status in (403, 415)
    assert api.put_file(target | {"url": target["url"].replace("limit=10", "limit=99")}, b"x" * 50).status == 403
    assert api.put_file(target | {"url": target["url"].replace("upl_", "upl_0")}, b"x" * 10).status == 403
    assert api.call("POST", f"/v1/uploads/{upload['id']}/complete").status == 409
    assert api.put_file(target, b"x" * 9).status in (200, 201, 204)
    short = api.call("POST", f"/v1/uploads/{upload['id']}/complete")
    assert (short.status, short.code) == (422, "unprocessable")
    assert api.list_all(f"/v1/sources/{source}/runs") == []


def test_a_repeated_completion_starts_no_run(fjord: Tenancy) -> None:
    api = fjord.api
    source = api.create_source("file", config=USD)
    run = api.import_file(source, build_catalogue(2))
    upload = fjord.api.list_all(f"/v1/sources/{source}/runs")[0]
    assert upload["id"] == run["id"]
    announcement = {"filename": "a.csv", "content_type": "text/csv", "bytes": len(build_catalogue(3))}
    second = api.post(f"/v1/sources/{source}/uploads", announcement)
    api.put_file(second["target"], build_catalogue(3))
    runs = {api.post(f"/v1/uploads/{second['id']}/complete")["run"] for _ in range(3)}
    assert len(runs) == 1
    api.wait_for_end(runs.pop())
    assert len(api.list_all(f"/v1/sources/{source}/runs")) == 2


def test_the_same_file_again_changes_nothing(services: ServiceProcesses, fjord: Tenancy) -> None:
    api = fjord.api
    source = api.create_source("file", config=USD)
    api.import_file(source, build_catalogue(5))
    events = _list_events(services, fjord)
    again = api.import_file(source, build_catalogue(5))
    assert again["status"] == "succeeded" and again["stats"]["unchanged_feed"] == 1
    other_bytes = api.import_file(source, build_catalogue(5).replace(b"\n", b"\r\n"))
    assert other_bytes["stats"]["unchanged"] == 5 and "unchanged_feed" not in other_bytes["stats"]
    assert _list_events(services, fjord) == events


def test_a_stock_sheet_is_distinguished_from_an_item_master(fjord: Tenancy) -> None:
    api = fjord.api
    source = api.create_source("file", config=USD)
    api.import_file(source, build_catalogue(6))
    run = api.import_file(source, build_stock_sheet(6, quantity=0))
    assert (run["status"], run["stream"], run["stats"]["offers_changed"]) == ("succeeded", "stock", 12)
    offers = api.list_all("/v1/offers", source=source)
    assert {(offer["quantity"], offer["availability"], offer["price"] > 0) for offer in offers} == {
        (0, "out_of_stock", True)
    }
    products = api.list_all("/v1/products", availability="out_of_stock")
    assert len(products) == 6 and api.list_all("/v1/products", availability="in_stock") == []
    unknown = api.import_file(source, build_stock_sheet(7, quantity=2))
    assert {problem["problem"] for problem in unknown["problems"]} == {"missing"}
    assert unknown["stats"]["problems"] == 2


def test_an_uploaded_file_is_stored_unchanged(services: ServiceProcesses, fjord: Tenancy) -> None:
    """The snapshot is content-addressed, so that a replay does not request the vendor."""
    content = build_catalogue(3)
    run = fjord.api.import_file(fjord.api.create_source("file", config=USD), content)
    key = services.fetch_value("SELECT snapshot FROM runs WHERE id = %(id)s", id=run["id"])
    assert key.endswith(hashlib.sha256(content).hexdigest()) and fjord.tenant.org in key


def test_other_source_kinds_refuse_files(fjord: Tenancy) -> None:
    announcement = {"filename": "a.csv", "content_type": "text/csv", "bytes": 1}
    push = fjord.api.create_source("push")
    assert fjord.api.call("POST", f"/v1/sources/{push}/uploads", announcement).status == 422
    paused = fjord.api.create_source("file")
    fjord.api.patch_source(paused, status="paused")
    assert fjord.api.call("POST", f"/v1/sources/{paused}/uploads", announcement).status == 409


def _list_events(services: ServiceProcesses, tenancy: Tenancy) -> int:
    return int(
        services.fetch_value(
            "SELECT count(*) FROM events WHERE org = %(org)s AND type NOT LIKE 'proposal.%%'", org=tenancy.tenant.org
        )
    )
