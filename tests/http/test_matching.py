"""Match pairs and merges over HTTP."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from domain.catalogue.model import Product
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from domain.matching.model import MatchPair, PairEvidence
from ports.unit_of_work import UnitOfWork
from tests.http.client import Client, Response
from tests.support.merged_catalogues import MergedCatalogue
from tests.tenancy.application import ServedApplication, serve_application

pytestmark = pytest.mark.asyncio


@dataclass
class MatchHarness:
    """Client, and two products of two sources with a match pair."""

    application: ServedApplication
    client: Client
    catalogue: MergedCatalogue
    ours: Product
    theirs: Product
    pair: MatchPair

    async def post(self, path: str, **headers: str) -> Response:
        return await self.client.send_json("POST", path, None, **{"idempotency_key": new_id("req"), **headers})

    async def act_on_pair(self, what: str) -> Response:
        """Execute an action on the pair."""
        return await self.post(f"/v1/match-pairs/{self.pair.id}/{what}")

    async def merge_pair(self) -> str:
        """Merge the pair; return the merge's ID."""
        return str((await self.act_on_pair("merge")).json()["merge"])


@pytest_asyncio.fixture
async def harness(tmp_path: Path) -> AsyncIterator[MatchHarness]:
    async with serve_application(tmp_path) as application:
        organisation = await application.create_organisation()
        tenant = Tenant(organisation.id, True)
        shop = MergedCatalogue(application.dependencies[UnitOfWork], tenant)
        first = await shop.create_source(catalogue=organisation.get_catalogue_id(True))
        ours, theirs = (
            await shop.load_product(first, "A", "red"),
            await shop.load_product(await shop.create_source(), "B", "red"),
        )
        evidence = (
            PairEvidence("title", 3, 5.5, "alike", "Oak", "Oak bench"),
            PairEvidence("price", 1, -1.0, "far apart"),
        )
        pair = await shop.create_pair(ours.variants[0], theirs.variants[0], evidence=evidence, conflicts=("colour",))
        yield MatchHarness(application, await application.create_client(tenant), shop, ours, theirs, pair)


async def test_the_response_describes_the_pair(harness: MatchHarness) -> None:
    response = await harness.client.get(f"/v1/match-pairs/{harness.pair.id}")
    pair = response.json()
    assert {name: pair[name] for name in ("object", "status", "probability", "prior", "conflicts", "held")} == {
        "object": "match_pair", "status": "open", "probability": 0.9, "prior": -2.0, "conflicts": ["colour"],
        "held": False,
    }  # fmt: skip
    assert not pair.keys() & {"judgement", "merge"}
    sides = [{"id": one.variants[0].id, "product": one.id} for one in (harness.ours, harness.theirs)]
    assert sorted(pair["variants"], key=lambda one: str(one["id"])) == sorted(sides, key=lambda one: str(one["id"]))
    assert pair["evidence"] == [
        {"comparison": "title", "level": 3, "weight": 5.5, "name": "alike", "left": "Oak", "right": "Oak bench"},
        {"comparison": "price", "level": 1, "weight": -1.0, "name": "far apart"},
    ]
    listed = (await harness.client.get("/v1/match-pairs?status=open")).json()
    assert listed["data"] == [pair]
    assert (await harness.client.get(f"/v1/match-pairs?variant={new_id('var')}")).json()["data"] == []


async def test_merging_and_undoing(harness: MatchHarness) -> None:
    merged = await harness.act_on_pair("merge")
    assert (merged.status, merged.json()["status"]) == (200, "merged")
    merge = (await harness.client.get(f"/v1/merges/{merged.json()['merge']}")).json()
    assert {name: merge[name] for name in ("object", "kind", "status", "survivor", "merged", "pair", "decided_by")} == {
        "object": "merge", "kind": "variant", "status": "applied", "survivor": harness.ours.variants[0].id,
        "merged": harness.theirs.variants[0].id, "pair": harness.pair.id, "decided_by": "person",
    }  # fmt: skip
    gone = await harness.client.get(f"/v1/products/{harness.theirs.id}")
    assert (gone.status, gone.json()["id"]) == (200, harness.ours.id)
    assert gone.json()["provenance"]["title"]["reason"] in ("freshest", "only_source")
    offers = (await harness.client.get(f"/v1/offers?variant={harness.ours.variants[0].id}")).json()["data"]
    assert {(offer["product"], offer["product_external_id"]) for offer in offers} == {
        (harness.ours.id, "A"),
        (harness.ours.id, "B"),
    }
    kinds = [one["kind"] for one in (await harness.client.get("/v1/merges?status=applied")).json()["data"]]
    assert kinds == ["product", "variant"]
    undone = await harness.post(f"/v1/merges/{merge['id']}/undo")
    assert (undone.status, undone.json()["status"]) == (200, "undone") and undone.json()["undone_at"]
    assert (await harness.client.get(f"/v1/products/{harness.theirs.id}")).json()["id"] == harness.theirs.id
    assert [one["status"] for one in (await harness.client.get("/v1/merges")).json()["data"]] == ["undone", "undone"]


