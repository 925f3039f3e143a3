"""Notifications: collection from the log and from sources, digests, sending, and what happens when a worker fails."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import pytest_asyncio

from domain.events.model import Event, FieldChange
from domain.jobs.model import ClaimedJob, build_lane_name
from domain.kernel.errors import Conflict, InvalidRequest, LeaseLost, NotFound, PermissionDenied
from domain.kernel.ids import new_id
from domain.notifications.model import CHECK_INTERVAL, MAX_ITEMS, MAX_RULES_PER_PERSON, StopReason
from domain.notifications.usecases import collection
from domain.notifications.usecases.collection import COLLECTION_JOB
from domain.notifications.usecases.sending import SENDING_JOB, open_receiver
from domain.orgs.ports import OrgStore
from domain.runs.model import RunStatus
from domain.runs.ports import RunStore
from domain.sources.model import Schedule
from domain.sources.ports import SourceStore
from domain.webhooks.model import AttemptFailure
from domain.webhooks.ports import PostResult
from domain.webhooks.usecases.secrets import create_signature_header, decode_key
from tests.support import builders
from tests.support.backend import Backend
from tests.support.notifications import SLACK_URL, NotificationHarness, create_harness

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def harness(backend: Backend) -> AsyncIterator[NotificationHarness]:
    yield await create_harness(backend)


async def _read_mail(harness: NotificationHarness) -> list[str]:
    return [harness.mail.decrypt_text(message) for message in await harness.list_mail()]


async def test_a_price_change_is_mailed_once_with_old_and_new_price(harness: NotificationHarness) -> None:
    [product] = await harness.add_catalogue()
    rule = await harness.create_rule()
    await harness.change_offer(product, price=(12000, 9900))
    await harness.run()
    await harness.run()
    [message] = await harness.list_mail()
    assert message.subject == "1 price change: Wohnzimmer"
    [text] = await _read_mail(harness)
    assert "Oak chair 0" in text and "Price: $120.00 → $99.00 (-17.5%)" in text
    assert f"https://joinery.test/console/catalogue/{product.id}" in text
    assert "https://joinery.test/console/unsubscribe/" in text
    [notification] = await harness.list_notifications(rule)
    assert (notification.status, notification.total, notification.attempts) == ("sent", 1, 1)
    assert (await harness.load(rule)).due_at is None


async def test_only_later_events_are_reported(harness: NotificationHarness) -> None:
    [product] = await harness.add_catalogue()
    await harness.change_offer(product, price=(12000, 9900))
    await harness.create_rule()
    await harness.run()
    assert await harness.list_mail() == []


async def test_an_item_that_is_out_of_stock_and_back_within_a_digest_is_not_reported(
    harness: NotificationHarness,
) -> None:
    [stays_out, flaps] = await harness.add_catalogue(count=2)
    rule = await harness.create_rule(kind="out_of_stock", frequency="daily")
    for product in (stays_out, flaps):
        await harness.change_offer(product, availability=("in_stock", "out_of_stock"))
    await harness.run()
    await harness.change_offer(flaps, availability=("out_of_stock", "in_stock"))
    await harness.run()
    assert await harness.list_mail() == [], "a daily digest waits"
    await harness.save(replace(await harness.load(rule), due_at=harness.backend.now()))
    await harness.run()
    [text] = await _read_mail(harness)
    assert "Oak chair 0" in text and "Oak chair 1" not in text and "In stock → Out of stock" in text


async def test_net_changes_of_prices_are_compared_with_the_threshold(harness: NotificationHarness) -> None:
    grows, returns, small = await harness.add_catalogue(count=3)
    rule = await harness.create_rule(frequency="daily", threshold=500)
    for old, new in ((10000, 10300), (10300, 10600)):
        await harness.change_offer(grows, price=(old, new))
    for old, new in ((10000, 20000), (20000, 10000)):
        await harness.change_offer(returns, price=(old, new))
        await harness.run()
    await harness.change_offer(small, price=(10000, 10499))
    await harness.run()
    await harness.save(replace(await harness.load(rule), due_at=harness.backend.now()))
    await harness.run()
    [notification] = await harness.list_notifications(rule)
    [item] = notification.items
    assert item["product"] == grows.id and item["prices"][0]["percent"] == "6.0"


async def test_another_currency_is_reported_as_such(harness: NotificationHarness) -> None:
    [product] = await harness.add_catalogue()
    rule = await harness.create_rule(threshold=100_000)
    await harness.change_offer(product, currency=("usd", "eur"), price=(10000, 9900))
    await harness.run()
    [notification] = await harness.list_notifications(rule)
    [price] = notification.items[0]["prices"]
    assert price["old"] == {"amount": 10000, "currency": "usd"} and price["new"] == {"amount": 9900, "currency": "eur"}
    assert price["percent"] is None
    assert "other currency" in (await _read_mail(harness))[0]


async def test_new_products_of_a_brand_and_category(harness: NotificationHarness) -> None:
    [fjord] = await harness.add_catalogue()
    [other] = await harness.add_catalogue(fjord.source, brand="Nordhaus")
    rule = await harness.create_rule(kind="new_products", brands=("FJORD ",))
    await harness.append(
        *(Event("product.created", one.id, 1, {"id": one.id}, source=one.source) for one in (fjord, other))
    )
    await harness.run()
    [notification] = await harness.list_notifications(rule)
    assert [item["product"] for item in notification.items] == [fjord.id]


async def test_a_flood_becomes_one_message_with_a_bounded_list(
    harness: NotificationHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    products = await harness.add_catalogue(count=130)
    rule = await harness.create_rule()
    await harness.append(*(harness.build_change(product, price=(100, 200 + n)) for n, product in enumerate(products)))
    await harness.run()
    [text] = await _read_mail(harness)
    assert text.count("- Oak chair") == MAX_ITEMS and "and 80 more\nhttps://joinery.test/console/catalogue" in text
    [notification] = await harness.list_notifications(rule)
    assert (notification.total, len(notification.items), notification.is_total_exact) == (130, MAX_ITEMS, True)
    assert notification.items[0]["product"] == products[-1].id, "the largest change is first"


async def test_beyond_the_maximum_of_waiting_subjects_the_total_is_a_minimum(
    harness: NotificationHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collection, "MAX_FINDINGS", 3)
    products = await harness.add_catalogue(count=5)
    rule = await harness.create_rule()
    await harness.append(*(harness.build_change(product, price=(100, 200)) for product in products))
    await harness.run()
    [notification] = await harness.list_notifications(rule)
    assert (notification.total, notification.is_total_exact) == (3, False)
    assert (await harness.list_mail())[0].subject.startswith("3+ price changes")
    assert not (await harness.load(rule)).has_overflow


async def test_at_once_waits_five_minutes_between_messages(harness: NotificationHarness) -> None:
    [product] = await harness.add_catalogue()
    rule = await harness.create_rule()
    for old, new in ((100, 200), (200, 400)):
        await harness.change_offer(product, price=(old, new))
        await harness.run()
    assert len(await harness.list_mail()) == 1
    after = await harness.load(rule)
    assert after.notified_at is not None and after.due_at == after.notified_at + timedelta(minutes=5)


async def test_failing_and_recovered_feeds(harness: NotificationHarness) -> None:
    source = await harness.add_source(name="Nordhaus <feed>")
    rule = await harness.create_rule(kind="feed", frequency="daily")

    async def append(name: str, old: str, new: str) -> None:
        fields = [FieldChange("status", old, new)]
        await harness.append(Event(name, source.id, 2, {"id": source.id}, fields=fields, source=source.id))

    async def send() -> int:
        await harness.run()
        await harness.save(replace(await harness.load(rule), due_at=harness.backend.now()))
        await harness.run()
        return len(await harness.list_notifications(rule))

    await append("source.degraded", "active", "degraded")
    await append("source.recovered", "degraded", "active")
    assert await send() == 0
    await append("source.degraded", "active", "degraded")
    await append("source.blocked", "degraded", "blocked")
    assert await send() == 1
    assert "Nordhaus <feed>\n  Active → Blocked" in (await _read_mail(harness))[0]


async def test_a_late_feed_is_reported_once_per_lateness(harness: NotificationHarness) -> None:
    now = harness.backend.now()
    source = await harness.add_source(schedule=Schedule(60), catalogue_at=now, next_pull=now)
    unscheduled = await harness.add_source(catalogue_at=now - timedelta(days=90))
    rule = await harness.create_rule(kind="feed")

    async def examine(catalogue_at: Any) -> int:
        async with harness.backend.uow.begin(harness.tenant, builders.CALL) as tx:
            stored = await tx[SourceStore].get(source.id, lock=True)
            await tx[SourceStore].save(replace(stored, catalogue_at=catalogue_at))
        long_ago = harness.backend.now() - CHECK_INTERVAL * 2
        await harness.save(replace(await harness.load(rule), checked_at=long_ago, notified_at=None))
        await harness.run()
        return len(await harness.list_notifications(rule))

    assert await examine(now) == 0
    assert await examine(now - timedelta(hours=2)) == 1
    assert await examine(now - timedelta(hours=9)) == 1, "later still is the same lateness"
    assert await examine(now) == 1
    assert await examine(now - timedelta(hours=2)) == 2
    [*_, first] = await harness.list_notifications(rule)
    assert [item["subject"] for item in first.items] == [source.id] != [unscheduled.id]


async def test_a_feed_that_is_late_already_is_not_reported_to_a_new_rule(harness: NotificationHarness) -> None:
    await harness.add_source(
        schedule=Schedule(60), catalogue_at=harness.backend.now() - timedelta(days=1), next_pull=harness.backend.now()
    )
    rule = await harness.create_rule(kind="feed")
    await harness.save(replace(rule, checked_at=rule.checked_at - CHECK_INTERVAL * 2))
    await harness.run()
    assert await harness.list_notifications(rule) == []


async def test_a_run_with_more_problems_is_reported(harness: NotificationHarness) -> None:
    source = await harness.add_source()

    async def import_feed(problems: int) -> None:
        run = builders.run(source.id, status=RunStatus.SUCCEEDED, stats={"problems": problems})
        async with harness.backend.uow.begin(harness.tenant, builders.CALL) as tx:
            await tx[RunStore].add(run)

    await import_feed(3)
    rule = await harness.create_rule(kind="problems")
    for problems in (3, 107, 90):
        await import_feed(problems)
        before = await harness.load(rule)
        await harness.save(replace(before, checked_at=before.checked_at - CHECK_INTERVAL * 2, notified_at=None))
        await harness.run()
    [notification] = await harness.list_notifications(rule)
    assert notification.items[0]["old"] == {"problems": 3} and notification.items[0]["new"] == {"problems": 107}


async def test_slack_receives_a_message_that_no_vendor_text_can_change(harness: NotificationHarness) -> None:
    [product] = await harness.add_catalogue(title="<!channel> <https://evil.example|Win> & *bold*\n\u202egnp")
    await harness.create_rule(channel="slack", name="Prices <!here>")
    await harness.change_offer(product, price=(100, 200))
    await harness.run()
    [(url, headers, body)] = harness.sender.posts
    assert url == SLACK_URL and headers["Content-Type"] == "application/json"
    text = json.dumps(body)
    assert "<!channel>" not in text and "<!here>" not in text and "<https://evil" not in text
    assert "&lt;!channel&gt;" in text and "\\u202e" not in text
    assert all(block["text"]["verbatim"] for block in body["blocks"] if block["type"] == "section")


async def test_a_signed_webhook_has_the_same_id_in_every_attempt(harness: NotificationHarness) -> None:
    [product] = await harness.add_catalogue()
    rule = await harness.create_rule("https://shop.example/hook", channel="webhook")
    receiver = open_receiver(harness.vault, rule)
    assert receiver is not None
    harness.sender.results = [PostResult(AttemptFailure.TIMEOUT)]
    await harness.change_offer(product, price=(100, 200))
    await harness.run()
    [notification] = await harness.list_notifications(rule)
    assert (notification.status, notification.failure, notification.attempts) == ("pending", "timeout", 1)
    await harness.backend.pass_time(timedelta(seconds=6))
    await harness.run()
    first, second = harness.sender.posts
    assert first[1]["webhook-id"] == second[1]["webhook-id"] == notification.id and first[2] == second[2]
    body = json.dumps(second[2], ensure_ascii=False, separators=(",", ":")).encode()
    expected = create_signature_header(
        [decode_key(receiver.secret)], notification.id, int(second[1]["webhook-timestamp"]), body
    )
    assert second[1]["webhook-signature"] == expected
    assert second[2]["data"]["items"][0]["prices"][0]["percent"] == "100.0"
    [notification] = await harness.list_notifications(rule)
    assert (notification.status, notification.attempts) == ("sent", 2)


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (PostResult(None, 404, {}, b"no_service"), StopReason.REFUSED),
        (PostResult(None, 410, {}, b"channel_is_archived"), StopReason.REFUSED),
        (PostResult(None, 400, {}, b"invalid_blocks"), None),
    ],
)
async def test_permanent_refusals_of_slack(
    harness: NotificationHarness, result: PostResult, reason: StopReason | None
) -> None:
    [product] = await harness.add_catalogue()
    rule = await harness.create_rule(channel="slack")
    harness.sender.results = [result]
    await harness.change_offer(product, price=(100, 200))
    await harness.run()
    [notification] = await harness.list_notifications(rule)
    assert notification.status == "failed" and str(result.status) in (notification.failure or "")
    after = await harness.load(rule)
    assert (after.enabled, after.stopped_for) == (reason is None, reason)


async def test_retry_after_of_slack_delays_the_next_attempt(harness: NotificationHarness) -> None:
    [product] = await harness.add_catalogue()
    rule = await harness.create_rule(channel="slack")
    harness.sender.results = [PostResult(None, 429, {"retry-after": "90"})]
    await harness.change_offer(product, price=(100, 200))
    await harness.run()
    [notification] = await harness.list_notifications(rule)
    assert notification.status == "pending" and notification.next_attempt_at is not None
    delay = (notification.next_attempt_at - notification.created_at).total_seconds()
    assert delay >= 90


class _Killed(Exception):
    """Stands for a worker that is killed."""


async def test_a_worker_killed_at_any_step_sends_each_notification_once(harness: NotificationHarness) -> None:
    """Each transaction of the jobs is rolled back once, and once its worker ends just after the commit."""
    [product] = await harness.add_catalogue()
    rule = await harness.create_rule()
    uow = _KillingUnitOfWork(harness.backend.uow)
    handlers = {
        COLLECTION_JOB: replace(harness.collector, uow=uow),
        SENDING_JOB: replace(harness.delivery, uow=uow),
    }
    for step in range(14):
        await harness.save(replace(await harness.load(rule), notified_at=None))
        await harness.change_offer(product, price=(100, 200))
        uow.fail_at, uow.count = step, 0
        for _ in range(3):
            await harness.collector.queue_due()
            await _run_jobs_now(harness, handlers)
        assert len(await harness.list_mail()) == step + 1
    assert uow.failures >= 10
    assert {one.status for one in await harness.list_notifications(rule)} == {"sent"}


class _KillingUnitOfWork:
    """Unit of work whose transaction number `fail_at` // 2 raises: before the commit if `fail_at` is even, else after it."""

    def __init__(self, uow: Any) -> None:
        self._uow, self.fail_at, self.count, self.failures = uow, -1, 0, 0

    def begin_reading(self, tenant: Any) -> Any:
        return self._uow.begin_reading(tenant)

    def begin(self, tenant: Any, context: Any) -> Any:
        return _KilledTransaction(self, self._uow.begin(tenant, context))


