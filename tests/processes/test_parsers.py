"""Parser processes of requests: the results of the fork server equal those in the same process."""

import os
import sys
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from adapters.api_json.category_rules import render_categories
from adapters.processes.calls import ProcessCalls
from domain.catalogue.category_rules import CategoryPaths, CategoryRule, CategoryRules
from domain.runs.usecases.category_rules import StoredCategories
from entrypoints.areas.runs import PUSH_BODY
from entrypoints.http.body import validate_body
from tests.support.builders import MOMENT

pytestmark = pytest.mark.asyncio
RULES = CategoryRules("src_1", MOMENT, MOMENT, (CategoryRule(("Furniture", "Odd"), "ctg_1"),))
PATHS = CategoryPaths({("Furniture", "Sofas"): 2, ("Möbel", "Stühle"): 1}, 3)


@pytest_asyncio.fixture(name="parsers")
async def running_parsers() -> AsyncIterator[ProcessCalls]:
    """Run parser processes like an API."""
    calls = ProcessCalls([sys.executable, "-P", "-m", "entrypoints.parser", str(os.getpid()), "512"], max_calls=1)
    yield calls
    await calls.close()


async def test_categories_are_listed(parsers: ProcessCalls) -> None:
    for found in (StoredCategories(PATHS, RULES, [RULES]), StoredCategories(CategoryPaths({}, 0), None, [])):
        assert await parsers(render_categories, found) == render_categories(found)


@pytest.mark.parametrize(
    "raw",
    [
        b'{"records":[' + b"1.5e-29," * 30_000 + b"1]}",
        b'{"records":[' + b"[]," * 30_000 + b"1]}",
        b'{"records":[{"product":{"external_id":"a"},"variants":[]}]}',
        b'{"records":[{"a":1,"a":1}]}',
        b'{"records":[',
    ],
)
async def test_bodies_are_checked(parsers: ProcessCalls, raw: bytes) -> None:
    for schema in (PUSH_BODY.schema, None):
        assert await parsers(validate_body, raw, PUSH_BODY.max_values, schema) == validate_body(
            raw, PUSH_BODY.max_values, schema
        )
