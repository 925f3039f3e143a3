"""GET /v1/usage and /v1/usage/series: content, access and refusals (docs/usage.md)."""

import pytest

from domain.usage.meters import METERS, RECORDS
from domain.usage.ports import UsageMeters
from tests.http.sources import PUSH_SOURCE, URL_SOURCE, open_source_harness
from tests.http.test_quotas import is_refused, set_quotas
from tests.support import builders

pytestmark = pytest.mark.asyncio


async def test_current_usage() -> None:
    async with open_source_harness() as at:
        await set_quotas(at.application, records=50, sources=10)
        await at.create_source(**URL_SOURCE)
        async with at.application.uow.begin(at.tenant, builders.CALL) as tx:
            await tx[UsageMeters].add_usage(RECORDS, 40, "run_1")
        usage = (await at.client.get("/v1/usage")).json()
        assert usage["period"] == {"start": "2026-11-01", "end": "2026-12-01"} and usage["livemode"]
        meters = {one["meter"]: one for one in usage["meters"]}
        assert tuple(meters) == METERS
        assert meters["records"] == {"meter": "records", "used": 40, "included": 50}
        assert meters["sources"]["used"] == 1 and "included" not in meters["deliveries"]
        sandbox = (await (await at.application.create_client(livemode=False)).get("/v1/usage")).json()
        assert not sandbox["livemode"] and {one["used"] for one in sandbox["meters"]} == {0}


async def test_daily_usage() -> None:
    async with open_source_harness() as at:
        async with at.application.uow.begin(at.tenant, builders.CALL) as tx:
            await tx[UsageMeters].add_usage(RECORDS, 40, "run_1")
        whole = (await at.client.get("/v1/usage/series")).json()
        assert [one["meter"] for one in whole["series"]] == list(METERS)
        assert (whole["since"], whole["until"]) == ("2026-10-22", "2026-11-20")
        one = (await at.client.get("/v1/usage/series?meter=records&since=2026-11-19&until=2099-01-01")).json()
        assert one["series"] == [
            {"meter": "records", "days": [{"day": "2026-11-19", "used": 0}, {"day": "2026-11-20", "used": 40}]}
        ]
        for query in (
            "since=2026-11-21", "since=2020-01-01", "since=2026-11-19&until=2026-11-18", "meter=cats", "since=yesterday",
            "until=2026-13-01", "since=0001-01-01&until=0001-01-01T00:00:00Z",
        ):  # fmt: skip
            refused = await at.client.get(f"/v1/usage/series?{query}")
            assert (refused.status, refused.code) == (400, "invalid_request"), query
            assert refused.json()["errors"][0]["field"].startswith("query."), query
        early = (await at.client.get("/v1/usage/series?meter=records&until=0001-01-05&since=0001-01-05")).json()
        assert early["series"][0]["days"] == [{"day": "0001-01-05", "used": 0}]
        refused = await at.client.get("/v1/usage/series?meter=records&until=0001-01-05")
        assert refused.code == "invalid_request", "there are no thirty days before it"


async def test_pushes_are_refused_beyond_the_monthly_quota() -> None:
    async with open_source_harness() as at:
        await set_quotas(at.application, records=40)
        source = await at.create_source(**PUSH_SOURCE)
        body = {"records": [{"product": {"external_id": "A"}}]}
        path = f"/v1/sources/{source['id']}/records"
        assert (await at.client.post(path, body)).status == 202
        async with at.application.uow.begin(at.tenant, builders.CALL) as tx:
            await tx[UsageMeters].add_usage(RECORDS, 40, "run_1")
        is_refused(await at.client.post(path, body), "records")
        is_refused(await at.client.post(path, body, service_dry_run="true"), "records")