class _KilledTransaction:
    def __init__(self, parent: _KillingUnitOfWork, inner: Any) -> None:
        self._parent, self._inner, self._number = parent, inner, parent.count
        parent.count += 1

    async def __aenter__(self) -> Any:
        return await self._inner.__aenter__()

    async def __aexit__(self, *error: object) -> None:
        fails = error[0] is None and self._parent.fail_at // 2 == self._number
        if fails and self._parent.fail_at % 2 == 0:
            self._parent.failures += 1
            killed = _Killed()
            await self._inner.__aexit__(type(killed), killed, None)
            raise killed
        await self._inner.__aexit__(*error)
        if fails:
            self._parent.failures += 1
            raise _Killed


async def _run_jobs_now(harness: NotificationHarness, handlers: dict[str, Any]) -> None:
    """Claim and execute the jobs of both lanes; release those that fail, so that they are due at once."""
    dispatch = harness.backend.dispatch
    for lane in ("notifications", "notification_messages"):
        name = build_lane_name(harness.tenant.org, f"{lane}:live")
        for job in await dispatch.claim(name, 10, timedelta(seconds=30)):
            try:
                await handlers[job.kind](job, asyncio.Event())
            except _Killed:
                await dispatch.release(job, harness.backend.now())


async def test_an_outdated_attempt_stores_nothing(harness: NotificationHarness) -> None:
    [product] = await harness.add_catalogue()
    rule = await harness.create_rule()
    await harness.change_offer(product, price=(100, 200))
    await harness.collector.queue_due()
    name = build_lane_name(harness.tenant.org, "notifications:live")
    [job] = await harness.backend.dispatch.claim(name, 1, timedelta(seconds=30))
    outdated = ClaimedJob(job.id, job.kind, job.lane, job.tenant, job.args, job.attempt - 1)
    with pytest.raises(LeaseLost):
        await harness.collector(outdated, asyncio.Event())
    assert (await harness.load(rule)).position == rule.position
    await harness.backend.dispatch.release(job, harness.backend.now())
    await harness.run()
    assert len(await harness.list_mail()) == 1


