"""Sources that follow catalogues on the network: the copies have what the licence shows, and nothing else."""

import json
import random
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest

from domain.catalogue.licences import EVERYONE
from domain.catalogue.model import LicenceBasis, Visibility
from domain.catalogue.ports import CatalogueStore
from domain.catalogue.usecases.publication import change_visibility
from domain.events.ports import EventLog
from domain.kernel.errors import Conflict, Unprocessable
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from domain.matching.model import Merge
from domain.publishing.usecases.licences import LicenceService
from domain.runs.model import StartRun
from domain.runs.usecases.service import RunService
from domain.sources.usecases.network_connector import CombinedConnectors
from domain.sources.usecases.service import SourceService
from entrypoints.operations.validation import JsonSchemaValidator
from tests.contract.test_published_catalogues import EXTRA_GROUPS, Network, _create_network, _find_catalogue
from tests.support import builders
from tests.support.backend import Backend
from tests.support.followed_catalogues import FollowerHarness, create_follower
from tests.support.merged_catalogues import MergedCatalogue

pytestmark = pytest.mark.asyncio
LICENCES = LicenceService()
_OWN_OFFER_FIELDS = ("id", "source", "version", "observed_at", "location")


async def _create_followed_network(backend: Backend) -> tuple[Network, FollowerHarness]:
    """Return a network with listed products and a source of the first reader that follows its catalogue."""
    network = await _create_network(backend)
    await network.publish()
    await network.set_visibility([product.id for product in network.vendor.products], Visibility.LISTED)
    return network, await create_follower(backend, network.readers[0], network.catalogue)


def _describe(document: dict[str, Any], *, by_key: bool = False) -> dict[str, Any]:
    """Return the fields of a product that a copy has in common with its original; withdrawn offers are omitted."""
    id = "external_id" if by_key else "id"
    variants = {
        variant[id]: {
            "status": variant["status"],
            "data": variant["data"],
            "offers": sorted(
                json.dumps(
                    {name: value for name, value in offer.items() if name not in _OWN_OFFER_FIELDS}, sort_keys=True
                )
                for offer in variant["offers"]
                if "withdrawn_at" not in offer
            ),
        }
        for variant in document["variants"]
    }
    return {"id": document[id], "status": document["status"], "data": document["data"], "variants": variants}


