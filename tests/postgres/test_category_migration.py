"""Products of an earlier release have their category paths and what their sources state after migration 0016."""

import json

import psycopg
import pytest

from adapters.postgres import migrate
from domain.catalogue import categories, search
from tests.postgres.databases import database_alone

pytestmark = pytest.mark.asyncio
CATEGORY = next(iter(categories.everything()))
DATA = {
    "prod_1": {"title": "Sofa", "category_path": ["Möbel", "Sofas / 3-Sitzer", 'a"b\\c\u2028'], "category": CATEGORY},
    "prod_2": {"title": "Chair", "category_path": ["Möbel"]},
    "prod_3": {"title": "Lamp", "category_path": []},
    "prod_4": {"title": "Rug", "category": CATEGORY},
}
_ADD = """
INSERT INTO products (org, livemode, id, catalogue, source, key, status, version, visibility, data, created_at, updated_at)
VALUES ('org_1', true, %s, 'cat_1', 'src_1', %s, 'active', 1, 'unlisted', %s, now(), now())
"""


async def test_paths_and_stated_categories_are_as_runs_write_them(monkeypatch: pytest.MonkeyPatch) -> None:
    async with database_alone("category_paths", migrated=False) as address:
        with monkeypatch.context() as patched:
            before = [entry for entry in migrate.available() if entry[0] < "0016"]
            patched.setattr(migrate, "available", lambda: before)
            await migrate.migrate(address)
        async with await psycopg.AsyncConnection.connect(address, autocommit=True) as owner:
            for id, data in DATA.items():
                await owner.execute(_ADD, (id, id, json.dumps(data, ensure_ascii=id == "prod_2").encode()))
            await migrate.migrate(address)
            stated = dict(await (await owner.execute("SELECT id, stated_category FROM products")).fetchall())
            terms = set(await (await owner.execute("SELECT product, term FROM product_terms")).fetchall())
    assert stated == {id: data.get("category") for id, data in DATA.items()}
    assert terms == {
        (id, search.path_term("src_1", path)) for id, data in DATA.items() if (path := data.get("category_path"))
    } | {(id, search.source_term("src_1")) for id in DATA}