@pytest.mark.parametrize("role", ["billing", None])
async def test_who_lost_access_receives_nothing(harness: NotificationHarness, role: str | None) -> None:
    [product] = await harness.add_catalogue()
    rule = await harness.create_rule()
    if role is None:
        async with harness.backend.uow.begin(harness.tenant, builders.CALL) as tx:
            await tx[OrgStore].remove_member(harness.user.id)
    else:
        await harness.set_role(role)
    await harness.change_offer(product, price=(100, 200))
    await harness.run()
    assert await harness.list_mail() == []
    after = await harness.load(rule)
    assert (after.enabled, after.stopped_for) == (False, StopReason.NO_ACCESS)


async def test_unsubscribing_stops_also_a_message_that_was_composed(harness: NotificationHarness) -> None:
    [product] = await harness.add_catalogue()
    rule = await harness.create_rule()
    shared = await harness.create_rule(channel="slack")
    await harness.change_offer(product, price=(100, 200))
    harness.handlers.pop(SENDING_JOB)
    await harness.run()
    async with harness.backend.uow.begin(harness.tenant, harness.context) as tx:
        assert await harness.service.unsubscribe(tx, harness.user.id) == 1
    assert (await harness.load(rule)).stopped_for == StopReason.UNSUBSCRIBED
    assert (await harness.load(shared)).enabled
    await harness.backend.pass_time(timedelta(seconds=3))
    harness.handlers[SENDING_JOB] = harness.delivery
    await harness.run()
    assert await harness.list_mail() == []
    [notification] = await harness.list_notifications(rule)
    assert (notification.status, notification.failure) == ("failed", "unsubscribed")
    async with harness.backend.uow.begin(harness.tenant, harness.context) as tx:
        again = await harness.service.set_enabled(tx, rule.id, {"products:read"}, enabled=True)
    assert (again.enabled, again.stopped_for) == (True, None)
    await harness.run()
    assert await harness.list_mail() == [], "what happened meanwhile is not reported"


