"""Published catalogues: what other organisations read agrees with the owner's catalogue, licences and events."""

import asyncio
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from adapters.api_json.catalogue import hide_offer_fields
from domain.catalogue.licences import HIDDEN_FIELDS_BY_VIEW, find_view
from domain.catalogue.model import LicenceBasis, OfferFilter, ProductFilter, ProductSort, ProductStatus, Visibility
from domain.catalogue.ports import CatalogueStore
from domain.catalogue.publication import REFRESH_SOURCE, create_refresh_job
from domain.catalogue.usecases.publication import change_visibility
from domain.events.model import Event
from domain.events.ports import EventLog
from domain.jobs.ports import JobStore
from domain.kernel.errors import Conflict
from domain.kernel.ids import new_id
from domain.kernel.paging import PageRequest
from domain.kernel.tenancy import Tenant
from domain.matching.model import Merge
from domain.media.ports import MediaStore
from domain.orgs.ports import OrgStore
from domain.publishing.model import create_view_job
from domain.publishing.usecases.execution import SourceRefresher, ViewWriter
from domain.publishing.usecases.licences import LicenceService
from domain.sources.model import Source
from domain.sources.ports import SourceStore
from tests.support import builders, catalogues
from tests.support.backend import Backend
from tests.support.corrected_catalogues import CorrectedCatalogue
from tests.support.facets import check_facets
from tests.support.merged_catalogues import MergedCatalogue

pytestmark = pytest.mark.asyncio
LICENCES = LicenceService()
EXTRA_GROUPS = ((), ("stock",), ("trade",), ("stock", "trade"))


