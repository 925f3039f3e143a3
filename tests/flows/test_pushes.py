"""Records pushed by call and by batch."""

from typing import Any

import pytest

from tests.flows.feeds import build_record
from tests.flows.service_processes import ServiceProcesses, Tenancy


@pytest.fixture
def source(fjord: Tenancy) -> str:
    """Create a push source."""
    return fjord.api.create_source("push", config={"currency": "usd"})


def _list_titles(tenancy: Tenancy) -> set[str]:
    return {product["data"]["title"] for product in tenancy.api.list_all("/v1/products")}


def _list_offers(tenancy: Tenancy) -> dict[str, Any]:
    return {offer["variant_sku"]: offer for offer in tenancy.api.list_all("/v1/offers")}


def test_each_call_is_one_run(fjord: Tenancy, source: str) -> None:
    queued = fjord.api.push(source, [build_record("A"), build_record("B", price="1.999"), build_record("C", price=12)])
    assert (queued["status"], queued["trigger"]) == ("queued", "push")
    run = fjord.api.wait_for_end(queued["id"])
    assert run["status"] == "succeeded" and run["stats"]["products_created"] == 3
    offers = _list_offers(fjord)
    assert (offers["A-1"]["price"], offers["C-1"]["price"]) == (1050, 1200)
    assert {problem["line"] for problem in run["problems"] if problem["field"].endswith("price")} <= {2}


def test_a_batch_stays_open_until_its_last_call(fjord: Tenancy, source: str) -> None:
    api = fjord.api
    first = api.push(source, [build_record("A")], batch="spring", more=True)
    second = api.push(source, [build_record("B")], batch="spring", more=True)
    assert first["id"] == second["id"] and second["status"] == "queued"
    assert _list_titles(fjord) == set()
    other = api.push(source, [build_record("X", title="Other")])
    assert other["id"] != first["id"]
    assert api.wait_for_end(other["id"])["status"] == "succeeded"
    last = api.push(source, [build_record("C")], batch="spring", complete=True)
    assert last["id"] == first["id"]
    run = api.wait_for_end(last["id"])
    assert run["stats"]["rows"] == 3
    offers = _list_offers(fjord)
    assert "withdrawn_at" in offers["X-1"], "the batch was complete, and did not state it"
    assert all("withdrawn_at" not in offers[key] for key in ("A-1", "B-1", "C-1"))


def test_only_a_complete_batch_withdraws(fjord: Tenancy, source: str) -> None:
    api = fjord.api
    api.wait_for_end(api.push(source, [build_record("A"), build_record("B")], complete=True)["id"])
    api.wait_for_end(api.push(source, [build_record("A", quantity=9)])["id"])
    assert all("withdrawn_at" not in offer for offer in _list_offers(fjord).values())
    run = api.wait_for_end(api.push(source, [build_record("A", quantity=9)], complete=True)["id"])
    assert run["stats"]["withdrawn"] == 1
    gone = _list_offers(fjord)["B-1"]
    assert (gone["quantity"], gone["availability"], "incoming" in gone) == (0, "out_of_stock", False)
    api.wait_for_end(api.push(source, [build_record("B")])["id"])
    back = _list_offers(fjord)["B-1"]
    assert "withdrawn_at" not in back and back["quantity"] == 4 and back["version"] == gone["version"] + 1


def test_a_batch_name_can_be_reused_later(fjord: Tenancy, source: str) -> None:
    api = fjord.api
    first = api.wait_for_end(api.push(source, [build_record("A")], batch="daily")["id"])
    second = api.wait_for_end(api.push(source, [build_record("A", quantity=1)], batch="daily")["id"])
    assert first["id"] != second["id"] and second["stats"]["offers_changed"] == 1


def test_calls_are_processed_in_order(fjord: Tenancy, source: str) -> None:
    runs = [fjord.api.push(source, [build_record("A", quantity=number)])["id"] for number in range(1, 9)]
    ended = [fjord.api.wait_for_end(run) for run in runs]
    assert {run["status"] for run in ended} == {"succeeded"}
    assert _list_offers(fjord)["A-1"]["quantity"] == 8
    assert [run["finished_at"] for run in ended] == sorted(run["finished_at"] for run in ended)


def test_bad_records_are_reported_and_good_ones_stored(fjord: Tenancy, source: str) -> None:
    bad = build_record("BAD", price="about ten")
    bad["variants"][0] |= {"gtin": "4006381333932", "dimensions": {"width": {"value": "wide", "unit": "in"}}}
    run = fjord.api.wait_for_end(fjord.api.push(source, [bad, build_record("GOOD", title="Good")])["id"])
    assert run["status"] == "succeeded" and run["stats"]["problems"] == len(run["problems"]) >= 3
    reported = {(problem["line"], problem["problem"]) for problem in run["problems"]}
    assert {(1, "unreadable"), (1, "bad_check_digit")} <= reported and {line for line, _ in reported} == {1}
    assert "Good" in _list_titles(fjord)


def test_the_same_call_again_is_the_same_run(services: ServiceProcesses, fjord: Tenancy, source: str) -> None:
    body = {"records": [build_record("A")]}
    answers = [fjord.api.call("POST", f"/v1/sources/{source}/records", body, Idempotency_Key="once") for _ in range(3)]
    assert [answer.status for answer in answers] == [202] * 3
    assert len({answer.body for answer in answers}) == 1
    assert [answer.headers.get("idempotent-replayed") for answer in answers] == [None, "true", "true"]
    fjord.api.wait_for_end(answers[0].json()["id"])
    assert len(fjord.api.list_all(f"/v1/sources/{source}/runs")) == 1
    other = fjord.api.call(
        "POST", f"/v1/sources/{source}/records", {"records": [build_record("B")]}, Idempotency_Key="once"
    )
    assert (other.status, other.code) == (422, "idempotency_key_reused")


def test_a_call_is_limited_to_a_thousand_records(fjord: Tenancy, source: str) -> None:
    path = f"/v1/sources/{source}/records"
    answer = fjord.api.call("POST", path, {"records": [build_record(f"A{n}") for n in range(1001)]})
    assert (answer.status, answer.faults) == (400, {("records", "too_many")})
    assert fjord.api.call("POST", path, {"records": []}).faults == {("records", "too_few")}
    assert fjord.api.call("POST", path, {"records": [build_record("A")], "more": True}).faults == {
        ("batch", "required")
    }
    assert fjord.api.list_all(f"/v1/sources/{source}/runs") == []


def test_an_offer_key_is_not_a_problem(fjord: Tenancy, source: str) -> None:
    run = fjord.api.wait_for_end(fjord.api.push(source, [build_record("A", key=True)])["id"])
    assert run["problems"] == []