async def test_rules_and_findings_of_other_tenants_and_modes_are_unreachable(
    harness: NotificationHarness, backend: Backend
) -> None:
    [product] = await harness.add_catalogue()
    rule = await harness.create_rule(channel="slack")
    other = await create_harness(backend)
    theirs = await other.create_rule(channel="slack")
    for tenant in (other.tenant, replace(harness.tenant, livemode=False)):
        async with backend.uow.begin(tenant, other.context) as tx:
            with pytest.raises(NotFound):
                await other.service.get_visible(tx, rule.id, other.user.id)
            with pytest.raises(NotFound):
                await other.service.delete_own(tx, rule.id, {"products:read", "webhooks:write"})
            assert await other.service.unsubscribe(tx, harness.user.id) == 0
    await harness.change_offer(product, price=(100, 200))
    await harness.run()
    await other.run()
    assert len(harness.sender.posts) == 1 and other.sender.posts == []
    assert await other.list_notifications(theirs) == []


async def test_a_colleague_neither_sees_nor_changes_a_rule_by_email(harness: NotificationHarness) -> None:
    rule = await harness.create_rule()
    colleague = replace(harness.context, actor=replace(harness.context.actor, id=new_id("usr")))
    scopes = {"products:read", "webhooks:write"}
    async with harness.backend.uow.begin(harness.tenant, colleague) as tx:
        assert await harness.service.list_visible(tx, colleague.actor.id) == []
        for attack in (
            harness.service.get_visible(tx, rule.id, colleague.actor.id),
            harness.service.set_enabled(tx, rule.id, scopes, enabled=False),
            harness.service.delete_own(tx, rule.id, scopes),
            harness.service.change(tx, rule.id, {"name": "mine"}, "", scopes, None),
        ):
            with pytest.raises(NotFound):
                await attack


