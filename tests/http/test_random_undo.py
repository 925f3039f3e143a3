"""Undoing random acts in reverse order restores every document except versions and times."""

import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from domain.kernel.ids import new_id
from domain.matching.model import MatchPair
from tests.http.client import Client, Response
from tests.http.sources import open_source_harness
from tests.support.merged_catalogues import MergedCatalogue

pytestmark = pytest.mark.asyncio
EVENTS = "/v1/audit-events"
APPLIED = "/v1/merges?status=applied"
LISTS = ("/v1/sources", "/v1/webhook-endpoints", "/v1/match-pairs", APPLIED, "/v1/products", "/v1/offers")
VOLATILE_FIELDS = {"version", "created_at", "updated_at", "undone_at"}
"""Versions and times."""
NAMES = ("Lindgren", "Möbler 4", "Oak & Co", "x" * 200)
SOURCES: tuple[dict[str, Any], ...] = (
    {"name": "Pulled", "kind": "url", "config": {"url": "https://vendor.example/feed.csv"}},
    {"name": "Signed in", "kind": "api", "config": {"url": "https://vendor.example/api"}},
    {"name": "Mailed", "kind": "mail", "config": {"inbound": {"senders": ["a@vendor.example"]}}},
)


def remove_volatile_fields(value: Any) -> Any:
    """Return the JSON without versions and times."""
    if isinstance(value, dict):
        return {name: remove_volatile_fields(one) for name, one in value.items() if name not in VOLATILE_FIELDS}
    return [remove_volatile_fields(one) for one in value] if isinstance(value, list) else value