class Network:
    """A vendor with sources, and organisations that read its catalogue."""

    def __init__(
        self, backend: Backend, vendor: MergedCatalogue, readers: Sequence[Tenant], dice: random.Random
    ) -> None:
        self.backend, self.uow, self.vendor, self.readers, self.dice = backend, backend.uow, vendor, readers, dice
        self.events: list[Event] = []
        self.groups_by_reader: dict[str, frozenset[str]] = {}
        self.unshareable: set[str] = set()
        self.merges: list[Merge] = []
        self.price = 0
        self.visibilities: dict[str, Visibility] = {}

    @property
    def owner(self) -> Tenant:
        return self.vendor.tenant

    @property
    def catalogue(self) -> str:
        return self.vendor.sources[0].catalogue

    def record(self, events: Sequence[Event]) -> None:
        self.events += [event for event in events if event.is_published]

    async def set_visibility(self, products: Sequence[str], visibility: Visibility) -> None:
        async with self.uow.begin(self.owner, builders.CALL) as tx:
            await tx[CatalogueStore].lock_for_writing()
            outcome = await change_visibility(tx, products, visibility)
            await tx[EventLog].append(outcome.events)
            self.record(outcome.events)
        self.visibilities |= dict.fromkeys(outcome.changed, visibility)

    async def publish(self) -> None:
        async with self.uow.begin(self.owner, builders.CALL) as tx:
            await LICENCES.grant_to_everyone(tx)

    async def grant(self, reader: Tenant, *groups: str) -> None:
        async with self.uow.begin(self.owner, builders.CALL) as tx:
            await LICENCES.grant(tx, reader.org, groups)
            jobs = list(tx.recorded.jobs)
        self.groups_by_reader[reader.org] = frozenset(groups)
        for job in jobs:
            await self.run_job(ViewWriter(self.uow), job.kind, **job.args)

    async def revoke(self, reader: Tenant) -> None:
        async with self.uow.begin(self.owner, builders.CALL) as tx:
            await LICENCES.revoke(tx, reader.org)
        del self.groups_by_reader[reader.org]

    async def set_basis(self, source: Source, basis: LicenceBasis) -> None:
        async with self.uow.begin(self.owner, builders.CALL) as tx:
            stored = await tx[SourceStore].get(source.id)
            assert stored is not None
            await tx[SourceStore].save(replace(stored, licence_basis=basis))
        source_ids = {source.id} if basis in (LicenceBasis.UNKNOWN, LicenceBasis.PUBLIC_DATA) else set()
        self.unshareable = self.unshareable - {source.id} | source_ids
        self.vendor.sources = [
            replace(one, licence_basis=basis) if one.id == source.id else one for one in self.vendor.sources
        ]
        await self.run_job(SourceRefresher(self.uow), REFRESH_SOURCE, source=source.id)

    async def run_job(self, handler: Any, kind: str, **args: Any) -> None:
        """Execute one job of the vendor."""
        make = create_refresh_job if kind == REFRESH_SOURCE else create_view_job
        async with self.uow.begin(self.owner, builders.CALL) as tx:
            await tx[JobStore].add(make(next(iter(args.values())), self.owner))
        lane = f"{self.owner.org}/{'refresh' if kind == REFRESH_SOURCE else 'publishing'}:{self.owner.mode}"
        [job] = await self.backend.dispatch.claim(lane, 10, timedelta(seconds=30))
        before = len(self.events)
        recorder = _RecordingUnitOfWork(self.uow, self)
        await type(handler)(recorder)(job, asyncio.Event())
        assert len(self.events) >= before

    async def read_products(self, reader: Tenant, **filters: Any) -> dict[str, dict[str, Any]]:
        """Return the documents of all products that a reader sees, by ID."""
        found: dict[str, dict[str, Any]] = {}
        key: str | None = None
        while True:
            async with self.uow.begin_reading(reader) as tx:
                page = await tx[CatalogueStore].list_products(ProductFilter(**filters), PageRequest(2, key=key))
            for document in page.items:
                assert document.id not in found
                found[document.id] = json.loads(document.body)
            key = page.next_key
            if key is None:
                assert list(found) == sorted(found, reverse=True)
                return found

    async def list_sorted(self, reader: Tenant, sort: ProductSort) -> set[str]:
        """Return the IDs of all products that a reader sees in an order, in pages of three products."""
        found, key = list[str](), None
        while True:
            async with self.uow.begin_reading(reader) as tx:
                page = await tx[CatalogueStore].list_products(ProductFilter(), PageRequest(3, key), sort)
            found += [document.id for document in page.items]
            key = page.next_key
            if key is None:
                assert len(found) == len(set(found))
                return set(found)

    async def read_offers(self, reader: Tenant) -> dict[str, Mapping[str, Any]]:
        """Return the data of the vendor's offers that a reader sees, by ID."""
        async with self.uow.begin_reading(reader) as tx:
            pages = [
                await tx[CatalogueStore].list_offers(OfferFilter(source=source.id), PageRequest(100))
                for source in self.vendor.sources
            ]
        return {line.offer.id: line.offer.data for page in pages for line in page.items}

    async def list_expected(self) -> dict[str, bytes]:
        """Return the documents that other organisations should see, with all fields."""
        async with self.uow.begin_reading(self.owner) as tx:
            page = await tx[CatalogueStore].list_products(ProductFilter(catalogue=self.catalogue), PageRequest(100))
        expected = {}
        for document in page.items:
            content = json.loads(document.body)
            sources = {offer["source"] for variant in content["variants"] for offer in variant["offers"]}
            merged = [
                product
                for product in self.vendor.products
                if product.id in {document.id, *content.get("merged_from", ())}
            ]
            sources |= {product.source for product in merged}
            is_listed = all(self.visibilities.get(product.id) == Visibility.LISTED for product in merged)
            if is_listed and not sources & self.unshareable:
                expected[document.id] = document.body
        return expected

    async def check(self) -> None:
        """Compare what each reader sees, and what the events say, with the owner's catalogue."""
        expected = await self.list_expected()
        for reader in self.readers:
            groups = self.groups_by_reader.get(reader.org, frozenset())
            hidden = HIDDEN_FIELDS_BY_VIEW[find_view(groups)]
            documents = {id: json.loads(hide_offer_fields(body, hidden)) for id, body in expected.items()}
            everything = await self.read_products(reader)
            assert {id: found for id, found in everything.items() if found["catalogue"] == self.catalogue} == documents
            assert await self.read_products(reader, catalogue=self.catalogue) == documents
            statuses = [*ProductStatus]
            assert await self.read_products(reader, catalogue=self.catalogue, status=statuses) == documents
            for sort in ProductSort:
                assert await self.list_sorted(reader, sort) == everything.keys()
            offers = {
                offer["id"]
                for document in documents.values()
                for variant in document["variants"]
                for offer in variant["offers"]
            }
            seen = await self.read_offers(reader)
            assert seen.keys() == offers
            assert not any(hidden & data.keys() for data in seen.values())
        await check_facets(self.uow, self.owner)
        versions: dict[str, int] = {}
        for event in self.events:
            if event.type in ("product.withdrawn", "product.merged"):
                versions.pop(event.subject, None)
            elif event.type == "product.published":
                versions[event.subject] = event.version
            elif event.type.startswith("product.") and event.subject in versions:
                assert event.version > versions[event.subject]
                versions[event.subject] = event.version
        assert versions == {id: json.loads(body)["version"] for id, body in expected.items()}


