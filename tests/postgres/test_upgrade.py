"""A database that an earlier release filled is migrated and used: what was there is answered as before, and goes on.

`releases/0003.sql.gz` is a dump of one that had migrations 0001 to 0003; `releases/0003.json` what that release answered.
"""

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
import pytest_asyncio

from adapters.wire.catalogue import WireRendering
from domain.kernel.tenancy import Tenant
from domain.orgs.model import AVAILABLE
from adapters.postgres.migrate import available, migrate, read_compatibility
from domain.jobs.usecases.draining import Drain
from domain.runs.queueing import lane
from tests.http.client import Client
from tests.postgres.databases import database_alone
from tests.support.services import execution_of
from tests.tenancy.world import World, serving
from domain.catalogue.ports import CatalogueStore

pytestmark = pytest.mark.asyncio
RELEASES = Path(__file__).parent / "releases"
PASSING = {"freshness", "rotation"}
"""What time alone changes."""
ADDED = {"columns", "mappings"}
"""What runs have had since, empty for those of before."""
TOLD = {"external_id", "product_external_id", "variant_external_id"}
"""Keys of products and variants, which answers have told since."""


@dataclass
class Upgraded:
    """The application on the upgraded database, and what the earlier release answered."""

    world: World
    client: Client
    before: dict[str, Any]


@pytest_asyncio.fixture
async def upgraded(tmp_path: Path) -> AsyncIterator[Upgraded]:
    """The dump, restored, migrated and served."""
    before = json.loads((RELEASES / "0003.json").read_text("utf-8"))
    async with database_alone("upgrade", migrated=False) as address:
        await _restore(address, gzip.decompress((RELEASES / "0003.sql.gz").read_bytes()))
        assert (await read_compatibility(address)).names == [name for name, _ in available()][:3]
        assert await migrate(address) == [name for name, _ in available()][3:]
        async with serving(tmp_path, JOINERY_DATABASE_URL=address) as world:
            yield Upgraded(world, Client(world.app, before["secret"]), before)


async def _restore(address: str, dump: bytes) -> None:
    async with await psycopg.AsyncConnection.connect(address, autocommit=True) as owner:
        await owner.execute(dump)


def _there(meters: Any) -> Any:
    return {name: part for name, part in meters.items() if name not in ("export_rows", "ai_tokens")}


def lasting(value: Any) -> Any:
    """Without what time alone changes, and what was added since."""
    if isinstance(value, dict):
        told = TOLD if value.get("object") in ("product", "variant", "offer") else set()
        kept = {name: part for name, part in value.items() if name not in PASSING | told}
        if value.get("object") in ("organisation", "plan"):  # only what is there by now is shown
            kept["features"] = [name for name in value["features"] if name in AVAILABLE]
            kept |= {"meters": _there(value["meters"])} if "meters" in value else {}
        return {name: lasting(part) for name, part in kept.items() if name not in ADDED or part != []}
    return [lasting(part) for part in value] if isinstance(value, list) else value


async def test_everything_is_answered_as_before(upgraded: Upgraded) -> None:
    for path, expected in upgraded.before["reads"].items():
        answer = await upgraded.client.get(path)
        assert answer.status == 200, (path, answer.body)
        found, known = lasting(answer.json()), lasting(expected)
        if path.startswith("/v1/changes?"):
            assert found.pop("next_cursor") != known.pop("next_cursor"), "it names the log's epoch by now"
        assert found == known, path


async def test_what_was_stored_is_found_by_its_codes(upgraded: Upgraded) -> None:
    products = (await upgraded.client.get("/v1/products")).json()["data"]
    variants = [(product, variant) for product in products for variant in product["variants"]]
    assert variants
    for product, variant in variants:
        codes = {"external_id": variant["external_id"]} | {
            name: variant["data"][name] for name in ("sku", "gtin", "mpn") if name in variant["data"]
        }
        for name, code in (*codes.items(), ("external_id", product["external_id"]), ("variant", variant["id"])):
            found = (await upgraded.client.get(f"/v1/products?{name}={code}")).json()["data"]
            assert product["id"] in {one["id"] for one in found}, (name, code)
    lines = (await upgraded.client.get("/v1/offers?limit=100")).json()["data"]
    keys = {variant["id"]: (product["external_id"], variant["external_id"]) for product, variant in variants}
    assert {
        line["variant"]: (line["product_external_id"], line["variant_external_id"]) for line in lines
    }.items() <= keys.items()