async def _read_both(network: Network, follower: FollowerHarness) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what the reader sees of the originals, and the copies that are not discontinued."""
    originals = await network.read_products(follower.tenant, catalogue=network.catalogue)
    copies = await follower.read_copies()
    return (
        {id: _describe(document) for id, document in originals.items()},
        {
            id: _describe(document, by_key=True)
            for id, document in copies.items()
            if document["status"] != "discontinued"
        },
    )


async def test_copies_equal_what_the_licence_shows(backend: Backend) -> None:
    network, follower = await _create_followed_network(backend)
    run = await follower.follow(network.owner)
    assert (run.status, run.stats["products_created"], run.stats["rows"]) == ("succeeded", 6, 6), run
    originals, copies = await _read_both(network, follower)
    assert copies == originals and len(copies) == 6
    assert "quantity" not in str(copies)


def _list_offers(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [offer for variant in document["variants"] for offer in variant["offers"]]


def _assert_erased(document: dict[str, Any]) -> None:
    """Check that nothing of the original is left in a copy."""
    assert (document["status"], document["data"]) == ("discontinued", {})
    for variant in document["variants"]:
        assert (variant["status"], variant["data"]) == ("discontinued", {})
    for offer in _list_offers(document):
        assert offer.keys() <= {
            *("object", "id", "source", "location", "version", "observed_at"),
            *("quantity", "availability", "withdrawn_at"),
        }
        assert (offer["quantity"], offer["availability"]) == (0, "out_of_stock") and "withdrawn_at" in offer


async def test_a_hidden_product_is_erased_and_returns_with_the_same_ids(backend: Backend) -> None:
    network, follower = await _create_followed_network(backend)
    await network.grant(follower.tenant, "stock", "trade")
    await follower.follow(network.owner)
    before = await follower.read_copies()
    hidden = network.vendor.products[0].id
    await network.set_visibility([hidden], Visibility.HIDDEN)
    run = await follower.follow(network.owner)
    assert (run.status, run.stats["withdrawn"]) == ("succeeded", 1), run
    copies = await follower.read_copies()
    _assert_erased(copies.pop(hidden))
    assert copies == {id: document for id, document in before.items() if id != hidden}
    await network.set_visibility([hidden], Visibility.LISTED)
    await follower.follow(network.owner)
    originals, copies = await _read_both(network, follower)
    assert copies == originals and hidden in copies
    again = (await follower.read_copies())[hidden]
    assert (again["id"], [one["id"] for one in _list_offers(again)]) == (
        before[hidden]["id"],
        [one["id"] for one in _list_offers(before[hidden])],
    )


async def test_a_revoked_field_group_vanishes_from_the_copies(backend: Backend) -> None:
    network, follower = await _create_followed_network(backend)
    await network.grant(follower.tenant, "stock")
    await follower.follow(network.owner)
    assert all(
        "lead_time_days" in offer for one in (await follower.read_copies()).values() for offer in _list_offers(one)
    )
    await network.revoke(follower.tenant)
    run = await follower.follow(network.owner)
    assert run.status == "succeeded"
    originals, copies = await _read_both(network, follower)
    assert copies == originals and "lead_time_days" not in str(await follower.read_copies())


async def test_all_copies_are_erased_without_a_licence_although_the_removal_limit_is_exceeded(backend: Backend) -> None:
    network, follower = await _create_followed_network(backend)
    for number in range(60):
        await network.vendor.load_product(network.vendor.sources[0], f"Q{number}", "red")
    await network.set_visibility([product.id for product in network.vendor.products], Visibility.LISTED)
    await follower.follow(network.owner)
    async with backend.uow.begin(network.owner, builders.CALL) as tx:
        await LICENCES.revoke(tx, EVERYONE)
    run = await follower.follow(network.owner)
    assert (run.status, run.stats["withdrawn"]) == ("succeeded", 66), run
    copies = await follower.read_copies()
    assert len(copies) == 66
    for document in copies.values():
        _assert_erased(document)
    await network.publish()
    await follower.follow(network.owner)
    originals, copies = await _read_both(network, follower)
    assert copies == originals and len(copies) == 66


async def test_a_run_starts_only_after_a_change(backend: Backend) -> None:
    network, follower = await _create_followed_network(backend)
    first = await follower.follow(network.owner)
    assert (await follower.follow(network.owner)).id == first.id, "nothing has changed"
    source = network.vendor.sources[0]
    await network.vendor.change_product(source, "P0", title="Another title")
    await network.vendor.change_product(source, "P1", title="Another title")
    second = await follower.follow(network.owner)
    assert (second.stats["products_changed"], len(await follower.list_runs())) == (2, 2), "one run for both changes"
    await network.grant(follower.tenant, "trade")
    third = await follower.follow()
    assert third.id != second.id and third.stats["unchanged_feed"] == 1, (
        "the licence has changed, the products have not"
    )


async def test_changes_during_a_run_lead_to_one_further_run(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    network, follower = await _create_followed_network(backend)
    scheduler, read_records = follower.create_scheduler(), CombinedConnectors._read_records

    async def read_and_change(*arguments: Any) -> AsyncIterator[bytes]:
        async for chunk in read_records(*arguments):
            yield chunk
        for title in ("One", "Two"):
            await network.vendor.change_product(network.vendor.sources[0], "P0", title=title)
            await backend.relay(network.owner)
            await scheduler.queue_runs_of_followers()

    with monkeypatch.context() as patch:
        patch.setattr(CombinedConnectors, "_read_records", read_and_change)
        await follower.follow(network.owner)
    assert len(await follower.list_runs()) == 1, "the run was still open"
    await follower.follow()
    originals, copies = await _read_both(network, follower)
    assert (copies, len(await follower.list_runs())) == (originals, 2)
    await follower.follow(network.owner)
    assert len(await follower.list_runs()) == 2


async def test_a_manual_run_of_an_unchanged_catalogue_reads_no_products(backend: Backend) -> None:
    network, follower = await _create_followed_network(backend)
    await follower.follow(network.owner)
    async with backend.uow.begin(follower.tenant, builders.CALL) as tx:
        await RunService(follower.connectors).queue_pull(tx, follower.source.id, StartRun())
    await follower.process_jobs()
    newest = (await follower.list_runs())[0]
    assert (newest.status, newest.stats["unchanged_feed"]) == ("succeeded", 1)


async def test_merged_originals_are_copied_with_distinct_locations(backend: Backend) -> None:
    network, follower = await _create_followed_network(backend)
    one, other = network.vendor.products[0], network.vendor.products[3]
    merge = await network.vendor.merge_variants(one.variants[0], other.variants[0])
    run = await follower.follow(network.owner)
    assert (run.status, run.problems) == ("succeeded", ())
    copies = await follower.read_copies()
    assert len(copies) == 5
    [merged] = [document for document in copies.values() if len(_list_offers(document)) == 2]
    locations = [offer["location"] for offer in _list_offers(merged)]
    assert len(set(locations)) == 2 and "main" in locations
    await network.vendor.undo_merge(merge)
    run = await follower.follow(network.owner)
    assert (run.status, run.problems) == ("succeeded", ())
    originals, copies = await _read_both(network, follower)
    assert copies == originals and len(copies) == 6


async def test_data_of_a_followed_catalogue_is_never_published(backend: Backend) -> None:
    network, follower = await _create_followed_network(backend)
    await follower.follow(network.owner)
    tenant, other = follower.tenant, network.readers[1]
    own = MergedCatalogue(backend.uow, tenant)
    source = await own.create_source(catalogue=follower.source.catalogue, licence_basis=LicenceBasis.OWN_DATA)
    product = await own.load_product(source, "P0", "red")
    async with backend.uow.begin(tenant, builders.CALL) as tx:
        await LICENCES.grant_to_everyone(tx)
        copies = await tx[CatalogueStore].load_products(follower.source.id, [one.id for one in network.vendor.products])
        copied = [one.id for one in copies.values()]
        outcome = await change_visibility(tx, [*copied, product.id], Visibility.LISTED)
        await tx[EventLog].append(outcome.events)
    assert (sorted(outcome.unshareable), outcome.changed) == (sorted(copied), [product.id])

    async def list_published() -> set[str]:
        return set(await network.read_products(other, catalogue=follower.source.catalogue))

    assert await list_published() == {product.id}
    own.products += copies.values()
    merge = await own.merge_variants(product.variants[0], copies[network.vendor.products[0].id].variants[0])
    assert await list_published() == set(), "a merged product would reveal the copied data"
    await own.undo_merge(merge)
    assert await list_published() == {product.id}


def _create_service(follower: FollowerHarness) -> SourceService:
    unused: Any = None
    return SourceService(follower.connectors, unused, JsonSchemaValidator(), unused, unused, None)


async def test_sources_that_could_reveal_or_share_data_are_refused(backend: Backend) -> None:
    network, follower = await _create_followed_network(backend)
    service, unpublished = _create_service(follower), await backend.tenant()
    new = {"name": "Copy", "kind": "api", "connector": "network", "config": {"catalogue": network.catalogue}}

    async def find_refusal(tenant: Tenant, source: str | None = None, **changes: Any) -> tuple[str, str]:
        with pytest.raises(Unprocessable) as refusal:
            async with backend.uow.begin(tenant, builders.CALL) as tx:
                await (service.update(tx, source, changes) if source else service.create(tx, new | changes))
        return refusal.value.fields[0].field, refusal.value.detail

    unknown = await find_refusal(follower.tenant, config={"catalogue": new_id("cat")})
    hidden = await find_refusal(follower.tenant, config={"catalogue": await _find_catalogue(backend, unpublished)})
    assert unknown == hidden and unknown[0] == "config.catalogue"
    assert (await find_refusal(network.owner))[1].startswith("This is your own catalogue.")
    source = follower.source.id
    for tenant_source in (None, source):
        assert (await find_refusal(follower.tenant, tenant_source, licence_basis=LicenceBasis.OWN_DATA))[
            0
        ] == "licence_basis"
    assert (await find_refusal(follower.tenant, source, connector="api"))[0] == "connector"
    other_catalogue = {"catalogue": new_id("cat")}
    assert (await find_refusal(follower.tenant, source, config=other_catalogue))[1].startswith("A source cannot follow")
    async with backend.uow.begin(follower.tenant, builders.CALL) as tx:
        other = await service.create(tx, {"name": "A", "kind": "api", "connector": "api", "config": {}})
        made = await service.create(tx, new)
        assert (made.first_party, made.licence_basis, made.schedule.interval_minutes) == (False, "unknown", 1440)
    assert (await find_refusal(follower.tenant, other.id, connector="network"))[0] == "connector"


async def test_a_source_remains_changeable_without_a_licence(backend: Backend) -> None:
    network, follower = await _create_followed_network(backend)
    async with backend.uow.begin(network.owner, builders.CALL) as tx:
        await LICENCES.revoke(tx, EVERYONE)
    async with backend.uow.begin(follower.tenant, builders.CALL) as tx:
        await _create_service(follower).update(tx, follower.source.id, {"name": "Former vendor"})


@pytest.mark.parametrize("seed", range(5))
async def test_copies_never_have_more_than_the_licence_shows(backend: Backend, seed: int) -> None:
    network, follower = await _create_followed_network(backend)
    dice, vendor = random.Random(seed), network.vendor
    merges: list[Merge] = []
    for step in range(30):
        products = [product.id for product in vendor.products]
        match dice.randrange(7):
            case 0 | 1:
                await network.set_visibility(dice.sample(products, 2), dice.choice(list(Visibility)))
            case 2:
                await vendor.change_product(dice.choice(vendor.sources), f"P{dice.randrange(3)}", title=f"Title {step}")
            case 3:
                await vendor.change_price(dice.choice(vendor.sources), f"P{dice.randrange(3)}", 1000 + step)
            case 4:
                one, other = dice.choice(vendor.products[:3]), dice.choice(vendor.products[3:])
                with suppress(Conflict):
                    merges.append(await vendor.merge_variants(one.variants[0], other.variants[0]))
            case 5 if merges:
                with suppress(Conflict):
                    await vendor.undo_merge(merges.pop(dice.randrange(len(merges))))
            case 6 if follower.tenant.org in network.groups_by_reader:
                await network.revoke(follower.tenant)
            case 6:
                await network.grant(follower.tenant, *dice.choice(EXTRA_GROUPS))
        if dice.random() < 0.6:
            run = await follower.follow(network.owner)
            assert (run.status, run.problems) == ("succeeded", ()), run
            await _check(network, follower)


async def _check(network: Network, follower: FollowerHarness) -> None:
    """Compare the copies with what the licence shows; all others are erased."""
    originals = await network.read_products(follower.tenant, catalogue=network.catalogue)
    copies = await follower.read_copies()
    for id, document in copies.items():
        if id not in originals:
            _assert_erased(document)
    for id, original in originals.items():
        shown, copied = _describe(original), _describe(copies[id], by_key=True)
        former = {key: copied["variants"].pop(key) for key in copied["variants"].keys() - shown["variants"].keys()}
        assert all((one["status"], one["data"], one["offers"]) == ("discontinued", {}, []) for one in former.values())
        assert copied == shown