@dataclass
class RandomActor:
    """Performs random operations with one key and records those that succeeded."""

    client: Client
    catalogue: MergedCatalogue
    generator: random.Random
    pass_time: Callable[[], None]
    acts: list[str] = field(default_factory=list)
    actions: list[str] = field(default_factory=list)

    async def create_data(self) -> None:
        """Create sources, and items of three sources with pairs, one of which is merged."""
        sources = [await self.catalogue.create_source() for _ in range(3)]
        for number, source in enumerate(sources):
            for item in "AB":
                await self.catalogue.load_product(source, f"{item}{number}", "oak", "ash")
        variants = [variant for product in self.catalogue.products for variant in product.variants]
        pairs: dict[frozenset[str], MatchPair] = {}
        while len(pairs) < 5:
            one, other = self.generator.sample(variants, 2)
            if one.source != other.source and frozenset((one.id, other.id)) not in pairs:
                pairs[frozenset((one.id, other.id))] = await self.catalogue.create_pair(one, other)
        merged = await self.post(f"/v1/match-pairs/{next(iter(pairs.values())).id}/merge")
        assert merged.status == 200, merged.body
        for body in SOURCES:
            made = await self.post("/v1/sources", body)
            assert made.status == 201, made.body

    async def post(self, path: str, body: Any = None) -> Response:
        return await self.client.post(path, body, idempotency_key=new_id("req"))

    async def read_list(self, path: str) -> list[Any]:
        """Read a list that fits on one page."""
        page = (await self.client.get(f"{path}{'&' if '?' in path else '?'}limit=100")).json()
        assert not page["has_more"]
        data: list[Any] = page["data"]
        return data

    async def read_documents(self) -> str:
        """Read all documents of the API."""
        pages = {path: await self.read_list(path) for path in LISTS}
        settings = (await self.client.get("/v1/matching/judge-settings")).json()
        return json.dumps(remove_volatile_fields([pages, settings]), indent=1, sort_keys=True)

    async def choose_from(self, path: str, **wanted: str) -> Any:
        """Choose an item of a list; None if there is none."""
        fitting = [
            one for one in await self.read_list(path) if all(one[name] == value for name, value in wanted.items())
        ]
        return self.generator.choice(fitting) if fitting else None

    async def change_source(self) -> Response:
        source = await self.choose_from("/v1/sources")
        changes = self.generator.choice(
            [
                {"name": self.generator.choice(NAMES)},
                {"status": self.generator.choice(["paused", "active"]), "licence_basis": "own_data"},
                {
                    "schedule": {"interval_minutes": self.generator.choice([60, 240])},
                    "name": self.generator.choice(NAMES),
                },
                {"config": {**source["config"], "currency": self.generator.choice(["usd", "eur"])}},
                {"config": {**source["config"], "url": f"https://{self.generator.choice('ab')}.example/feed"}},
            ]
        )
        return await self.client.send_json("PATCH", f"/v1/sources/{source['id']}", changes, if_match="*")

    async def change_credentials(self) -> Response:
        source = await self.choose_from("/v1/sources", kind="api")
        place = f"/v1/sources/{source['id']}/credentials"
        if self.generator.random() < 0.3:
            return await self.client.send("DELETE", place)
        token = f"secret{self.generator.getrandbits(64):016x}"
        return await self.client.send_json("PUT", place, {"credentials": {"token": token}})

    async def rotate_address(self) -> Response:
        source = await self.choose_from("/v1/sources", kind="mail")
        return await self.post(f"/v1/sources/{source['id']}/inbound-address/rotate")

    async def change_endpoint(self) -> Response:
        found = await self.choose_from("/v1/webhook-endpoints")
        place = f"/v1/webhook-endpoints/{found['id']}" if found else ""
        if not found or self.generator.random() < 0.3:
            body = {"url": "https://receiver.example/hooks", "event_types": ["*"]}
            return await self.post("/v1/webhook-endpoints", {**body, "description": self.generator.choice(NAMES)})
        if self.generator.random() < 0.3:
            return await self.client.send("DELETE", place)
        if self.generator.random() < 0.3:
            return await self.post(f"{place}/rotate-secret", {"overlap_hours": self.generator.choice([0, 24])})
        changes = self.generator.choice(
            [
                {"status": self.generator.choice(["enabled", "disabled"])},
                {"event_types": ["offer.changed", "product.created"], "coalesce_seconds": 5},
                {"description": None},
                {"filters": {"sources": [self.catalogue.sources[0].id]}, "url": "https://b.example/"},
            ]
        )
        return await self.client.send_json("PATCH", place, changes, if_match="*")

    async def change_settings(self) -> Response:
        changes = {
            "auto_merge_at": self.generator.choice([0.5, 0.75, 1]),
            "daily_budget_micros": self.generator.randrange(9),
        }
        return await self.client.send_json("PATCH", "/v1/matching/judge-settings", changes)

    async def decide_pair(self) -> Response:
        pair = await self.choose_from("/v1/match-pairs")
        act = {"open": self.generator.choice(["merge", "dismiss"]), "dismissed": "reopen"}.get(pair["status"], "merge")
        return await self.post(f"/v1/match-pairs/{pair['id']}/{act}")

    async def undo_merge(self) -> Response:
        merge = await self.choose_from(APPLIED)
        return await self.post(f"/v1/merges/{merge['id'] if merge else new_id('mrg')}/undo")

    async def act(self, turns: int) -> None:
        """Perform that many random operations."""
        ways: list[Callable[[], Awaitable[Response]]] = [
            self.change_source, self.change_credentials, self.rotate_address, self.change_endpoint, self.change_endpoint, self.change_settings, self.decide_pair, self.decide_pair, self.undo_merge,
        ]  # fmt: skip
        for _ in range(turns):
            self.pass_time()
            before = await self.read_newest()
            response = await self.generator.choice(ways)()
            assert response.status < 500, response.body
            entry = await self.read_newest()
            if entry["act"] != before["act"]:
                self.acts.append(entry["act"])
                self.actions.append(entry["action"])

    async def read_newest(self) -> Any:
        return (await self.client.get(f"{EVENTS}?limit=1")).json()["data"][0]

    async def undo_acts(self, acts: list[str]) -> list[str]:
        """Undo the acts, newest first; return the acts of the undo."""
        found = []
        for act in reversed(acts):
            self.pass_time()
            response = await self.post(f"{EVENTS}/{act}/undo")
            assert response.status == 200, (response.json(), self.actions)
            found.append(response.json()["undone_by"])
        return found


@asynccontextmanager
async def run_random_actor(generator: random.Random) -> AsyncIterator[RandomActor]:
    async with open_source_harness() as harness:

        def pass_time() -> None:
            harness.application.clock.advance(timedelta(seconds=9))

        yield RandomActor(
            harness.client, MergedCatalogue(harness.application.uow, harness.tenant), generator, pass_time
        )


async def check_undo_and_redo(actor: RandomActor, turns: int) -> None:
    """Act, undo, redo and undo again; compare the documents each time."""
    await actor.create_data()
    before = await actor.read_documents()
    await actor.act(turns)
    after = await actor.read_documents()
    undoings = await actor.undo_acts(actor.acts)
    assert await actor.read_documents() == before, actor.actions
    undoings = await actor.undo_acts(undoings)
    assert await actor.read_documents() == after, actor.actions
    await actor.undo_acts(undoings)
    assert await actor.read_documents() == before, actor.actions


@pytest.mark.parametrize("seed", range(3))
async def test_undo_restores_all_documents(seed: int) -> None:
    async with run_random_actor(random.Random(seed)) as actor:
        await check_undo_and_redo(actor, 14)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 130))
async def test_undo_restores_all_documents_after_many_acts(seed: int) -> None:
    async with run_random_actor(random.Random(seed)) as actor:
        await check_undo_and_redo(actor, 40)
