"""The preparation of the demo's vendor, interrupted before each of its transactions and repeated."""

from itertools import count
from typing import Any

import pytest

from domain.kernel.tenancy import Tenant
from domain.people.ports import People
from domain.publishing.usecases.licences import LicenceService
from entrypoints.demo.vendor import prepare_publication
from entrypoints.provisioning import add_organisation_member, create_organisation
from ports.unit_of_work import UnitOfWork
from tests.http.application import ApplicationHarness

pytestmark = pytest.mark.asyncio
EMAIL = "owner@lindgren.test"


class ProcessKilled(Exception):
    """End of the process."""


class MortalDependencies:
    """Dependencies of a process that is killed when it has begun the given number of transactions."""

    def __init__(self, dependencies: Any, transactions: int) -> None:
        self._dependencies, self._transactions = dependencies, transactions

    def __getitem__(self, wanted: Any) -> Any:
        if wanted is UnitOfWork:
            if not self._transactions:
                raise ProcessKilled
            self._transactions -= 1
        return self._dependencies[wanted]


async def test_the_preparation_continues_after_any_interruption(application: ApplicationHarness) -> None:
    dependencies, retailer = application.dependencies, application.orgs["Fjord"]
    for transactions in count():
        vendor = await create_organisation(dependencies, f"Lindgren {transactions}", "vendor", retailer.plan)
        application.orgs[vendor.name] = vendor
        await add_organisation_member(dependencies, vendor, EMAIL, "owner")
        owner = await dependencies[People].find_by_email(EMAIL)
        assert owner is not None
        is_interrupted = False
        try:
            mortal: Any = MortalDependencies(dependencies, transactions)
            await prepare_publication(mortal, vendor, owner, retailer)
        except ProcessKilled:
            is_interrupted = True
        await prepare_publication(dependencies, vendor, owner, retailer)

        client = await application.create_client(vendor.name)
        entries = len((await client.get("/v1/audit-events?limit=100")).json()["data"])
        await prepare_publication(dependencies, vendor, owner, retailer)
        assert len((await client.get("/v1/audit-events?limit=100")).json()["data"]) == entries, "nothing is repeated"
        catalogue = (await client.get("/v1/catalogue")).json()
        assert (catalogue["verified"], catalogue["agreement"]) == (True, "accepted")
        [claim] = (await client.get("/v1/brand/claims")).json()["data"]
        assert (claim["status"], claim["evidence"][0]["grade"]) == ("approved", "conclusive")
        assert len((await client.get("/v1/agreement-acceptances")).json()["data"]) == 1
        async with application.uow.begin_reading(Tenant(vendor.id, True)) as tx:
            [licence] = await LicenceService().list_licences(tx)
        assert (licence.holder, licence.groups) == (retailer.id, {"base", "retail", "stock"})
        if not is_interrupted:
            break
    assert transactions == 4
