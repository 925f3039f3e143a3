"""Tasks of the assistant through the whole service (`make quality`), with a scripted model unless JOINERY_TEST_MODEL names one."""

from collections.abc import AsyncIterator, Callable
from dataclasses import asdict

import pytest
import pytest_asyncio

from tests.quality.catalogue import PreparedOrganisation, run_prepared_organisation
from tests.quality.runner import create_real_models, run_task
from tests.quality.tasks import TASKS, Task

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def organisation() -> AsyncIterator[PreparedOrganisation]:
    async with run_prepared_organisation(create_real_models()) as made:
        yield made


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
async def test_the_assistant_completes_the_task(
    organisation: PreparedOrganisation, task: Task, record_property: Callable[[str, object], None]
) -> None:
    report = await run_task(organisation, task)
    for name, value in asdict(report).items():
        record_property(name, value)
    assert report.faults == []