class _RecordingUnitOfWork:
    """Unit of work that adds the published events of its transactions to the network's."""

    def __init__(self, uow: Any, network: Network) -> None:
        self._uow, self._network = uow, network

    def begin(self, *arguments: Any) -> Any:
        return _Recording(self._uow.begin(*arguments), self._network)


class _Recording:
    def __init__(self, transaction: Any, network: Network) -> None:
        self._transaction, self._network = transaction, network

    async def __aenter__(self) -> Any:
        self._tx = await self._transaction.__aenter__()
        return self._tx

    async def __aexit__(self, *arguments: object) -> Any:
        self._network.record(self._tx.recorded.events)
        return await self._transaction.__aexit__(*arguments)


async def _find_catalogue(backend: Backend, tenant: Tenant) -> str:
    async with backend.uow.begin_reading(tenant) as tx:
        return (await tx[OrgStore].get_organisation()).get_catalogue_id(tenant.livemode)


async def _create_network(backend: Backend, seed: int = 1) -> Network:
    owner = await backend.tenant()
    vendor = MergedCatalogue(backend.uow, owner)
    catalogue = await _find_catalogue(backend, owner)
    for _ in range(2):
        await vendor.create_source(catalogue=catalogue, licence_basis=LicenceBasis.OWN_DATA)
    network = Network(backend, vendor, [await backend.tenant() for _ in range(2)], random.Random(seed))
    for source in vendor.sources:
        for number in range(3):
            await vendor.load_product(source, f"P{number}", "red", brand=f"Brand {number}")
    return network


async def test_a_published_product_is_read_with_the_fields_of_the_licence(backend: Backend) -> None:
    network = await _create_network(backend)
    first, second = network.readers
    assert await network.read_products(first, catalogue=network.catalogue) == {}
    await network.publish()
    await network.set_visibility([product.id for product in network.vendor.products], Visibility.LISTED)
    await network.grant(second, "stock")
    await network.check()
    [offer] = next(iter((await network.read_products(first, catalogue=network.catalogue)).values()))["variants"][0][
        "offers"
    ]
    assert "quantity" not in offer and offer["price"]
    [offer] = next(iter((await network.read_products(second, catalogue=network.catalogue)).values()))["variants"][0][
        "offers"
    ]
    assert offer["quantity"] == 4
    await network.revoke(second)
    await network.check()