async def test_only_roles_that_manage_webhooks_send_to_other_receivers(harness: NotificationHarness) -> None:
    async with harness.backend.uow.begin(harness.tenant, harness.context) as tx:
        for scopes, channel in (({"products:read"}, "slack"), ({"webhooks:write"}, "email")):
            with pytest.raises(PermissionDenied):
                values = {"name": "a", "kind": "price_change", "channel": channel}
                await harness.service.create_for_person(tx, values, SLACK_URL, scopes)


@pytest.mark.parametrize(
    ("changes", "url"),
    [
        ({"channel": "slack"}, "http://hooks.slack.example/x"),
        ({"channel": "slack"}, "https://169.254.169.254/x"),
        ({"channel": "slack"}, "https://user:pw@hooks.slack.example/x"),
        ({"channel": "webhook"}, "https://shop.example:8443/x"),
        ({"channel": "webhook"}, ""),
        ({"name": "  "}, ""),
        ({"name": "a\u202eb"}, ""),
        ({"threshold": 0}, ""),
        ({"time_zone": "../../etc/passwd"}, ""),
        ({"time_zone": "Mars/Base"}, ""),
        ({"quiet_from": 60}, ""),
        ({"sources": ("src_0000000000000000000000",)}, ""),
        ({"categories": ("ctg_nothing",)}, ""),
        ({"kind": "everything"}, ""),
        ({"prices": ()}, ""),
    ],
)
async def test_invalid_rules_are_refused(harness: NotificationHarness, changes: dict[str, Any], url: str) -> None:
    with pytest.raises(InvalidRequest):
        await harness.create_rule(url, **changes)


