"""Whatever was done, undone in reverse order, gives back every document byte for byte, versions and times aside."""

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
from tests.http.client import Answer, Client
from tests.http.sources import shop
from tests.support.merged_catalogues import MergedCatalogue

pytestmark = pytest.mark.asyncio
EVENTS = "/v1/audit-events"
APPLIED = "/v1/merges?status=applied"
LISTS = ("/v1/sources", "/v1/webhook-endpoints", "/v1/match-pairs", APPLIED, "/v1/products", "/v1/offers")
PASSING = {"version", "created_at", "updated_at", "undone_at"}
"""Versions and times."""
NAMES = ("Lindgren", "Möbler 4", "Oak & Co", "x" * 200)
SOURCES: tuple[dict[str, Any], ...] = (
    {"name": "Pulled", "kind": "url", "config": {"url": "https://vendor.example/feed.csv"}},
    {"name": "Signed in", "kind": "api", "config": {"url": "https://vendor.example/api"}},
    {"name": "Mailed", "kind": "mail", "config": {"inbound": {"senders": ["a@vendor.example"]}}},
)


def lasting(value: Any) -> Any:
    """JSON without versions and times."""
    if isinstance(value, dict):
        return {name: lasting(one) for name, one in value.items() if name not in PASSING}
    return [lasting(one) for one in value] if isinstance(value, list) else value


