"""Concurrent changes of a published catalogue: no deadlock, and readers agree with the owner afterwards."""

import asyncio
import random
from typing import Any

import pytest

from domain.catalogue.model import Visibility
from domain.catalogue.ports import PublishedCopies
from domain.catalogue.usecases.publication import refresh_copies
from domain.events.ports import EventLog
from domain.kernel.errors import Conflict
from domain.publishing.ports import LicenceStore
from domain.publishing.usecases.licences import LicenceService
from tests.contract.test_published_catalogues import _create_network
from tests.support import builders
from tests.support.backend import Backend

pytestmark = pytest.mark.asyncio


@pytest.mark.parametrize("seed", range(6))
async def test_concurrent_changes_agree(backend: Backend, seed: int) -> None:
    network = await _create_network(backend, seed)
    vendor, dice = network.vendor, random.Random(seed)
    await network.publish()
    products = [product.id for product in vendor.products]
    await network.set_visibility(products, Visibility.LISTED)
    network.events.clear()

    async def visibility() -> None:
        for _ in range(12):
            await network.set_visibility(dice.sample(products, 3), dice.choice(list(Visibility)))

    async def prices(index: int) -> None:
        for number in range(12):
            await vendor.change_price(vendor.sources[index], f"P{number % 3}", 1000 + number)

    async def refresh() -> None:  # as the refresh of documents with images does, without lock_for_writing
        for _ in range(12):
            async with network.uow.begin(network.owner, builders.CALL) as tx:
                await tx[EventLog].append(await refresh_copies(tx, dice.sample(products, 3)))

    async def merges() -> None:
        made: list[Any] = []
        for _ in range(8):
            one, other = dice.choice(vendor.products[:3]), dice.choice(vendor.products[3:])
            try:
                if made and dice.random() < 0.5:
                    await vendor.undo_merge(made.pop())
                else:
                    made.append(await vendor.merge_variants(one.variants[0], other.variants[0]))
            except Conflict:
                continue

    await asyncio.gather(visibility(), visibility(), prices(0), prices(1), merges())
    expected = await network.list_expected()
    for reader in network.readers:
        assert (await network.read_products(reader, catalogue=network.catalogue)).keys() == expected.keys()


async def test_a_licence_that_is_reduced_while_its_view_is_written_keeps_the_reduced_view(backend: Backend) -> None:
    """The job reads the licences, and the owner reduces one before the job stores the view."""
    network = await _create_network(backend)
    await network.publish()
    await network.set_visibility([product.id for product in network.vendor.products], Visibility.LISTED)
    reader = network.readers[0]
    service = LicenceService()
    async with network.uow.begin(network.owner, builders.CALL) as tx:
        await service.grant(tx, reader.org, ["stock", "trade"])
    async with network.uow.begin(network.owner, builders.CALL) as tx:  # the end of ViewWriter
        for product in network.vendor.products:
            await tx[PublishedCopies].write_documents([product.id], ("all",))
        async with network.uow.begin(network.owner, builders.CALL) as other:
            await service.grant(other, reader.org, [])
        await tx[LicenceStore].set_view("all", ["base", "retail", "stock", "trade"])
    read = await network.read_products(reader, catalogue=network.catalogue)
    assert not any(
        "quantity" in offer for one in read.values() for variant in one["variants"] for offer in variant["offers"]
    )


async def test_a_product_listed_while_a_view_is_written_is_visible(backend: Backend) -> None:
    """A change of visibility that began before the grant commits after the job has passed the product."""
    network = await _create_network(backend)
    await network.publish()
    products = [product.id for product in network.vendor.products]
    await network.set_visibility(products[1:], Visibility.LISTED)
    reader = network.readers[0]
    from domain.catalogue.ports import CatalogueStore
    from domain.catalogue.usecases.publication import change_visibility

    async with network.uow.begin(network.owner, builders.CALL) as tx:
        await tx[CatalogueStore].lock_for_writing()
        outcome = await change_visibility(tx, products[:1], Visibility.LISTED)
        await tx[EventLog].append(outcome.events)
        granting = asyncio.ensure_future(network.grant(reader, "stock"))
        await asyncio.sleep(0.5)
    await granting  # its end waits for the change
    assert (await network.read_products(reader, catalogue=network.catalogue)).keys() == set(products)


async def test_a_licence_that_is_extended_keeps_current_documents_until_its_view_is_written(backend: Backend) -> None:
    network = await _create_network(backend)
    await network.publish()
    products = [product.id for product in network.vendor.products]
    await network.set_visibility(products[1:], Visibility.LISTED)
    reader = network.readers[0]
    await network.grant(reader, "stock")
    async with network.uow.begin(network.owner, builders.CALL) as tx:  # the job waits behind a publication run
        await LicenceService().grant(tx, reader.org, ["stock", "trade"])
    await network.set_visibility(products[:1], Visibility.LISTED)
    await network.vendor.change_price(network.vendor.sources[0], "P1", 4711)
    read = await network.read_products(reader, catalogue=network.catalogue)
    prices = [offer["price"] for one in read.values() for variant in one["variants"] for offer in variant["offers"]]
    assert (read.keys(), 4711 in prices) == (set(products), True)