async def test_a_person_has_a_limited_number_of_rules(harness: NotificationHarness) -> None:
    for _ in range(MAX_RULES_PER_PERSON):
        await harness.create_rule()
    with pytest.raises(Conflict):
        await harness.create_rule()


async def test_a_preview_counts_what_a_rule_would_have_found(harness: NotificationHarness) -> None:
    first, second, third = await harness.add_catalogue(count=3)
    await harness.change_offer(first, price=(100, 200))
    await harness.change_offer(second, price=(100, 101))
    for old, new in ((100, 300), (300, 100)):
        await harness.change_offer(third, price=(old, new))
    async with harness.backend.uow.begin_reading(harness.tenant) as tx:
        found = await harness.service.preview_draft(tx, {"kind": "price_change"}, {"products:read"})
    assert (found.total, found.is_complete) == (1, True) and found.items[0]["product"] == first.id


async def test_a_pending_digest_moves_when_its_time_is_changed(harness: NotificationHarness) -> None:
    [product] = await harness.add_catalogue()
    rule = await harness.create_rule(frequency="weekly")
    await harness.change_offer(product, price=(100, 200))
    await harness.run()
    before = await harness.load(rule)
    async with harness.backend.uow.begin(harness.tenant, harness.context) as tx:
        after = await harness.service.change(tx, rule.id, {"frequency": "at_once"}, "", {"products:read"}, None)
    assert before.due_at is not None and after.due_at is not None and after.due_at < before.due_at
    await harness.run()
    assert len(await harness.list_mail()) == 1, "what was found is kept"
