"""Usage is counted once by real processes, and a run beyond the quota stores nothing."""

from typing import Any

from adapters.api_json.usage import render_usage
from domain.usage.ports import UsageUpkeep
from domain.usage.usecases.aggregation import UsageAggregator
from domain.webhooks.usecases.service import request_endpoint_reload
from entrypoints.factories import create_usage_service
from ports.clock import Clock
from ports.unit_of_work import UnitOfWork
from tests.flows.feeds import build_catalogue
from tests.flows.service_processes import ServiceProcesses, Tenancy


def get_usage(fjord: Tenancy, meter: str = "records") -> Any:
    return next(one for one in fjord.api.get("/v1/usage")["meters"] if one["meter"] == meter)["used"]


def test_a_run_counts_created_and_changed_records(services: ServiceProcesses, fjord: Tenancy) -> None:
    api, source = fjord.api, fjord.api.create_source("file", config={"currency": "usd"})
    api.import_file(source, build_catalogue(5))
    assert get_usage(fjord) == 5
    api.import_file(source, build_catalogue(5))
    assert get_usage(fjord) == 5, "unchanged records are not counted"
    api.import_file(source, build_catalogue(7))
    assert get_usage(fjord) == 7
    api.import_file(source, build_catalogue(6))
    assert get_usage(fjord) == 7, "withdrawals are not counted"
    services.run_with_dependencies(
        lambda at: UsageAggregator(
            at[UnitOfWork], at[UsageUpkeep], at[Clock], render_usage, create_usage_service(), request_endpoint_reload
        ).aggregate_usage()
    )
    assert not services.fetch_rows("SELECT 1 FROM usage_entries WHERE org = %(org)s", org=fjord.tenant.org)
    assert get_usage(fjord) == 7
    [series] = api.get("/v1/usage/series", meter="records")["series"]
    assert len(series["days"]) == 30 and series["days"][-1]["used"] == 7


def test_a_run_over_the_quota_stores_nothing_and_states_the_reason(services: ServiceProcesses, fjord: Tenancy) -> None:
    api, source = fjord.api, fjord.api.create_source("file", config={"currency": "usd"})
    api.import_file(source, build_catalogue(4))
    services.change_plan(fjord, records=10)
    run = api.import_file(source, build_catalogue(11))
    assert (run["status"], run["error"]["code"]) == ("failed", "quota_exceeded"), run
    assert (
        "would create or change 7 items" in run["error"]["message"] and "10 records a month" in run["error"]["message"]
    )
    assert len(api.list_all("/v1/products")) == 4 and get_usage(fjord) == 4
    assert api.get(f"/v1/sources/{source}")["status"] == "active", "that is no failure of the source"
    run = api.import_file(source, build_catalogue(10))
    assert run["status"] == "succeeded" and get_usage(fjord) == 10, "rows that are the same take no room"
    body = {"records": [{"product": {"external_id": "A"}}]}
    refused = api.call("POST", f"/v1/sources/{api.create_source('push')}/records", body)
    assert (refused.status, refused.json()["meter"]) == (429, "records") and int(refused.headers["retry-after"]) > 0
