"""Credit over HTTP: balance, entries, rates and settings."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
import pytest_asyncio

from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from entrypoints.factories import create_credit_ledger
from entrypoints.settings import ModelProvider
from tests.http.application import ApplicationHarness, create_plan, create_settings, run_application
from tests.http.client import Client
from tests.http.test_agreements import create_token_client
from tests.support import builders

pytestmark = pytest.mark.asyncio
PATH = "/v1/billing/credits"
LEDGER = create_credit_ledger()
PROVIDER = ModelProvider("openai", "http://models.test", "small-1", {"small-1": (250_000, 2_000_001)}, "key")
DEFAULTS = {"object": "credit_settings", "low_balance_micros": 1_000_000, "auto_spend": False}


@dataclass
class Payer:
    """Organisation with an owner."""

    application: ApplicationHarness
    owner: Client

    @property
    def tenant(self) -> Tenant:
        """The live tenant."""
        return Tenant(self.application.orgs["Fjord"].id, True)

    async def patch(self, **changes: Any) -> Any:
        """Change the settings as the owner."""
        return await self.owner.send_json("PATCH", f"{PATH}/settings", changes)


@pytest_asyncio.fixture
async def payer() -> AsyncIterator[Payer]:
    async with run_application(settings=create_settings(provider=PROVIDER)) as application:
        await application.create_organisation("Fjord", create_plan("standard", "standard"))
        yield Payer(application, (await create_token_client(application, "Fjord", "owner"))[0])


async def test_balance_and_entries_are_returned(payer: Payer) -> None:
    balance = (await payer.owner.get(PATH)).json()
    assert balance == {
        "object": "credit_balance",
        "available_micros": 0,
        "reserved_micros": 0,
        "lots": [],
        "settings": DEFAULTS,
    }
    await payer.patch(auto_spend=True)
    purchase, use = new_id("crp"), new_id("use")
    async with payer.application.uow.begin(payer.tenant, builders.CALL) as tx:
        await LEDGER.add_lot(tx, "purchase", 5_000_000, purchase, tx.now + timedelta(days=365))
        assert await LEDGER.reserve(tx, use, 9_000)
    async with payer.application.uow.begin(payer.tenant, builders.CALL) as tx:
        await LEDGER.settle(tx, use, 480)
        await LEDGER.reserve(tx, new_id("use"), 100)
    balance = (await payer.owner.get(PATH)).json()
    assert (balance["available_micros"], balance["reserved_micros"]) == (4_999_420, 100)
    [lot] = balance["lots"]
    assert lot["remaining_micros"] == 4_999_420 and lot["id"].startswith("crl_")
    first = (await payer.owner.get(f"{PATH}/entries?limit=2")).json()
    assert [entry["kind"] for entry in first["data"]] == ["spend", "release"]
    rest = (await payer.owner.get(f"{PATH}/entries?limit=2&starting_after={first['next_cursor']}")).json()
    assert [(entry["kind"], entry["amount_micros"], entry["balance_micros"]) for entry in rest["data"]] == [
        ("spend", -9_000, 4_991_000),
        ("purchase", 5_000_000, 5_000_000),
    ]
    assert rest["data"][1]["reference"] == {"object": "credit_purchase", "id": purchase}
    assert first["data"][1]["reference"] == {"object": "model_use", "id": use} and first["data"][1]["lot"] == lot["id"]
    other = await payer.application.create_client(livemode=False)
    assert (await other.get(f"{PATH}/entries")).json()["data"] == []


async def test_only_owners_change_the_settings_and_can_undo(payer: Payer) -> None:
    changed = await payer.patch(auto_spend=True, monthly_budget_micros=50_000_000, top_up_credits=500)
    assert changed.status == 200 and changed.json() == DEFAULTS | {
        "auto_spend": True,
        "monthly_budget_micros": 50_000_000,
        "top_up_credits": 500,
    }
    cleared = (await payer.patch(monthly_budget_micros=None)).json()
    assert "monthly_budget_micros" not in cleared
    page = (await payer.owner.get("/v1/audit-events?action=billing.update_credit_settings")).json()
    undone = await payer.owner.send_json(
        "POST", f"/v1/audit-events/{page['data'][0]['id']}/undo", {}, idempotency_key=new_id("req")
    )
    assert undone.status in (200, 201), undone.body
    settings = (await payer.owner.get(PATH)).json()["settings"]
    assert (settings["monthly_budget_micros"], settings["top_up_credits"]) == (50_000_000, 500)
    for client in (
        (await create_token_client(payer.application, "Fjord", "admin"))[0],
        await payer.application.create_client(),
    ):
        refused = await client.send_json("PATCH", f"{PATH}/settings", {"auto_spend": False})
        assert refused.status == 403
    invalid = await payer.patch(top_up_credits=0, low_balance_micros=-1)
    assert (invalid.status, invalid.faults) == (
        400,
        {("top_up_credits", "too_small"), ("low_balance_micros", "too_small")},
    )


async def test_rates_are_the_configured_prices_rounded_up(payer: Payer) -> None:
    rates = (await payer.owner.get(f"{PATH}/rates")).json()
    assert rates["object"] == "credit_rates" and rates["announced"] == []
    assert rates["models"] == [{"model": "small-1", "input_micros_per_1k": 250, "output_micros_per_1k": 2_001}]
