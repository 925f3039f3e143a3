"""Delivery of events to webhook endpoints (domain/webhooks/usecases/deliverer.py)."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest
import pytest_asyncio

from domain.changes.model import ALL, OPEN_END, FeedPosition, LogView
from domain.events.model import Event, LogPosition
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from domain.webhooks.model import DisabledReason, Filters, Recovery
from domain.webhooks.ports import PostResult, WebhookStore
from domain.webhooks.usecases import endpoint_queue
from domain.webhooks.usecases.secrets import create_signature_header
from tests.contract.delivery_harness import CALL, KEY, DeliveryHarness, wait_for_deliveries, wait_until
from tests.support import builders
from tests.support.backend import Backend
from tests.support.log_changes import grant_licence

pytestmark = pytest.mark.asyncio
_72_HOURS = timedelta(hours=72)
REFUSED = PostResult("connect")
BROKEN = PostResult(None, 500, {}, b"no")


@pytest_asyncio.fixture
async def harness(backend: Backend, tenant: Tenant) -> DeliveryHarness:
    return DeliveryHarness(backend, tenant)


async def test_every_event_arrives_signed_with_its_cursor(harness: DeliveryHarness) -> None:
    endpoint = await harness.create_endpoint()
    async with harness.run_deliverer():
        ids = await harness.publish(*(harness.build_event(f"ofr_{n}") for n in range(30)))
        deliveries = await wait_for_deliveries(harness, endpoint, 30)
    posts = harness.receivers.list_posts(endpoint.url)
    assert sorted(post.id for post in posts) == sorted(ids)
    for post in posts:
        timestamp = int(post.headers["webhook-timestamp"])
        assert post.headers["webhook-signature"] == create_signature_header([KEY], post.id, timestamp, post.body)
        assert post.headers["Service-Version"] == endpoint.api_version
        assert post.headers["User-Agent"] == "Joinery/1"
        assert post.event["data"]["fields"] == [{"path": "price"}]
        assert post.event["data"]["previous_version"] == 1
    bodies = {post.id: post.body for post in posts}
    assert all(one.body == bodies[one.event] and len(one.attempts) == 1 for one in deliveries)
    assert (await harness.load_endpoint(endpoint)).last_success_at is not None


async def test_deliveries_of_a_subject_are_ordered_and_block_no_other(harness: DeliveryHarness) -> None:
    endpoint = await harness.create_endpoint()
    harness.receivers.results[endpoint.url] = [BROKEN, REFUSED]
    async with harness.run_deliverer():
        await harness.publish(harness.build_event("ofr_slow"))
        await wait_until(lambda: harness.receivers.posts)
        await harness.publish(*(harness.build_event("ofr_slow") for _ in range(3)), harness.build_event("ofr_other"))
        deliveries = await wait_for_deliveries(harness, endpoint, 5)
    posts = harness.receivers.list_posts(endpoint.url)
    slow = [post.event["version"] for post in posts if post.event["subject"] == "ofr_slow"]
    assert slow == sorted(slow) and set(slow) == {2, 3, 4, 5} and len(slow) >= 5
    first = next(one for one in deliveries if one.subject == "ofr_slow")
    failures = [(attempt.failure, attempt.response_status) for attempt in first.attempts]
    assert ("http_status", 500) in failures or ("connect", None) in failures
    assert (await harness.load_endpoint(endpoint)).failing_since is None


async def test_a_dead_endpoint_delays_no_other(harness: DeliveryHarness) -> None:
    dead, well = await harness.create_endpoint(), await harness.create_endpoint()
    harness.receivers.gates[dead.url] = asyncio.Event()
    async with harness.run_deliverer():
        await harness.publish(*(harness.build_event(f"ofr_{n}") for n in range(100)))
        await wait_for_deliveries(harness, well, 100)
        assert len(harness.receivers.list_posts(dead.url)) < 100
        harness.receivers.gates[dead.url].set()
        await wait_for_deliveries(harness, dead, 100)


async def test_only_unrecorded_deliveries_are_sent_again(harness: DeliveryHarness) -> None:
    endpoint = await harness.create_endpoint()
    async with harness.run_deliverer():
        first = await harness.publish(*(harness.build_event(f"ofr_{n}") for n in range(10)))
        await wait_for_deliveries(harness, endpoint, 10)
        harness.receivers.gates[endpoint.url] = asyncio.Event()
        second = await harness.publish(*(harness.build_event(f"ofr_{n}") for n in range(10)))
        await wait_until(lambda: len(harness.receivers.posts) == 20)
    harness.receivers.gates.clear()
    async with harness.run_deliverer():
        deliveries = await wait_for_deliveries(harness, endpoint, 20)
        third = await harness.publish(harness.build_event("ofr_1"))
        await wait_for_deliveries(harness, endpoint, 21)
    ids = [post.id for post in harness.receivers.list_posts(endpoint.url)]
    assert all(ids.count(id_) == 1 for id_ in (*first, *third)) and all(ids.count(id_) == 2 for id_ in second)
    assert len({one.event for one in deliveries}) == len(deliveries) == 20


async def test_the_last_attempt_fails_the_delivery_and_the_next_event_is_sent(harness: DeliveryHarness) -> None:
    endpoint = await harness.create_endpoint()
    harness.receivers.results[endpoint.url] = [BROKEN] * 4
    async with harness.run_deliverer():
        await harness.publish(harness.build_event("ofr_1"))
        await wait_for_deliveries(harness, endpoint, 1, "failed")
        await harness.publish(harness.build_event("ofr_1"))
        deliveries = await wait_for_deliveries(harness, endpoint, 1)
    assert [one.status for one in deliveries] == ["failed", "succeeded"]
    assert [attempt.response_body for attempt in deliveries[0].attempts] == ["no"] * 4
    assert len({post.body for post in harness.receivers.list_posts(endpoint.url)[:4]}) == 1


async def test_an_abort_ends_one_delivery_only(harness: DeliveryHarness) -> None:
    endpoint = await harness.create_endpoint()
    harness.receivers.results[endpoint.url] = [PostResult(None, 500, {"webhook-delivery": "abort-message"})]
    async with harness.run_deliverer():
        await harness.publish(harness.build_event("ofr_1"), harness.build_event("ofr_1"))
        deliveries = await wait_for_deliveries(harness, endpoint, 1)
    assert [(one.status, one.attempts[0].failure) for one in deliveries] == [("failed", "aborted"), ("succeeded", None)]


async def test_status_410_disables_an_endpoint_immediately(harness: DeliveryHarness) -> None:
    endpoint = await harness.create_endpoint()
    harness.receivers.default_results[endpoint.url] = PostResult(None, 410)
    async with harness.run_deliverer():
        await harness.publish(harness.build_event("ofr_1"), harness.build_event("ofr_1"))
        await wait_for_deliveries(harness, endpoint, 1, "failed")
        async with asyncio.timeout(10):
            while (await harness.load_endpoint(endpoint)).status != "disabled":
                await asyncio.sleep(0.02)
        before = len(harness.receivers.posts)
        await harness.publish(harness.build_event("ofr_2"))
        await asyncio.sleep(0.3)
        assert len(harness.receivers.posts) == before
    assert (await harness.load_endpoint(endpoint)).disabled_for == "gone"
    assert all(one.status == "failed" for one in await harness.list_deliveries(endpoint))


async def test_filters(harness: DeliveryHarness) -> None:
    typed = await harness.create_endpoint(event_types=("product.created",))
    sourced = await harness.create_endpoint(filters=Filters(sources=("src_2",)))
    async with harness.run_deliverer():
        await harness.publish(harness.build_event("ofr_1"), harness.build_event("ofr_2", source="src_2"))
        made = Event("product.created", "prod_1", 1, {"id": "prod_1"}, catalogue="cat_1", source="src_1")
        await harness.publish(made)
        await wait_for_deliveries(harness, typed, 1)
        await wait_for_deliveries(harness, sourced, 2)
    assert [post.event["type"] for post in harness.receivers.list_posts(typed.url)] == ["product.created"]
    assert {post.event["subject"] for post in harness.receivers.list_posts(sourced.url)} == {"ofr_2", "prod_1"}


async def test_waiting_changes_are_coalesced(backend: Backend) -> None:
    plan = await backend.registry.find_plan("max") or builders.plan(features=("fat_webhooks",))
    harness = DeliveryHarness(backend, Tenant((await backend.organisation(plan=plan)).id, True))
    endpoint = await harness.create_endpoint(coalesce_seconds=1, payload="fat")
    async with harness.run_deliverer():
        await harness.publish(harness.build_event("ofr_1"))
        await harness.publish(harness.build_event("ofr_1"), harness.build_event("ofr_2"))
        last = await harness.publish(harness.build_event("ofr_1"))
        deliveries = await wait_for_deliveries(harness, endpoint, 2)
    posts = {post.event["subject"]: post for post in harness.receivers.list_posts(endpoint.url)}
    assert len(harness.receivers.posts) == len(deliveries) == 2
    combined = posts["ofr_1"].event
    assert [combined["id"]] == last and combined["version"] == 4 and combined["data"]["previous_version"] == 1
    [change] = combined["data"]["fields"]
    assert (change["old"], change["new"]) == (100, 400)


async def test_the_windows_of_all_subjects_run_concurrently(
    harness: DeliveryHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoint_queue, "MAX_UNSENT", 3)
    endpoint = await harness.create_endpoint(coalesce_seconds=1)
    async with harness.run_deliverer():
        await harness.publish(*(harness.build_event(f"ofr_{n}") for n in range(20)))
        deliveries = await wait_for_deliveries(harness, endpoint, 20)
    assert max(one.created_at for one in deliveries) <= min(one.attempts[0].at for one in deliveries)


async def test_the_cursor_returns_to_undelivered_events(harness: DeliveryHarness) -> None:
    endpoint = await harness.create_endpoint()
    gate = harness.receivers.gates["ofr_1"] = asyncio.Event()
    async with harness.run_deliverer():
        [first] = await harness.publish(harness.build_event("ofr_1"))
        [second] = await harness.publish(harness.build_event("ofr_2"))
        await wait_for_deliveries(harness, endpoint, 1)
        gate.set()
        await wait_for_deliveries(harness, endpoint, 2)
        [third] = await harness.publish(harness.build_event("ofr_3"))
        await wait_for_deliveries(harness, endpoint, 3)
    cursors = {post.id: int(post.headers["Service-Feed-Cursor"].split(":")[1]) for post in harness.receivers.posts}
    view, end = LogView.own(harness.tenant), LogPosition(position=OPEN_END)
    replayed = []
    for id_ in (first, second, third):
        page = await harness.backend.events.read_page(view, LogPosition(position=cursors[id_]), end, 10, ALL)
        replayed.append([event.id for event in page.events])
    assert replayed == [[first, second, third], [first, second, third], [third]]


async def test_resending_on_request(harness: DeliveryHarness) -> None:
    endpoint = await harness.create_endpoint()
    async with harness.run_deliverer():
        await harness.publish(harness.build_event("ofr_1"))
        [delivery] = await wait_for_deliveries(harness, endpoint, 1)
        async with harness.backend.uow.begin(harness.tenant, CALL) as tx:
            await tx[WebhookStore].requeue(delivery, tx.now)
        await wait_until(lambda: len(harness.receivers.posts) == 2)
        [again] = await wait_for_deliveries(harness, endpoint, 1)
    first, second = harness.receivers.posts
    assert first.id == second.id and first.body == second.body
    assert again.id == delivery.id and len(again.attempts) in (1, 2)


async def test_changes_of_an_endpoint_send_nothing_twice(harness: DeliveryHarness) -> None:
    endpoint = await harness.create_endpoint()
    async with harness.run_deliverer():
        for round_ in range(1, 6):
            await harness.publish(*(harness.build_event(f"ofr_{n}") for n in range(20)))
            async with harness.backend.uow.begin(harness.tenant, CALL) as tx:
                found = await tx[WebhookStore].get(endpoint.id, lock=True)
                assert found is not None
                await tx[WebhookStore].save(replace(found, description=str(round_)))
            await asyncio.sleep(0.02)
        deliveries = await wait_for_deliveries(harness, endpoint, 100)
        async with harness.backend.uow.begin(harness.tenant, CALL) as tx:
            await tx[WebhookStore].requeue(deliveries[0], tx.now)
            await tx[WebhookStore].save(replace(found, description="again"))
        await wait_until(lambda: len(harness.receivers.posts) > 100)
        async with harness.backend.uow.begin(harness.tenant, CALL) as tx:
            await tx[WebhookStore].save(replace(found, description="and again"))
        await wait_for_deliveries(harness, endpoint, 100)
        await asyncio.sleep(0.3)
    assert len(harness.receivers.posts) == 101
    assert {one.status for one in await harness.list_deliveries(endpoint)} == {"succeeded"}


async def test_failed_deliveries_are_recovered_in_order(harness: DeliveryHarness) -> None:
    endpoint = await harness.create_endpoint()
    harness.receivers.default_results[endpoint.url] = BROKEN
    async with harness.run_deliverer():
        for _ in range(2):
            await harness.publish(*(harness.build_event("ofr_1") for _ in range(3)))
        await wait_for_deliveries(harness, endpoint, 6, "failed")
        del harness.receivers.default_results[endpoint.url]
        harness.receivers.posts.clear()
        async with harness.backend.uow.begin(harness.tenant, CALL) as tx:
            found = await harness.list_deliveries(endpoint)
            assert await tx[WebhookStore].recover(endpoint.id, found[0].created_at, tx.now, tx.now, 9) == Recovery(
                6, has_more=False
            )
        await wait_for_deliveries(harness, endpoint, 6)
    assert [post.event["version"] for post in harness.receivers.posts] == [2, 3, 4, 5, 6, 7]


async def test_an_endpoint_disabled_during_an_attempt_gets_no_more(harness: DeliveryHarness) -> None:
    endpoint = await harness.create_endpoint()
    harness.receivers.gates[endpoint.url] = asyncio.Event()
    async with harness.run_deliverer() as deliverer:
        await harness.publish(harness.build_event("ofr_1"), harness.build_event("ofr_1"))
        await wait_until(lambda: harness.receivers.posts)
        await harness.disable(endpoint.id, DisabledReason.FAILING)
        await wait_until(lambda: (harness.tenant, endpoint.id) not in deliverer._queues)
        harness.receivers.gates[endpoint.url].set()
        await asyncio.sleep(1)
    assert len(harness.receivers.posts) == 1
    assert {one.status for one in await harness.list_deliveries(endpoint)} <= {"succeeded", "failed"}


async def test_a_lasting_failure_disables(harness: DeliveryHarness) -> None:
    endpoint = await harness.create_endpoint(failing_since=harness.backend.now() - _72_HOURS)
    harness.receivers.default_results[endpoint.url] = REFUSED
    async with harness.run_deliverer():
        await harness.publish(harness.build_event("ofr_1"))
        async with asyncio.timeout(10):
            while (await harness.load_endpoint(endpoint)).status != "disabled":
                await asyncio.sleep(0.02)
    assert (await harness.load_endpoint(endpoint)).disabled_for == "failing"


async def test_an_idle_endpoint_is_never_disabled(harness: DeliveryHarness) -> None:
    endpoint = await harness.create_endpoint(failing_since=harness.backend.now() - _72_HOURS)
    async with harness.run_deliverer():
        await asyncio.sleep(0.3)
        assert (await harness.load_endpoint(endpoint)).status == "enabled"
        await harness.publish(harness.build_event("ofr_1"))
        await wait_for_deliveries(harness, endpoint, 1)
        async with asyncio.timeout(10):
            while (await harness.load_endpoint(endpoint)).failing_since is not None:
                await asyncio.sleep(0.02)


async def test_a_test_delivery_has_no_event(harness: DeliveryHarness) -> None:
    endpoint = await harness.create_endpoint(event_types=("product.created",))
    async with harness.run_deliverer():
        async with harness.backend.uow.begin(harness.tenant, CALL) as tx:
            sample = builders.delivery(
                endpoint.id, type="webhook.test", subject=endpoint.id, positions=(), body=b'{"a":1}',
                created_at=tx.now, next_attempt_at=tx.now, event=new_id("evt"),
            )  # fmt: skip
            await tx[WebhookStore].add_delivery(sample)
        await wait_for_deliveries(harness, endpoint, 1)
    [post] = harness.receivers.list_posts(endpoint.url)
    assert (post.id, post.body) == (sample.event, b'{"a":1}')


@pytest.mark.parametrize("payload", ["thin", "fat"])
async def test_licensed_endpoints_receive_licensed_fields_only(
    backend: Backend, harness: DeliveryHarness, payload: str
) -> None:
    plan = await backend.registry.find_plan("max") or builders.plan(features=("fat_webhooks",))
    others = [
        DeliveryHarness(backend, Tenant((await backend.organisation(plan=plan)).id, True), harness.receivers)
        for _ in "ab"
    ]
    catalogue = new_id("cat")
    await grant_licence(backend.pool, harness.tenant, catalogue, "*")
    await grant_licence(backend.pool, harness.tenant, catalogue, others[1].tenant.org, "stock")
    endpoints = [await one.create_endpoint(payload=payload) for one in (harness, *others)]
    fields = (("price", 1, 2), ("quantity", 3, 4), ("cost", 5, 6))
    changed = harness.build_event(
        "ofr_1", fields=fields, facets=("price", "stock"), catalogue=catalogue, is_published=True
    )
    async with harness.run_deliverer():
        await harness.publish(changed)
        await backend.relay(harness.tenant)
        for one, endpoint in zip((harness, *others), endpoints, strict=True):
            await wait_for_deliveries(one, endpoint, 1)
    payloads = [harness.receivers.list_posts(endpoint.url)[0].event["data"] for endpoint in endpoints]
    paths = [[change["path"] for change in data["fields"]] for data in payloads]
    assert paths == [["price", "quantity", "cost"], ["price"], ["price", "quantity"]]
    assert [data["facets"] for data in payloads] == [["price", "stock"], ["price"], ["price", "stock"]]
    assert {"old" in change for data in payloads[1:] for change in data["fields"]} == {payload == "fat"}


async def test_an_endpoint_created_during_a_network_outage_begins_at_its_first_position(
    backend: Backend, harness: DeliveryHarness
) -> None:
    """The end that the next worker finds is too late: events before it would be missed."""
    owner = DeliveryHarness(backend, await backend.tenant(), harness.receivers)
    catalogue = new_id("cat")
    await grant_licence(backend.pool, owner.tenant, catalogue, harness.tenant.org)
    endpoint = await harness.create_endpoint()
    away = FeedPosition((await harness.find_feed_end()).own, LogPosition(position=OPEN_END))
    async with backend.uow.begin(harness.tenant, CALL) as tx:
        await tx[WebhookStore].save(endpoint, checkpoint=away)

    async def begun() -> bool:
        subscriber = await backend.delivery_log.get_subscriber(harness.tenant, endpoint.id)
        return subscriber is not None and subscriber.checkpoint.network.position < OPEN_END

    async with harness.run_deliverer(), asyncio.timeout(10):
        while not await begun():
            await asyncio.sleep(0.01)
    [event] = await owner.publish(owner.build_event("ofr_1", catalogue=catalogue, is_published=True))
    await backend.relay(owner.tenant)
    async with harness.run_deliverer():
        await wait_for_deliveries(harness, endpoint, 1)
    assert [post.id for post in harness.receivers.list_posts(endpoint.url)] == [event]
