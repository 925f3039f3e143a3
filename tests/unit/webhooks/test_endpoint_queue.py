"""Guarantees of an endpoint queue under random arrivals, outcomes and recordings."""

import random
import re
from datetime import timedelta
from pathlib import Path

import pytest

from domain.catalogue.licences import NETWORK_GROUPS
from domain.changes.model import FeedPosition
from domain.events.model import LoggedEvent
from domain.kernel.tenancy import Tenant
from domain.webhooks.model import AttemptVerdict, DeliveryStatus, EncryptedSecrets
from domain.webhooks.ports import Subscriber
from domain.webhooks.usecases import endpoint_queue
from domain.webhooks.usecases.endpoint_queue import (
    FAILING_THRESHOLD,
    MAX_CONCURRENT,
    MAX_CONCURRENT_FAILING,
    EndpointQueue,
    QueuedDelivery,
)
from tests.support import builders

TENANT = Tenant("org_1", True)


def create_queue(**changes: object) -> EndpointQueue:
    """Return an empty queue."""
    return EndpointQueue(
        Subscriber(
            TENANT, builders.endpoint(**changes), EncryptedSecrets(b""), FeedPosition(), includes_fat_payloads=False
        )
    )


def create_event(position: int, subject: str, kind: str = "offer.changed", *, network: bool = False) -> LoggedEvent:
    """Return an event at the position of the organisation's log, or of the network log."""
    return LoggedEvent(
        position, f"evt_{position}", kind, subject, None, "src_1", "cat_1", position, builders.MOMENT, b"{}",
        NETWORK_GROUPS if network else None,
    )  # fmt: skip


def add_event(queue: EndpointQueue, logged: LoggedEvent, now: float = 0.0) -> QueuedDelivery:
    """Add the event; it is ready at once if its subject is free."""
    item = queue.add_event(logged, now, builders.MOMENT)
    if item.due_at <= now:
        queue.make_ready(item)
    queue.set_read_position(queue.read_up_to.after(logged))
    return item


SUCCEEDED, FAILED = AttemptVerdict(DeliveryStatus.SUCCEEDED), AttemptVerdict(DeliveryStatus.FAILED)
LATER = AttemptVerdict(DeliveryStatus.PENDING, next_attempt_at=builders.MOMENT + timedelta(seconds=5))


def end_attempt(queue: EndpointQueue, item: QueuedDelivery, verdict: AttemptVerdict) -> QueuedDelivery | None:
    """End the item's attempt; return the delivery to schedule, if any."""
    return queue.end_attempt(item, verdict, builders.attempt(), at=builders.MOMENT, due=0.0)


@pytest.mark.parametrize("seed", range(20))
def test_events_of_a_subject_stay_in_order_and_none_is_lost(seed: int) -> None:
    """The organisation's log and the network log are checked separately."""
    dice, queue = random.Random(seed), create_queue()
    sent: dict[str, list[int]] = {}
    flying: list[QueuedDelivery] = []
    stored: set[tuple[bool, int]] = set()
    finished: set[tuple[bool, int]] = set()
    taken = {False: 0, True: 0}
    for step in range(2_000):
        choice = dice.random()
        if choice < 0.3 and sum(taken.values()) < 400:
            network = dice.random() < 0.4
            taken[network] += 1
            subject = f"ofr_{dice.randrange(12)}{'_of_others' if network else ''}"
            add_event(queue, create_event(taken[network], subject, network=network), float(step))
        elif choice < 0.6 and (item := queue.take_next()) is not None:
            subject = item.delivery.subject
            assert all(other.delivery.subject != subject for other in flying)
            if not sent.get(subject) or sent[subject][-1] != item.delivery.position:
                sent.setdefault(subject, []).append(item.delivery.position)
            flying.append(item)
        elif choice < 0.85 and flying:
            item = flying.pop(dice.randrange(len(flying)))
            done = dice.random() < 0.7
            following = end_attempt(queue, item, SUCCEEDED if done else LATER)
            if done:
                finished.add((item.delivery.network, item.delivery.position))
            queue.make_ready(following or item)
        else:
            changed = queue.take_unrecorded(dice.choice((float(step), float(step) - 50)))
            queue.mark_recorded(changed)
            stored |= {(one.network, position) for _, one in changed for position in one.positions}
        for network, last in taken.items():
            checkpoint, delivered = (
                _get_position(queue.checkpoint, network),
                _get_position(queue.delivered_up_to, network),
            )
            assert {(network, position) for position in range(1, checkpoint + 1)} <= stored
            undelivered = {position for position in range(1, last + 1) if (network, position) not in finished}
            assert delivered == (min(undelivered) - 1 if undelivered else last)
            assert _get_position(queue.read_up_to, network) == last
    assert all(positions == sorted(positions) for positions in sent.values())
    assert min(taken.values()) > 50 and all(_get_position(queue.checkpoint, network) for network in taken)


def _get_position(position: FeedPosition, network: bool) -> int:
    return (position.network if network else position.own).position


def test_a_window_combines_events() -> None:
    queue = create_queue(coalesce_seconds=10)
    first = add_event(queue, create_event(1, "ofr_1"), 0.0)
    assert queue.take_next() is None
    assert (
        add_event(queue, create_event(2, "ofr_1"), 3.0) is first
        and first.delivery.positions == (1, 2)
        and first.due_at == 10.0
    )
    assert add_event(queue, create_event(3, "ofr_1", "product.merged"), 4.0) is not first
    queue.make_ready(first)
    assert queue.take_next() is first
    assert add_event(queue, create_event(4, "ofr_1"), 5.0) is not first