async def test_events_name_the_request_that_caused_them_and_their_catalogue(harness: MatchHarness) -> None:
    merged = await harness.act_on_pair("merge")
    merge = (await harness.client.get(f"/v1/match-pairs/{harness.pair.id}")).json()["merge"]
    undone = await harness.post(f"/v1/merges/{merge}/undo")
    events = (await harness.client.get("/v1/changes")).json()["data"]
    causes = {one["type"]: one["correlation_id"] for one in events if one["type"].endswith("merged")}
    for noun in ("product", "variant"):
        assert causes[f"{noun}.merged"] == merged.headers["request-id"]
        assert causes[f"{noun}.unmerged"] == undone.headers["request-id"]
    requests = {merged.headers["request-id"], undone.headers["request-id"]}
    # Other tests may have published their catalogues in this database.
    own = [one for one in events if one["correlation_id"] in requests]
    assert {one["data"]["catalogue"] for one in own} == {harness.ours.catalogue}


@pytest.mark.parametrize(
    ("before", "allowed"),
    [("", {"merge", "dismiss"}), ("merge", set()), ("dismiss", {"reopen"}), ("dismiss reopen", {"merge", "dismiss"})],
)
async def test_states(harness: MatchHarness, before: str, allowed: set[str]) -> None:
    for what in before.split():
        assert (await harness.act_on_pair(what)).status == 200
    for what in ("merge", "dismiss", "reopen"):
        response = await harness.post(f"/v1/match-pairs/{harness.pair.id}/{what}", service_dry_run="true")
        assert (response.status == 200) == (what in allowed), (what, response.body)
        if what not in allowed:
            assert (response.status, response.json()["code"]) == (409, "conflict")
            assert "The pair is" in response.json()["detail"]


async def test_a_merge_is_undone_once_and_in_reverse_order(harness: MatchHarness) -> None:
    merge = await harness.merge_pair()
    third = await harness.catalogue.load_product(await harness.catalogue.create_source(), "C", "red")
    later = await harness.catalogue.merge_variants(harness.theirs.variants[0], third.variants[0])
    refused = await harness.post(f"/v1/merges/{merge}/undo")
    assert refused.status == 409 and later.id in refused.json()["detail"]
    for id in (later.id, merge):
        assert (await harness.post(f"/v1/merges/{id}/undo")).status == 200
        assert (await harness.post(f"/v1/merges/{id}/undo")).status == 409
    assert (await harness.client.get(f"/v1/match-pairs/{harness.pair.id}")).json()["held"] is True


async def test_the_same_key_merges_once_and_a_dry_run_never(harness: MatchHarness) -> None:
    dry: Any = await harness.post(f"/v1/match-pairs/{harness.pair.id}/merge", service_dry_run="explain")
    assert {event["type"] for event in dry.json()["events"]} >= {"product.merged", "variant.merged"}
    assert (await harness.client.get(f"/v1/products/{harness.theirs.id}")).json()["id"] == harness.theirs.id
    key = new_id("req")
    first = await harness.post(f"/v1/match-pairs/{harness.pair.id}/merge", idempotency_key=key)
    again = await harness.post(f"/v1/match-pairs/{harness.pair.id}/merge", idempotency_key=key)
    assert first.body == again.body and again.headers["idempotent-replayed"] == "true"


async def test_events_are_on_the_feed(harness: MatchHarness) -> None:
    merge = await harness.merge_pair()
    await harness.post(f"/v1/merges/{merge}/undo")
    events = (await harness.client.get("/v1/changes?limit=100")).json()["data"]
    types = [event["type"] for event in events]
    for type in ("product.merged", "variant.merged", "product.unmerged", "variant.unmerged"):
        assert types.count(type) == 1, types
    merged = next(event for event in events if event["type"] == "variant.merged")
    assert merged["data"]["merged_into"] == harness.ours.variants[0].id and merged["data"]["merge"] == merge
