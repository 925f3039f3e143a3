"""Attacks on published catalogues: data that must not leave its organisation."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from adapters.postgres.erasure import PostgresErasure
from domain.catalogue.model import LicenceBasis, Visibility
from domain.catalogue.publication import create_refresh_job
from domain.events.model import Event
from domain.jobs.ports import JobStore
from domain.publishing.model import create_view_job
from domain.publishing.usecases import execution
from domain.publishing.usecases.execution import PublicationExecutor, SourceRefresher
from domain.publishing.usecases.service import PublishingService
from domain.sources.model import Source
from domain.sources.ports import SourceStore
from tests.contract.test_published_catalogues import Network, _create_network
from tests.support import builders, catalogues
from tests.support.backend import Backend

pytestmark = pytest.mark.asyncio
SECRET = "secret of the other source"


class _InterruptedUnitOfWork:
    """Unit of work that executes an action before the second transaction."""

    def __init__(self, uow: Any, action: Any) -> None:
        self._uow, self._action, self._count = uow, action, 0

    def begin(self, *arguments: Any) -> Any:
        return _Interrupted(self, self._uow.begin(*arguments))

    async def interrupt(self) -> None:
        self._count += 1
        if self._count == 2:
            await self._action()


class _Interrupted:
    def __init__(self, uow: _InterruptedUnitOfWork, transaction: Any) -> None:
        self._uow, self._transaction = uow, transaction

    async def __aenter__(self) -> Any:
        await self._uow.interrupt()
        return await self._transaction.__aenter__()

    async def __aexit__(self, *arguments: object) -> Any:
        return await self._transaction.__aexit__(*arguments)


async def _store_basis(network: Network, source: Source, basis: LicenceBasis) -> None:
    """Change the licence basis of a source as PATCH /v1/sources/{id} does."""
    async with network.uow.begin(network.owner, builders.CALL) as tx:
        stored = await tx[SourceStore].get(source.id, lock=True)
        assert stored is not None
        await tx[SourceStore].save(replace(stored, licence_basis=basis))
        await tx[JobStore].add(create_refresh_job(source.id, network.owner))


async def _publish_all(network: Network) -> None:
    await network.publish()
    await network.set_visibility([product.id for product in network.vendor.products], Visibility.LISTED)


def _find_values(events: list[Event]) -> str:
    return repr([(event.type, event.subject, event.fields) for event in events])


async def test_a_basis_that_changes_during_the_refresh_withdraws_all_products(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execution, "MAX_PORTION_PRODUCTS", 1)
    network = await _create_network(backend)
    await _publish_all(network)
    reader, source = network.readers[0], network.vendor.sources[0]
    await network.set_basis(source, LicenceBasis.UNKNOWN)
    assert len(await network.read_products(reader, catalogue=network.catalogue)) == 3
    await _store_basis(network, source, LicenceBasis.OWN_DATA)
    lane = f"{network.owner.org}/refresh:{network.owner.mode}"
    [job] = await backend.dispatch.claim(lane, 10, timedelta(seconds=30))
    # after the first portion, the vendor learns that the data must not leave after all
    uow = _InterruptedUnitOfWork(network.uow, lambda: _store_basis(network, source, LicenceBasis.UNKNOWN))
    await SourceRefresher(uow)(job, asyncio.Event())  # type: ignore[arg-type]
    for job in await backend.dispatch.claim(lane, 10, timedelta(seconds=30)):
        await SourceRefresher(network.uow)(job, asyncio.Event())
    others = {product.id for product in network.vendor.products if product.source != source.id}
    assert (await network.read_products(reader, catalogue=network.catalogue)).keys() == others


async def test_undoing_a_merge_reveals_no_data_that_must_not_leave(backend: Backend) -> None:
    network = await _create_network(backend)
    vendor = network.vendor
    await vendor.change_product(vendor.sources[1], "P0", description=SECRET)
    await _publish_all(network)
    await network.set_basis(vendor.sources[1], LicenceBasis.UNKNOWN)
    network.events.clear()
    merge = await vendor.merge_variants(vendor.products[0].variants[0], vendor.products[3].variants[0], network.record)
    assert SECRET not in _find_values(network.events)
    await vendor.undo_merge(merge, network.record)
    assert SECRET not in _find_values(network.events)


@pytest.mark.parametrize("visibility", [Visibility.HIDDEN, Visibility.UNLISTED])
async def test_a_product_that_is_not_listed_stays_invisible_when_it_is_merged(
    backend: Backend, visibility: Visibility
) -> None:
    network = await _create_network(backend)
    vendor = network.vendor
    await vendor.change_product(vendor.sources[1], "P0", description=SECRET)
    await _publish_all(network)
    await network.set_visibility([vendor.products[3].id], visibility)
    network.events.clear()
    await vendor.merge_variants(vendor.products[0].variants[0], vendor.products[3].variants[0], network.record)
    assert SECRET not in _find_values(network.events)
    read = await network.read_products(network.readers[0], catalogue=network.catalogue)
    assert SECRET not in repr(read)
    offers = await network.read_offers(network.readers[0])
    assert all(network.vendor.sources[1].id != offer for offer in offers)


async def test_a_run_that_began_before_the_basis_changed_publishes_no_events(backend: Backend) -> None:
    network = await _create_network(backend)
    await _publish_all(network)
    source = network.vendor.sources[0]  # a run keeps the source as it was when its attempt began
    await network.set_basis(source, LicenceBasis.UNKNOWN)
    network.events.clear()
    network.record(await network.vendor.change_product(source, "P0", description=SECRET))
    network.record(await network.vendor.change_price(source, "P1", 4711))
    assert network.events == []


async def test_a_variant_that_moves_to_an_unlisted_product_leaves(backend: Backend) -> None:
    network = await _create_network(backend)
    vendor = network.vendor
    source = vendor.sources[0]
    product = await vendor.load_product(source, "Two", "red", "blue", brand="Two")
    await _publish_all(network)
    reader = network.readers[0]
    await vendor.move_variant(source, "Two", "Two/blue", "Hidden")
    read = (await network.read_products(reader, catalogue=network.catalogue))[product.id]
    moved = product.variants[1]
    assert [variant["id"] for variant in read["variants"]] == [product.variants[0].id]
    assert moved.offers[0].id not in await network.read_offers(reader)
    assert await network.read_products(reader, variant=[moved.id]) == {}
    assert await network.read_products(reader, sku=["Two-blue"]) == {}


async def test_a_hidden_product_is_no_longer_found_by_its_merge(backend: Backend) -> None:
    network = await _create_network(backend)
    vendor = network.vendor
    await _publish_all(network)
    first, second = vendor.products[0], vendor.products[3]
    merge = await vendor.merge_variants(first.variants[0], second.variants[0], network.record)
    await network.set_visibility([second.id], Visibility.HIDDEN)
    await vendor.undo_merge(merge, network.record)
    for id in (first.id, second.id):
        read = await network.read_products(network.readers[0], id=[id])
        expected = [] if id == second.id else [id]
        assert [*read] == expected, id


async def test_a_changed_basis_does_not_wait_for_a_publication_run(backend: Backend) -> None:
    network = await _create_network(backend)
    await _publish_all(network)
    lane = f"{network.owner.org}/publishing:{network.owner.mode}"
    async with network.uow.begin(network.owner, builders.CALL) as tx:
        await tx[JobStore].add(create_view_job("stock", network.owner))  # stands for a run of a large catalogue
    assert len(await backend.dispatch.claim(lane, 10, timedelta(minutes=5))) == 1
    source = network.vendor.sources[0]
    await _store_basis(network, source, LicenceBasis.UNKNOWN)
    for job in await backend.dispatch.claim(lane.replace("publishing", "refresh"), 10, timedelta(seconds=30)):
        await SourceRefresher(network.uow)(job, asyncio.Event())
    others = {product.id for product in network.vendor.products if product.source != source.id}
    assert (await network.read_products(network.readers[0], catalogue=network.catalogue)).keys() == others


async def test_a_product_listed_during_a_withdrawal_is_withdrawn_as_well(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execution, "MAX_PORTION_PRODUCTS", 1)
    network = await _create_network(backend)
    await _publish_all(network)
    reader = network.readers[0]
    await network.grant(reader, "stock")
    first = min(product.id for product in network.vendor.products)
    async with network.uow.begin(network.owner, builders.CALL) as tx:
        await PublishingService().withdraw(tx, {})
    lane = f"{network.owner.org}/publishing:{network.owner.mode}"
    [job] = await backend.dispatch.claim(lane, 10, timedelta(seconds=30))

    async def list_again() -> None:  # the catalogue is still published, so POST /v1/catalogue/visibility permits it
        await network.set_visibility([first], Visibility.LISTED)

    await PublicationExecutor(_InterruptedUnitOfWork(network.uow, list_again))(job, asyncio.Event())  # type: ignore[arg-type]
    assert await network.read_products(reader, catalogue=network.catalogue) == {}


async def test_an_erased_vendor_leaves_no_copies(backend: Backend) -> None:
    network = await _create_network(backend)
    product = network.vendor.products[0]
    await catalogues.add_image(backend.uow, network.owner, product.id)
    await _publish_all(network)
    await PostgresErasure(backend.pool).delete_data(network.owner.org)
    assert await network.read_products(network.readers[0], catalogue=network.catalogue) == {}