def test_no_event_joins_a_delivery_that_is_being_sent() -> None:
    """Its body is final: an event that joined it would count as delivered and never arrive."""
    queue = create_queue(coalesce_seconds=10)
    item = add_event(queue, create_event(1, "ofr_1"), 0.0)
    queue.make_ready(item)
    assert queue.take_next() is item
    queue.start_attempt(item, b"of event 1")
    queue.postpone_attempt(item, 11.0)
    later = add_event(queue, create_event(2, "ofr_1"), 0.5)
    assert later is not item and item.delivery.positions == (1,) and item.delivery.body == b"of event 1"
    queue.mark_recorded(queue.take_unrecorded(1.0))
    assert add_event(queue, create_event(3, "ofr_1"), 1.5) is later


def test_a_delivery_that_changes_while_it_is_recorded_is_recorded_again() -> None:
    queue = create_queue(coalesce_seconds=10)
    item = add_event(queue, create_event(1, "ofr_1"), 0.0)
    changed = queue.take_unrecorded(1.0)
    add_event(queue, create_event(2, "ofr_1"), 0.5)
    queue.mark_recorded(changed)
    assert queue.checkpoint.own.position == 1 and not item.is_recorded
    again = queue.take_unrecorded(2.0)
    queue.mark_recorded(again)
    assert [one for one, _ in again] == [item] and queue.checkpoint.own.position == 2


def test_a_failing_endpoint_gets_fewer_requests() -> None:
    queue = create_queue()
    for position in range(1, 100):
        add_event(queue, create_event(position, f"ofr_{position}"))
    flying = [queue.take_next() for _ in range(MAX_CONCURRENT + 1)]
    assert flying[-1] is None and all(flying[:-1])
    for number, item in enumerate(flying[:-1]):
        assert item is not None
        end_attempt(queue, item, SUCCEEDED if number < MAX_CONCURRENT - FAILING_THRESHOLD else FAILED)
    assert sum(queue.take_next() is not None for _ in range(MAX_CONCURRENT)) == MAX_CONCURRENT_FAILING


def test_a_replayed_delivery_precedes_waiting_ones_and_follows_those_in_flight() -> None:
    queue = create_queue()
    add_event(queue, create_event(5, "ofr_1"))
    add_event(queue, create_event(6, "ofr_1"))
    flying = queue.take_next()
    assert flying is not None
    again = queue.add_stored(builders.delivery("whe_1", subject="ofr_1", positions=(3,), attempts_made=1), 0.0, 0.0)
    assert again is not None and queue.add_stored(again.delivery, 0.0, 0.0) is None
    assert end_attempt(queue, flying, SUCCEEDED) is again


def test_finished_deliveries_are_remembered_only_while_the_store_is_queried() -> None:
    queue = create_queue()
    first, second = add_event(queue, create_event(1, "ofr_1")), add_event(queue, create_event(2, "ofr_2"))
    assert queue.take_next() is first
    end_attempt(queue, first, SUCCEEDED)
    assert queue._finished_ids is None
    with queue.track_finished():
        assert queue.take_next() is second
        end_attempt(queue, second, SUCCEEDED)
        assert queue.add_stored(second.delivery, 0.0, 0.0) is None
    assert queue._finished_ids is None
    assert queue.add_stored(second.delivery, 0.0, 0.0) is not None


def test_a_delivery_that_is_ready_twice_is_sent_once() -> None:
    queue = create_queue()
    item = add_event(queue, create_event(1, "ofr_1"))
    queue.make_ready(item)
    assert queue.take_next() is item
    queue.postpone_attempt(item, 1.0)
    assert queue.take_next() is None, "the next attempt has a due time"
    queue.make_ready(item)
    assert queue.take_next() is item


def test_a_delivery_that_is_sent_while_it_is_recorded_is_recorded_completely() -> None:
    queue = create_queue()
    item = add_event(queue, create_event(1, "ofr_1"))
    before = queue.take_unrecorded(1.0)
    assert queue.take_next() is item
    queue.start_attempt(item, b"body")
    end_attempt(queue, item, LATER)
    queue.mark_recorded(before)
    [(_, first)] = after = queue.take_unrecorded(1.0)
    assert (first.body, len(first.attempts)) == (b"body", 1)
    queue.make_ready(item)
    assert queue.take_next() is item
    queue.start_attempt(item, b"body")
    end_attempt(queue, item, SUCCEEDED)
    queue.mark_recorded(after)
    [(_, second)] = queue.take_unrecorded(1.0)
    assert (len(second.attempts), second.attempts_made) == (1, 2), "the first delivery is stored"


def test_an_endpoint_counts_as_disabled_unless_disabling_it_fails() -> None:
    queue = create_queue()
    with pytest.raises(RuntimeError), queue.treat_as_disabled():
        assert queue.subscriber.endpoint.status == "disabled"
        raise RuntimeError
    assert queue.subscriber.endpoint.status == "enabled"
    with queue.treat_as_disabled():
        pass
    assert queue.subscriber.endpoint.status == "disabled"


def test_a_queue_and_its_items_are_changed_by_its_module_only() -> None:
    usecases = Path(endpoint_queue.__file__).parent
    written = re.compile(r"^\s*(?:queue|item)(?:\.\w+)+(?:, .*)? [-+]?= ", re.MULTILINE)
    assert [path.name for path in usecases.glob("*.py") if written.search(path.read_text())] == ["endpoint_queue.py"]
