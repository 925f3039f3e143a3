"""Comparison of writers, followers and receivers with the logs, one line per violation."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from benchmarks.delivery_reconciliation import reconcile
from benchmarks.receiver_client import ReceiverClient
from domain.changes.model import NETWORK
from tests.faults.followers import FollowedEvent, Follower
from tests.faults.writers import Writers
from tests.support.webhook_endpoints import EndpointClient


class LoggedEvent(NamedTuple):
    """An event in a log."""

    org: str
    position: int
    id: str
    type: str
    subject: str
    version: int
    owner: str


def find_violations(
    log: Sequence[LoggedEvent],
    lasts: Mapping[str, int],
    writers: Writers,
    followers: Sequence[Follower],
    endpoints: Mapping[str, Sequence[EndpointClient]],
    receiver: ReceiverClient,
    lost_events: Collection[str] = (),
) -> list[str]:
    """Return the violations, some of which may be delays. `lost_events` existed before the restore of the database."""
    logs: dict[str, list[LoggedEvent]] = {org: [] for org in (*endpoints, NETWORK)}
    for one in log:
        logs[one.org].append(one)
    publishers = {tenant.org for tenant in writers.publishers}
    expected = {org: _select_visible(org, logs, publishers, holder=[*endpoints][-1]) for org in endpoints}
    found = [*_check_logs(logs, lasts), *_check_writers(logs, writers), *_check_network_log(logs, publishers)]
    for one in followers:
        found += _check_follower(one, expected[one.tenancy.tenant.org])
    return found + _check_receivers(expected, endpoints, receiver, lost_events)


def _select_visible(
    org: str, logs: Mapping[str, Sequence[LoggedEvent]], publishers: set[str], holder: str
) -> list[LoggedEvent]:
    """Return the organisation's own events; for the holder of a licence also those of the network."""
    return [*logs[org], *(logs[NETWORK] if org == holder and org not in publishers else ())]


def _check_logs(logs: Mapping[str, Sequence[LoggedEvent]], lasts: Mapping[str, int]) -> Iterator[str]:
    for org, events in logs.items():
        if [event.position for event in events] != list(range(1, lasts.get(org, 0) + 1)):
            yield f"log of {org}: positions are not 1 to {lasts.get(org)}"
        if len({event.id for event in events}) != len(events):
            yield f"log of {org}: an event stands there twice"
        versions: Counter[str] = Counter()
        for event in events:
            if event.version != versions[event.subject] + 1:
                yield f"log of {org}: {event.subject} {event.version} behind {versions[event.subject]}"
            versions[event.subject] = event.version


def _check_writers(logs: Mapping[str, Sequence[LoggedEvent]], writers: Writers) -> Iterator[str]:
    for tenant, book in writers.records.items():
        there = {event.id for event in logs[tenant.org]}
        recorded = {*book.acknowledged, *book.recovered}
        if lost_events := recorded - there:
            yield f"{tenant.org}: {len(lost_events)} acknowledged events are lost"
        if appeared := there - recorded:
            yield f"{tenant.org}: {len(appeared)} events that nobody committed, {len(appeared & set(book.rolled_back))} undone"


def _check_network_log(logs: Mapping[str, Sequence[LoggedEvent]], publishers: set[str]) -> Iterator[str]:
    for owner in publishers:
        if [one.id for one in logs[owner]] != [one.id for one in logs[NETWORK] if one.owner == owner]:
            yield f"the network's log has other events of {owner} than that, or in another order"


def _check_follower(follower: Follower, visible: Sequence[LoggedEvent]) -> list[str]:
    """Check that the follower received everything once, in the logs' order, in its last life."""
    org = follower.tenancy.tenant.org
    if follower.kind == "pages of few":
        visible = [one for one in visible if one.type == "offer.created"]
    found = [*follower.unexpected_errors, *follower.false_responses]
    for origin, received in (
        ("own", _select_received(follower, org)),
        ("the network's", _select_received(follower, org, own=False)),
    ):
        expected = [one.id for one in visible if (one.org == org) == (origin == "own")]
        ids = [one.id for one in received]
        if ids != expected:
            missing, unknown = len(set(expected) - set(ids)), len(set(ids) - set(expected))
            again = len(ids) - len(set(ids))
            found.append(f"missing {missing}, unknown {unknown}, again {again} of {len(expected)} events of {origin}")
    return [f"{follower.kind} of {org}: {one}" for one in found]


def find_mixed_lives(follower: Follower, before: Sequence[LoggedEvent]) -> list[str]:
    """Return violations of lives that ended with the restore but received other events than the previous log."""
    org = follower.tenancy.tenant.org
    ids = {True: [one.id for one in before if one.org == org], False: [one.id for one in before if one.org == NETWORK]}
    if follower.kind == "pages of few":
        few = {one.id for one in before if one.type == "offer.created"}
        ids = {own: [id_ for id_ in some if id_ in few] for own, some in ids.items()}
    return [
        f"{follower.kind} of {org}: a life before the last was told of events that were never in one log"
        for life in follower.lives[:-1]
        for own, expected in ids.items()
        if (received := [one.id for one in life if (one.org == org) == own]) != expected[: len(received)]
    ]


def _select_received(follower: Follower, org: str, *, own: bool = True) -> list[FollowedEvent]:
    return [one for one in follower.received if (one.org == org) == own]


def _check_receivers(
    expected: Mapping[str, Sequence[LoggedEvent]],
    endpoints: Mapping[str, Sequence[EndpointClient]],
    receiver: ReceiverClient,
    lost_events: Collection[str],
) -> list[str]:
    """Check that receivers got everything in order; events lost later are ignored."""
    paths = {hook.path: [one.id for one in expected[org]] for org, some in endpoints.items() for hook in some}
    report = reconcile(paths, [one for one in receiver.deliveries(*paths) if one.id not in lost_events])
    return [] if report.is_clean else [f"receivers: {report}"]