async def test_own_and_licensed_products_are_listed_together(backend: Backend) -> None:
    network = await _create_network(backend)
    reader, brand = network.readers[0], new_id("prod")
    for product in network.vendor.products:
        await network.vendor.change_product(
            next(one for one in network.vendor.sources if one.id == product.source), product.key, brand=brand
        )
    own = MergedCatalogue(backend.uow, reader)
    source = await own.create_source(catalogue=await _find_catalogue(backend, reader))
    await own.load_product(source, "P1", "red", brand=brand)
    await network.publish()
    await network.set_visibility([product.id for product in network.vendor.products], Visibility.LISTED)
    await own.load_product(source, "P2", "red", brand=brand)
    own_ids = {product.id for product in own.products}
    everything = await network.read_products(reader, brand=brand)
    assert everything.keys() == own_ids | {product.id for product in network.vendor.products}
    assert (await network.read_products(reader, catalogue=source.catalogue)).keys() == own_ids
    assert await network.read_products(reader, q=f"nothing {brand[-8:]}") == {}
    assert (await network.read_products(reader, q=f"title {brand}")).keys() == everything.keys()
    assert len(await network.read_products(reader, sku=["P1-red"], brand=brand)) == 3
    assert len(await network.read_products(reader, status=["active"], brand=brand)) == 8
    assert await network.read_products(reader, catalogue=new_id("cat")) == {}


async def test_an_image_of_a_listed_product_is_read_by_others(backend: Backend) -> None:
    network = await _create_network(backend)
    product = network.vendor.products[0]
    image = await catalogues.add_image(backend.uow, network.owner, product.id)
    reader = network.readers[0]

    async def find_image() -> Any:
        async with backend.uow.begin_reading(reader) as tx:
            return await tx[MediaStore].get_image(image.id)

    assert await find_image() is None
    await network.publish()
    await network.set_visibility([product.id], Visibility.LISTED)
    assert (await find_image()).key == image.key
    await network.set_visibility([product.id], Visibility.HIDDEN)
    assert await find_image() is None


async def _correct_at_random(network: Network, edits: CorrectedCatalogue) -> None:
    """Make corrections of a product and of an offer, or remove one, or do nothing."""
    dice, product = network.dice, network.dice.choice(network.vendor.products)
    network.price += 1
    match dice.randrange(4):
        case 0:
            network.record(await edits.correct(product.id, "title", f"Corrected {network.price}"))
            field = dice.choice(("quantity", "lead_time_days"))
            network.record(await edits.correct(product.variants[0].offers[0].id, field, network.price))
        case 1 if corrections := await edits.list():
            network.record(await edits.remove(dice.choice(corrections)))


@pytest.mark.parametrize("seed", range(5))
async def test_readers_agree_with_the_owner_after_random_changes(backend: Backend, seed: int) -> None:
    network = await _create_network(backend, seed)
    dice, vendor = network.dice, network.vendor
    edits = CorrectedCatalogue(vendor, backend.dispatch)
    await network.publish()
    for _ in range(30):
        products = [product.id for product in vendor.products]
        await _correct_at_random(network, edits)
        match dice.randrange(8):
            case 0 | 1:
                chosen = dice.sample(products, dice.randrange(1, 4))
                await network.set_visibility(chosen, dice.choice(list(Visibility)))
            case 2:
                source = dice.choice(vendor.sources)
                network.price += 1
                network.record(
                    await vendor.change_product(source, f"P{dice.randrange(3)}", title=f"Title {network.price}")
                )
            case 3:
                source = dice.choice(vendor.sources)
                network.price += 1
                network.record(
                    await vendor.change_variants(source, f"P{dice.randrange(3)}", colour=f"c{network.price}")
                )
            case 4:
                one, other = dice.choice(vendor.products[:3]), dice.choice(vendor.products[3:])
                try:
                    network.merges.append(
                        await vendor.merge_variants(one.variants[0], other.variants[0], network.record)
                    )
                except Conflict:
                    continue
            case 5 if network.merges:
                merge = network.merges.pop(dice.randrange(len(network.merges)))
                try:
                    await vendor.undo_merge(merge, network.record)
                except Conflict:
                    continue
            case 6:
                await network.set_basis(dice.choice(vendor.sources), dice.choice(list(LicenceBasis)))
            case 7:
                reader = dice.choice(network.readers)
                if reader.org in network.groups_by_reader and dice.random() < 0.5:
                    await network.revoke(reader)
                else:
                    await network.grant(reader, *dice.choice(EXTRA_GROUPS))
        await network.check()