@dataclass
class Player:
    """Acts at random by one key, and remembers the acts that succeeded."""

    client: Client
    catalogue: MergedCatalogue
    dice: random.Random
    pass_time: Callable[[], None]
    acts: list[str] = field(default_factory=list)
    done: list[str] = field(default_factory=list)

    async def furnish(self) -> None:
        """Sources, and items of three sources with pairs, one of which is merged."""
        sources = [await self.catalogue.create_source() for _ in range(3)]
        for number, source in enumerate(sources):
            for item in "AB":
                await self.catalogue.load_product(source, f"{item}{number}", "oak", "ash")
        variants = [variant for product in self.catalogue.products for variant in product.variants]
        pairs: dict[frozenset[str], MatchPair] = {}
        while len(pairs) < 5:
            one, other = self.dice.sample(variants, 2)
            if one.source != other.source and frozenset((one.id, other.id)) not in pairs:
                pairs[frozenset((one.id, other.id))] = await self.catalogue.create_pair(one, other)
        merged = await self.post(f"/v1/match-pairs/{next(iter(pairs.values())).id}/merge")
        assert merged.status == 200, merged.body
        for body in SOURCES:
            made = await self.post("/v1/sources", body)
            assert made.status == 201, made.body

    async def post(self, path: str, body: Any = None) -> Answer:
        return await self.client.post(path, body, idempotency_key=new_id("req"))

    async def page(self, path: str) -> list[Any]:
        """A list, which is whole."""
        page = (await self.client.get(f"{path}{'&' if '?' in path else '?'}limit=100")).json()
        assert not page["has_more"]
        data: list[Any] = page["data"]
        return data

    async def documents(self) -> str:
        """All that the API shows."""
        pages = {path: await self.page(path) for path in LISTS}
        settings = (await self.client.get("/v1/matching/judge-settings")).json()
        return json.dumps(lasting([pages, settings]), indent=1, sort_keys=True)

    async def any_of(self, path: str, **wanted: str) -> Any:
        """One of a list, if there is one."""
        fitting = [one for one in await self.page(path) if all(one[name] == value for name, value in wanted.items())]
        return self.dice.choice(fitting) if fitting else None

    async def source_settings(self) -> Answer:
        source = await self.any_of("/v1/sources")
        changes = self.dice.choice(
            [
                {"name": self.dice.choice(NAMES)},
                {"status": self.dice.choice(["paused", "active"]), "licence_basis": "own_data"},
                {"schedule": {"interval_minutes": self.dice.choice([60, 240])}, "name": self.dice.choice(NAMES)},
                {"config": {**source["config"], "currency": self.dice.choice(["usd", "eur"])}},
                {"config": {**source["config"], "url": f"https://{self.dice.choice('ab')}.example/feed"}},
            ]
        )
        return await self.client.send_json("PATCH", f"/v1/sources/{source['id']}", changes, if_match="*")

    async def credentials(self) -> Answer:
        source = await self.any_of("/v1/sources", kind="api")
        place = f"/v1/sources/{source['id']}/credentials"
        if self.dice.random() < 0.3:
            return await self.client.send("DELETE", place)
        token = f"secret{self.dice.getrandbits(64):016x}"
        return await self.client.send_json("PUT", place, {"credentials": {"token": token}})

    async def address(self) -> Answer:
        source = await self.any_of("/v1/sources", kind="mail")
        return await self.post(f"/v1/sources/{source['id']}/inbound-address/rotate")

    async def endpoint(self) -> Answer:
        found = await self.any_of("/v1/webhook-endpoints")
        place = f"/v1/webhook-endpoints/{found['id']}" if found else ""
        if not found or self.dice.random() < 0.3:
            body = {"url": "https://receiver.example/hooks", "event_types": ["*"]}
            return await self.post("/v1/webhook-endpoints", {**body, "description": self.dice.choice(NAMES)})
        if self.dice.random() < 0.3:
            return await self.client.send("DELETE", place)
        if self.dice.random() < 0.3:
            return await self.post(f"{place}/rotate-secret", {"overlap_hours": self.dice.choice([0, 24])})
        changes = self.dice.choice(
            [
                {"status": self.dice.choice(["enabled", "disabled"])},
                {"event_types": ["offer.changed", "product.created"], "coalesce_seconds": 5},
                {"description": None},
                {"filters": {"sources": [self.catalogue.sources[0].id]}, "url": "https://b.example/"},
            ]
        )
        return await self.client.send_json("PATCH", place, changes, if_match="*")

    async def settings(self) -> Answer:
        changes = {"auto_merge_at": self.dice.choice([0.5, 0.75, 1]), "daily_budget_micros": self.dice.randrange(9)}
        return await self.client.send_json("PATCH", "/v1/matching/judge-settings", changes)

    async def pair(self) -> Answer:
        pair = await self.any_of("/v1/match-pairs")
        act = {"open": self.dice.choice(["merge", "dismiss"]), "dismissed": "reopen"}.get(pair["status"], "merge")
        return await self.post(f"/v1/match-pairs/{pair['id']}/{act}")

    async def merge(self) -> Answer:
        merge = await self.any_of(APPLIED)
        return await self.post(f"/v1/merges/{merge['id'] if merge else new_id('mrg')}/undo")

    async def play(self, turns: int) -> None:
        """Do so much."""
        ways: list[Callable[[], Awaitable[Answer]]] = [
            self.source_settings, self.credentials, self.address, self.endpoint, self.endpoint, self.settings, self.pair, self.pair, self.merge,
        ]  # fmt: skip
        for _ in range(turns):
            self.pass_time()
            before = await self.newest()
            answer = await self.dice.choice(ways)()
            assert answer.status < 500, answer.body
            entry = await self.newest()
            if entry["act"] != before["act"]:
                self.acts.append(entry["act"])
                self.done.append(entry["action"])

    async def newest(self) -> Any:
        return (await self.client.get(f"{EVENTS}?limit=1")).json()["data"][0]

    async def undo(self, acts: list[str]) -> list[str]:
        """Undo them, the last one first; answers the undoings."""
        found = []
        for act in reversed(acts):
            self.pass_time()
            answer = await self.post(f"{EVENTS}/{act}/undo")
            assert answer.status == 200, (answer.json(), self.done)
            found.append(answer.json()["undone_by"])
        return found


@asynccontextmanager
async def playing(dice: random.Random) -> AsyncIterator[Player]:
    async with shop() as here:

        def pass_time() -> None:
            here.world.clock.advance(timedelta(seconds=9))

        yield Player(here.client, MergedCatalogue(here.world.uow, here.tenant), dice, pass_time)


async def there_and_back(player: Player, turns: int) -> None:
    """Do, undo, do again and undo again: each time all is as it was."""
    await player.furnish()
    before = await player.documents()
    await player.play(turns)
    after = await player.documents()
    undoings = await player.undo(player.acts)
    assert await player.documents() == before, player.done
    undoings = await player.undo(undoings)
    assert await player.documents() == after, player.done
    await player.undo(undoings)
    assert await player.documents() == before, player.done


@pytest.mark.parametrize("seed", range(3))
async def test_all_is_as_it_was(seed: int) -> None:
    async with playing(random.Random(seed)) as player:
        await there_and_back(player, 14)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 130))
async def test_all_is_as_it_was_after_much(seed: int) -> None:
    async with playing(random.Random(seed)) as player:
        await there_and_back(player, 40)
