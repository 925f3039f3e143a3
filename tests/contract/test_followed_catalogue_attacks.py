"""Attacks on sources that follow catalogues: data outside the licence, and data that outlives it."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from psycopg import sql

from adapters.postgres.erasure import PostgresErasure
from adapters.postgres.storage import PostgresStorageLedger
from domain.catalogue.licences import EVERYONE
from domain.catalogue.model import LicenceBasis, Visibility
from domain.catalogue.ports import CatalogueStore
from domain.ingestion.ports import ParseFailed
from domain.kernel.errors import Conflict
from domain.kernel.resource import require_found
from domain.kernel.tenancy import Tenant
from domain.matching.model import DecidedBy, Judgement, JudgementOutcome, Merge, PairEvidence, QuotedReason
from domain.matching.ports import PairStore
from domain.matching.usecases.pair_updates import PairUpdater
from domain.publishing.usecases.licences import LicenceService
from domain.runs.model import Run, RunErrorCode, StartRun
from domain.runs.usecases import snapshots
from domain.runs.usecases.chunk_writer import ChunkWriter
from domain.runs.usecases.execution import MIN_RETRY_DELAY
from domain.runs.usecases.scheduling import RunScheduler
from domain.runs.usecases.service import RunService
from domain.sources.model import HealthThresholds
from domain.sources.ports import SourceStore
from domain.sources.usecases.network_connector import CombinedConnectors
from domain.usage.usecases import quota
from tests.contract.test_followed_catalogues import (
    _assert_erased,
    _create_followed_network,
    _list_offers,
    _read_both,
)
from tests.contract.test_published_catalogues import Network, _create_network
from tests.support import builders
from tests.support.backend import Backend
from tests.support.followed_catalogues import FollowerHarness, create_follower
from tests.support.matching import match_queued_variants
from tests.support.memory.clock import SettableClock, SystemClock
from tests.support.merged_catalogues import MERGING, MergedCatalogue

pytestmark = pytest.mark.asyncio
LICENCES = LicenceService()
_GTINS = ("4006381333931", "5901234123457", "9780201379624")
_TABLES = """
SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'org'
WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relnamespace = 'public'::regnamespace
"""
"""Query of the tables with data of organisations."""


async def _follow_while(
    follower: FollowerHarness,
    network: Network,
    monkeypatch: pytest.MonkeyPatch,
    before: Callable[[], Awaitable[None]],
    after: Callable[[], Awaitable[None]],
) -> None:
    """Follow the catalogue; execute `before` when the run has determined the state of the catalogue, and `after` when it has read it."""
    read_records = CombinedConnectors._read_records

    async def read(*arguments: Any) -> AsyncIterator[bytes]:
        await before()
        try:
            async for chunk in read_records(*arguments):
                yield chunk
        finally:
            await after()

    with monkeypatch.context() as patch:
        patch.setattr(CombinedConnectors, "_read_records", read)
        assert (await follower.follow(network.owner)).status == "waiting"
    await asyncio.sleep(MIN_RETRY_DELAY.total_seconds())


async def test_a_licence_that_exists_only_during_a_run_leaves_no_data(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    network, follower = await _create_followed_network(backend)
    await network.grant(network.readers[1], "stock")  # the documents of the view exist
    await follower.follow(network.owner)
    await network.vendor.change_product(network.vendor.sources[0], "P0", title="Another title")

    async def grant() -> None:
        await network.grant(follower.tenant, "stock")

    async def revoke() -> None:
        await network.revoke(follower.tenant)

    await _follow_while(follower, network, monkeypatch, grant, revoke)
    await follower.follow(network.owner)
    assert "lead_time_days" not in str(await follower.read_copies())
    originals, copies = await _read_both(network, follower)
    assert copies == originals


async def test_a_licence_that_is_interrupted_during_a_run_loses_no_copies(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    network, follower = await _create_followed_network(backend)
    await follower.follow(network.owner)
    await network.vendor.change_product(network.vendor.sources[0], "P0", title="Another title")

    async def revoke() -> None:
        async with backend.uow.begin(network.owner, builders.CALL) as tx:
            await LICENCES.revoke(tx, EVERYONE)

    await _follow_while(follower, network, monkeypatch, revoke, network.publish)
    await follower.follow(network.owner)
    originals, copies = await _read_both(network, follower)
    assert copies == originals and len(copies) == 6


async def test_vendors_that_follow_each_other_stop_starting_runs(backend: Backend) -> None:
    network, follower = await _create_followed_network(backend)
    tenant = follower.tenant
    own = MergedCatalogue(backend.uow, tenant)
    source = await own.create_source(catalogue=follower.source.catalogue, licence_basis=LicenceBasis.OWN_DATA)
    product = await own.load_product(source, "P0", "red")
    mutual = Network(backend, own, [network.owner], random.Random(1))
    await mutual.publish()
    await mutual.set_visibility([product.id], Visibility.LISTED)
    back = await create_follower(backend, network.owner, follower.source.catalogue)
    for _ in range(4):
        await follower.follow(network.owner, tenant)
        await back.follow(network.owner, tenant)
    counts = len(await follower.list_runs()), len(await back.list_runs())
    for _ in range(3):
        await follower.follow(network.owner, tenant)
        await back.follow(network.owner, tenant)
    assert (len(await follower.list_runs()), len(await back.list_runs())) == counts
    assert len(await back.read_copies()) == 1 and len(await follower.read_copies()) == 6
    assert counts[0] <= 2 and counts[1] <= 2, counts


async def test_a_replay_after_a_revocation_restores_nothing(backend: Backend) -> None:
    network, follower = await _create_followed_network(backend)
    await follower.follow(network.owner)
    async with backend.uow.begin(network.owner, builders.CALL) as tx:
        await LICENCES.revoke(tx, EVERYONE)
    # before the revocation is noticed
    async with backend.uow.begin(follower.tenant, builders.CALL) as tx:
        await RunService(follower.connectors).queue_replay(tx, follower.source.id, StartRun())
    await follower.process_jobs()
    await follower.follow(network.owner)
    for document in (await follower.read_copies()).values():
        _assert_erased(document)
    # after
    async with backend.uow.begin(follower.tenant, builders.CALL) as tx:
        await RunService(follower.connectors).queue_replay(tx, follower.source.id, StartRun())
    await follower.process_jobs()
    for document in (await follower.read_copies()).values():
        _assert_erased(document)


@pytest.mark.parametrize("seed", range(3))
async def test_merged_products_keep_nothing_of_erased_copies(backend: Backend, seed: int) -> None:
    network, follower = await _create_followed_network(backend)
    dice, vendor = random.Random(seed), network.vendor
    for product in vendor.products:
        source = next(one for one in vendor.sources if one.id == product.source)
        await vendor.change_product(source, product.key, description=f"SECRET {product.id}")
        await vendor.change_variants(source, product.key, size=f"SECRET {product.id}")
    await follower.follow(network.owner)
    own = MergedCatalogue(backend.uow, follower.tenant)
    source = await own.create_source(catalogue=follower.source.catalogue)
    mine = [await own.load_product(source, f"M{number}", "red", "blue") for number in range(3)]
    async with backend.uow.begin(follower.tenant, builders.CALL) as tx:
        copies = await tx[CatalogueStore].load_products(follower.source.id, [one.id for one in vendor.products])
    own.products += copies.values()
    merges: list[Merge] = []
    hidden: set[str] = set()
    for _ in range(20):
        match dice.randrange(4):
            case 0 | 1:
                variant, copy = dice.choice(dice.choice(mine).variants), dice.choice([*copies.values()])
                with suppress(Conflict):
                    merges.append(await own.merge_variants(variant, copy.variants[0]))
            case 2 if merges:
                with suppress(Conflict):
                    await own.undo_merge(merges.pop(dice.randrange(len(merges))))
            case _:
                chosen = dice.choice([*copies])
                hidden ^= {chosen}
                await network.set_visibility([chosen], Visibility.HIDDEN if chosen in hidden else Visibility.LISTED)
                await follower.follow(network.owner)
        documents = await own.list_documents()
        assert {id for id in copies if f"SECRET {id}" in str(documents)} == copies.keys() - hidden
        offers = [offer for document in documents.values() for offer in _list_offers(document)]
        assert not any("withdrawn_at" in offer and "price" in offer for offer in offers)


async def _fail(_: ChunkWriter) -> None:
    raise ParseFailed("failed after the chunks were stored")


async def _pull(follower: FollowerHarness) -> Run:
    """Execute a run that a user starts, and return it."""
    async with follower.backend.uow.begin(follower.tenant, builders.CALL) as tx:
        await RunService(follower.connectors).queue_pull(tx, follower.source.id, StartRun())
    await follower.process_jobs()
    return (await follower.list_runs())[0]


async def test_data_that_a_failed_run_has_stored_does_not_outlive_the_licence(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    network, follower = await _create_followed_network(backend)
    await network.grant(network.readers[1], "stock")  # the documents of the view exist
    await follower.follow(network.owner)
    await network.grant(follower.tenant, "stock")
    with monkeypatch.context() as patch:
        patch.setattr(ChunkWriter, "update_absent_products", _fail)
        assert (await follower.follow()).status == "failed"
    assert "lead_time_days" in str(await follower.read_copies())
    await network.revoke(follower.tenant)
    assert (await _pull(follower)).status == "succeeded"
    assert "lead_time_days" not in str(await follower.read_copies())


async def test_copies_of_a_failed_first_run_do_not_outlive_the_licence_without_quota(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    network, follower = await _create_followed_network(backend)
    with monkeypatch.context() as patch:
        patch.setattr(ChunkWriter, "update_absent_products", _fail)
        assert (await follower.follow(network.owner)).status == "failed"
    hidden = network.vendor.products[0].id
    await network.set_visibility([hidden], Visibility.HIDDEN)
    await network.vendor.change_product(network.vendor.sources[0], "P1", title="Another title")
    await backend.relay(network.owner)

    async def refuse(*_: object) -> bool:
        return False

    monkeypatch.setattr(quota, "reserve_quota", refuse)
    assert (await _pull(follower)).status == "succeeded"
    _assert_erased((await follower.read_copies())[hidden])


async def test_the_quota_applies_to_a_catalogue_that_was_empty_at_first(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = await _create_network(backend)
    await network.publish()
    follower = await create_follower(backend, network.readers[0], network.catalogue)
    assert (await follower.follow(network.owner)).status == "succeeded"

    async def refuse(*_: object) -> bool:
        return False

    monkeypatch.setattr(quota, "reserve_quota", refuse)
    await network.set_visibility([product.id for product in network.vendor.products], Visibility.LISTED)
    run = await follower.follow(network.owner)
    assert run.error is not None and run.error.code == RunErrorCode.QUOTA_EXCEEDED


async def test_copies_do_not_outlive_the_licence_without_storage(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    network, follower = await _create_followed_network(backend)
    await network.grant(network.readers[1], "stock")  # the documents of the view exist
    await follower.follow(network.owner)

    async def refuse(*_: object) -> bool:
        return False

    monkeypatch.setattr(PostgresStorageLedger, "make_space", refuse)
    hidden = network.vendor.products[0].id
    await network.set_visibility([hidden], Visibility.HIDDEN)
    assert (await follower.follow(network.owner)).status == "succeeded"
    _assert_erased((await follower.read_copies())[hidden])
    await network.grant(follower.tenant, "stock")
    assert (await follower.follow()).status == "succeeded"
    await network.revoke(follower.tenant)
    assert (await follower.follow()).status == "succeeded"
    assert "lead_time_days" not in str(await follower.read_copies())


async def test_copies_do_not_outlive_the_licence_after_many_failures(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    network, follower = await _create_followed_network(backend)
    await follower.follow(network.owner)
    async with backend.uow.begin(follower.tenant, builders.CALL) as tx:
        source = require_found(await tx[SourceStore].get(follower.source.id, lock=True))
        await tx[SourceStore].save(replace(source, failures=HealthThresholds().blocked_after - 1))
    await network.vendor.change_product(network.vendor.sources[0], "P0", title="Another title")
    with monkeypatch.context() as patch:
        patch.setattr(snapshots, "MAX_SNAPSHOT_BYTES", 1)
        assert (await follower.follow(network.owner)).status == "failed"
    async with backend.uow.begin(network.owner, builders.CALL) as tx:
        await LICENCES.revoke(tx, EVERYONE)
    later = SettableClock(SystemClock().now() + timedelta(minutes=6))
    await RunScheduler(backend.uow, backend.schedule, later, backend.network).queue_runs_of_followers()
    await follower.process_jobs()
    assert (await follower.list_runs())[0].status == "succeeded"
    for document in (await follower.read_copies()).values():
        _assert_erased(document)


async def test_copies_of_a_deleted_publisher_are_erased(backend: Backend) -> None:
    network, follower = await _create_followed_network(backend)
    await follower.follow(network.owner)
    erasure = PostgresErasure(backend.pool)
    await erasure.delete_data(network.owner.org)
    await erasure.delete_organisation(network.owner.org)
    await follower.follow()
    copies = await follower.read_copies()
    assert len(copies) == 6
    for document in copies.values():
        _assert_erased(document)


async def test_decided_pairs_lose_the_compared_values_of_erased_copies(backend: Backend) -> None:
    network, follower = await _create_followed_network(backend)
    hidden = network.vendor.products[0]
    await follower.follow(network.owner)
    own = MergedCatalogue(backend.uow, follower.tenant)
    source = await own.create_source(catalogue=follower.source.catalogue)
    mine = await own.load_product(source, "M", "red", "blue")
    async with backend.uow.begin(follower.tenant, builders.CALL) as tx:
        copies = await tx[CatalogueStore].load_products(follower.source.id, [hidden.id])
    own.products += copies.values()
    evidence = (PairEvidence("title", 1, 5.0, "equal", "Secret title", "Secret title"),)
    judgement = Judgement(
        "mjd_1",
        "model",
        JudgementOutcome.LEFT_OPEN,
        builders.MOMENT,
        "same",
        0.9,
        (QuotedReason("title", "Secret title", "Secret title"),),
    )
    pairs = [
        await own.create_pair(variant, copies[hidden.id].variants[0], evidence=evidence, judgement=judgement)
        for variant in mine.variants
    ]
    async with backend.uow.begin(follower.tenant, builders.CALL) as tx:
        await MERGING.dismiss_pair(tx, pairs[0].id, DecidedBy.PERSON)
        await MERGING.merge_pair(tx, pairs[1].id, DecidedBy.PERSON)
    await network.set_visibility([hidden.id], Visibility.HIDDEN)
    await follower.follow(network.owner)
    await match_queued_variants(backend, follower.tenant, PairUpdater())  # type: ignore[arg-type]
    async with backend.uow.begin_reading(follower.tenant) as tx:
        stored = [await tx[PairStore].get(pair.id) for pair in pairs]
    assert [pair.status for pair in stored if pair] == ["dismissed", "merged"]
    assert "Secret" not in str(stored)


async def _find_tables(backend: Backend, tenant: Tenant, text: str) -> set[str]:
    """Return the names of the tables with rows of the organisation that contain the text, also in the encoded form of JSON bodies."""
    found = set[str]()
    async with backend.pool.connect_as_owner() as connection:
        cursor = await connection.driver_connection.execute(_TABLES)
        for (name,) in await cursor.fetchall():
            statement = sql.SQL("SELECT t::text FROM {} AS t WHERE org = %s").format(sql.Identifier(name))
            rows = await (await connection.driver_connection.execute(statement, (tenant.org,))).fetchall()
            if any(form in row.lower() for (row,) in rows for form in (text, text.encode().hex())):
                found.add(name)
    return found


async def test_only_events_contain_data_of_erased_copies(backend: Backend) -> None:
    network, follower = await _create_followed_network(backend)
    own = MergedCatalogue(backend.uow, follower.tenant)
    source = await own.create_source(catalogue=follower.source.catalogue)
    for number, gtin in enumerate(_GTINS):
        key = f"P{number}"
        await own.load_product(source, key, "red", brand=f"Brand {number}")
        await own.change_variants(source, key, gtin=gtin)
        original = network.vendor.sources[0]
        await network.vendor.change_product(original, key, title=f"Title of {key} zebrawood", description="zebrawood")
        await network.vendor.change_variants(original, key, gtin=gtin, size="zebrawood")
    await follower.follow(network.owner)
    await match_queued_variants(backend, follower.tenant, PairUpdater())  # type: ignore[arg-type]
    assert {"product_documents", "match_pairs"} <= await _find_tables(backend, follower.tenant, "zebrawood")
    await network.set_visibility([product.id for product in network.vendor.products], Visibility.HIDDEN)
    await follower.follow(network.owner)
    await match_queued_variants(backend, follower.tenant, PairUpdater())  # type: ignore[arg-type]
    # the index of matching keeps words without items, which nobody can read
    assert await _find_tables(backend, follower.tenant, "zebrawood") <= {"events", "match_keys"}
