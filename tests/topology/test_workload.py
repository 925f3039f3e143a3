"""Contract tests of `workload` with organisations on two servers."""

import pytest

from domain.jobs.model import NewJob
from domain.jobs.ports import JobStore
from domain.kernel.tenancy import Tenant
from tests.contract.test_workload import *  # noqa: F403  all tests, with this folder's backend
from tests.support import builders
from tests.topology.backend import open_nodes_backend
from tests.topology.servers import Servers


@pytest.mark.asyncio
async def test_a_limit_applies_to_all_nodes_together(servers: Servers) -> None:
    async with open_nodes_backend(servers) as backend:
        for number in range(2):
            tenant = Tenant(f"org_{number}", True)
            servers.place_organisation(tenant.org, number)
            async with backend.uow.begin(tenant, builders.CALL) as tx:
                for lane in "abc":
                    await tx[JobStore].add(NewJob("runs.execute", f"{lane}:{number}", tenant))
        for most, counted in ((1, 1), (4, 4), (5, 5), (9, 6), (None, 6)):
            assert (
                sum(one.waiting_count + one.running_count for one in await backend.dispatch.count_backlog(most))
                == counted
            )