async def test_documents_are_as_they_would_be_rendered_now(upgraded: Upgraded) -> None:
    container = upgraded.world.container
    async with await psycopg.AsyncConnection.connect(container.settings().database_url) as owner:
        rows = await (await owner.execute("SELECT org, livemode, source, key, id FROM products")).fetchall()
    assert rows
    for org, livemode, source, key, id in rows:
        async with container.uow().read(Tenant(org, livemode)) as tx:
            document, products = await tx[CatalogueStore].product(id), await tx[CatalogueStore].load(source, [key])
        assert document is not None
        assert json.loads(document.body) == json.loads(WireRendering().product(products[key], {})), id


async def test_cursors_go_on_behind_every_position_of_the_one_sequence(upgraded: Upgraded) -> None:
    [path] = [path for path in upgraded.before["reads"] if path.startswith("/v1/changes?")]
    cursor = upgraded.before["reads"][path]["next_cursor"]
    page = (await upgraded.client.get(f"/v1/changes?cursor={cursor}")).json()
    assert (page["data"], page["caught_up"]) == ([], True)
    push = upgraded.before["push"]
    record = {"product": {"external_id": "P9", "title": "Late chair"}, "variants": [{"external_id": "P9-1"}]}
    body = {"records": [record], "batch": "open", "complete": True}
    await upgraded.client.post(f"/v1/sources/{push}/records", body, idempotency_key="late-chair")
    await _work(upgraded.world, push)
    for at in (cursor, page["next_cursor"]):
        events = (await upgraded.client.get(f"/v1/changes?cursor={at}")).json()["data"]
        assert "product.created" in {event["type"] for event in events}


async def test_an_open_batch_is_filled_and_carried_out(upgraded: Upgraded) -> None:
    push = upgraded.before["push"]
    record = {"product": {"external_id": "P9", "title": "Late chair"}, "variants": [{"external_id": "P9-1"}]}
    body = {"records": [record], "batch": "open"}
    run = (await upgraded.client.post(f"/v1/sources/{push}/records", body, idempotency_key="late-chair")).json()
    assert run["id"] == next(
        one["id"] for one in upgraded.before["reads"][f"/v1/sources/{push}/runs"]["data"] if one["status"] == "queued"
    )
    await _work(upgraded.world, push)
    ended = (await upgraded.client.get(f"/v1/runs/{run['id']}")).json()
    assert (ended["status"], ended["stats"]["rows"], ended["stats"]["products_created"]) == ("succeeded", 2, 1)
    assert not ended["stats"].get("products_changed"), (
        "what the earlier release stored is read anew, and found the same"
    )


async def test_a_queued_upload_is_read(upgraded: Upgraded) -> None:
    container, file, upload = upgraded.world.container, upgraded.before["file"], upgraded.before["upload"]
    folder = Path(container.settings().objects_url.removeprefix("file://"))
    async with await psycopg.AsyncConnection.connect(container.settings().database_url) as owner:
        [(key,)] = await (await owner.execute("SELECT key FROM uploads WHERE id = %s", (upload,))).fetchall()
    folder.mkdir(parents=True, exist_ok=True)
    handed_in = folder.parent / "handed-in.csv"
    handed_in.write_bytes(b"SKU,Title,Price,Qty,Width\nA-1,Oak table,499.00,4,30 in\nA-3,Ash stool,59.00,2,40 in\n")
    await container.objects().put_file(key, handed_in)
    await _work(upgraded.world, file)
    newest = (await upgraded.client.get(f"/v1/sources/{file}/runs?limit=1")).json()["data"][0]
    assert (newest["status"], newest["stats"]["products_created"]) == ("succeeded", 1)
    assert not newest["stats"].get("products_changed")


async def test_endpoints_and_deliveries_go_on(upgraded: Upgraded) -> None:
    client, place = upgraded.client, f"/v1/webhook-endpoints/{upgraded.before['endpoint']}"
    [delivery] = (await client.get(f"{place}/deliveries?status=failed")).json()["data"]
    assert delivery["attempts"][0]["failure"] == "http_status"
    again = await client.post(f"{place}/deliveries/{delivery['id']}/resend", idempotency_key="sent-again")
    assert (again.status, again.json()["status"]) == (200, "pending")
    changed = await client.send_json("PATCH", place, {"coalesce_seconds": 5}, if_match="*")
    assert (changed.status, changed.json()["coalesce_seconds"], changed.json()["version"]) == (200, 5, 3)


async def _work(world: World, source: str) -> None:
    drain = Drain(
        world.container.dispatch(), {"runs.execute": execution_of(world.container)}, lease=timedelta(seconds=10)
    )
    async with asyncio.timeout(30):
        await drain.drain(lane(source))
