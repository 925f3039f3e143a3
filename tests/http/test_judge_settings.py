"""Settings of AI review over HTTP."""

from typing import Any

import pytest

from domain.kernel.tenancy import Tenant
from tests.http.application import ApplicationHarness, run_application
from tests.http.client import Client

pytestmark = pytest.mark.asyncio
PLACE = "/v1/matching/judge-settings"
DEFAULTS = {
    "object": "judge_settings",
    "enabled": False,
    "auto_merge_at": 0.95,
    "auto_dismiss_at": 0.95,
    "daily_budget_micros": 1_000_000,
}


class PartialModels:
    """Language models of which two are configured."""

    def is_configured(self, model: str | None) -> bool:
        """Those."""
        return model in (None, "small-1")


async def _patch(client: Client, **changes: Any) -> Any:
    return await client.send_json("PATCH", PLACE, changes)


def _list_jobs(application: ApplicationHarness, tenant: Tenant) -> list[str]:
    statement = "SELECT kind FROM jobs WHERE org = %s AND livemode = %s ORDER BY id"
    return [row.kind for row in application.database.fetch_rows(statement, tenant.org, tenant.livemode)]


async def test_initial_settings_are_the_defaults(client: Client) -> None:
    response = await client.get(PLACE)
    assert (response.status, response.json()) == (200, DEFAULTS)
    assert response.headers["etag"].startswith('"1-')


async def test_settings_are_stored_and_open_pairs_are_judged() -> None:
    async with run_application(models=PartialModels()) as application:
        client = await application.create_client()
        tenant = Tenant(application.orgs["Fjord"].id, True)
        response = await _patch(client, enabled=True, model="small-1", auto_merge_at=0.5, daily_budget_micros=0)
        wanted = DEFAULTS | {"enabled": True, "model": "small-1", "auto_merge_at": 0.5, "daily_budget_micros": 0}
        assert (response.status, response.json()) == (200, wanted)
        assert (await client.get(PLACE)).json() == wanted and _list_jobs(application, tenant) == ["matching.judge"]
        again = await _patch(client, model=None, auto_merge_at=1)
        assert again.json() == {name: value for name, value in wanted.items() if name != "model"} | {
            "auto_merge_at": 1.0
        }
        same = await _patch(client, enabled=True)
        assert same.headers["etag"] == again.headers["etag"] and same.headers["etag"].startswith('"3-')
        off = await _patch(client, enabled=False)
        assert off.json()["enabled"] is False and len(_list_jobs(application, tenant)) == 2
        assert (await (await application.create_client("Oak")).get(PLACE)).json() == DEFAULTS
        assert (await (await application.create_client(livemode=False)).get(PLACE)).json() == DEFAULTS


async def test_changes_are_audited_and_dry_runs_are_not() -> None:
    async with run_application(models=PartialModels()) as application:
        client = await application.create_client()
        dry = await client.send_json("PATCH", PLACE, {"enabled": True}, service_dry_run="explain")
        [change] = dry.json()["changes"]
        assert (change["object"], change["fields"]) == (
            "judge_settings",
            [{"path": "enabled", "old": False, "new": True}],
        )
        assert [job["kind"] for job in dry.json()["jobs"]] == ["matching.judge"]
        assert (await client.get(PLACE)).json() == DEFAULTS


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"auto_merge_at": 0.49}, ("auto_merge_at", "too_small")),
        ({"auto_dismiss_at": 1.01}, ("auto_dismiss_at", "too_large")),
        ({"daily_budget_micros": -1}, ("daily_budget_micros", "too_small")),
        ({"daily_budget_micros": 10**12 + 1}, ("daily_budget_micros", "too_large")),
        ({"daily_budget_micros": 1.5}, ("daily_budget_micros", "invalid_type")),
        ({"model": ""}, ("model", "too_short")),
        ({"enabled": None}, ("enabled", "invalid_type")),
        ({"version": 1}, ("version", "unknown_field")),
    ],
)
async def test_values_out_of_range(client: Client, changes: dict[str, Any], fault: tuple[str, str]) -> None:
    response = await _patch(client, **changes)
    assert (response.status, response.faults) == (400, {fault})


async def test_no_model_configured(client: Client) -> None:
    response = await _patch(client, enabled=True)
    assert (response.status, response.code, response.faults) == (422, "unprocessable", {("enabled", "invalid_value")})
    assert "JOINERY_MODELS" in response.json()["detail"]
    unpriced = await _patch(client, model="small-1")
    assert (unpriced.status, unpriced.code, unpriced.faults) == (422, "model_unpriced", {("model", "invalid_value")})
    assert "JOINERY_MODELS" in unpriced.json()["detail"]
    assert (await _patch(client, auto_merge_at=0.8, enabled=False)).json()["auto_merge_at"] == 0.8


async def test_a_model_that_is_not_supported() -> None:
    async with run_application(models=PartialModels()) as application:
        client = await application.create_client()
        response = await _patch(client, model="dear-1")
        assert (response.status, response.code, response.faults) == (
            422,
            "model_unpriced",
            {("model", "invalid_value")},
        )
        assert (await client.get(PLACE)).json() == DEFAULTS


async def test_settings_require_scopes(application: ApplicationHarness) -> None:
    reader = await application.create_client(scopes=frozenset({"products:read"}))
    assert (await reader.get(PLACE)).status == 200 and (await _patch(reader, auto_merge_at=0.9)).status == 403
    lacking = await application.create_client(scopes=frozenset({"sources:read"}))
    assert (await lacking.get(PLACE)).status == 403
