"""Holds what writers, followers and receivers know against the logs: one line for everything that is wrong."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from benchmarks.delivery_reconciliation import reconcile
from benchmarks.receiver_client import ReceiverClient
from domain.changes.model import NETWORK
from tests.faults.followers import FollowedEvent, Follower
from tests.faults.writers import Writers
from tests.support.webhook_endpoints import EndpointClient


class Logged(NamedTuple):
    """An event as it stands in a log."""

    org: str
    position: int
    id: str
    type: str
    subject: str
    version: int
    owner: str


def faults(
    log: Sequence[Logged],
    lasts: Mapping[str, int],
    writers: Writers,
    followers: Sequence[Follower],
    hooks: Mapping[str, Sequence[EndpointClient]],
    at: ReceiverClient,
    lost: Collection[str] = (),
) -> list[str]:
    """What is wrong; some of it may only be late. `lost` are events that were there before the database went back."""
    logs: dict[str, list[Logged]] = {org: [] for org in (*hooks, NETWORK)}
    for one in log:
        logs[one.org].append(one)
    publishers = {tenant.org for tenant in writers.publishers}
    wanted = {org: _seen_by(org, logs, publishers, holder=[*hooks][-1]) for org in hooks}
    found = [*_of_logs(logs, lasts), *_of_writers(logs, writers), *_of_network(logs, publishers)]
    for one in followers:
        found += _of_follower(one, wanted[one.tenancy.tenant.org])
    return found + _of_receivers(wanted, hooks, at, lost)


def _seen_by(org: str, logs: Mapping[str, Sequence[Logged]], publishers: set[str], holder: str) -> list[Logged]:
    """One's own log; for the holder of a licence also the network's."""
    return [*logs[org], *(logs[NETWORK] if org == holder and org not in publishers else ())]


def _of_logs(logs: Mapping[str, Sequence[Logged]], lasts: Mapping[str, int]) -> Iterator[str]:
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


def _of_writers(logs: Mapping[str, Sequence[Logged]], writers: Writers) -> Iterator[str]:
    for tenant, book in writers.books.items():
        there = {event.id for event in logs[tenant.org]}
        recorded = {*book.acknowledged, *book.found}
        if lost := recorded - there:
            yield f"{tenant.org}: {len(lost)} acknowledged events are lost"
        if appeared := there - recorded:
            yield f"{tenant.org}: {len(appeared)} events that nobody committed, {len(appeared & set(book.undone))} undone"


def _of_network(logs: Mapping[str, Sequence[Logged]], publishers: set[str]) -> Iterator[str]:
    for owner in publishers:
        if [one.id for one in logs[owner]] != [one.id for one in logs[NETWORK] if one.owner == owner]:
            yield f"the network's log has other events of {owner} than that, or in another order"


def _of_follower(follower: Follower, wanted: Sequence[Logged]) -> list[str]:
    """Check that the follower received everything once, in the logs' order, in its last life."""
    org = follower.tenancy.tenant.org
    if follower.kind == "pages of few":
        wanted = [one for one in wanted if one.type == "offer.created"]
    found = [*follower.strange, *follower.untrue]
    for of, received in (("own", _part(follower, org)), ("the network's", _part(follower, org, own=False))):
        expected = [one.id for one in wanted if (one.org == org) == (of == "own")]
        ids = [one.id for one in received]
        if ids != expected:
            missing, unknown = len(set(expected) - set(ids)), len(set(ids) - set(expected))
            again = len(ids) - len(set(ids))
            found.append(f"missing {missing}, unknown {unknown}, again {again} of {len(expected)} events of {of}")
    return [f"{follower.kind} of {org}: {one}" for one in found]


def mixed(follower: Follower, before: Sequence[Logged]) -> list[str]:
    """Lives that ended when the database had gone back, and received anything else than the log of before."""
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


def _part(follower: Follower, org: str, *, own: bool = True) -> list[FollowedEvent]:
    return [one for one in follower.received if (one.org == org) == own]


def _of_receivers(
    wanted: Mapping[str, Sequence[Logged]],
    hooks: Mapping[str, Sequence[EndpointClient]],
    at: ReceiverClient,
    lost: Collection[str],
) -> list[str]:
    """They got everything in order, and what was lost later perhaps."""
    paths = {hook.path: [one.id for one in wanted[org]] for org, some in hooks.items() for hook in some}
    report = reconcile(paths, [one for one in at.deliveries(*paths) if one.id not in lost])
    return [] if report.is_clean else [f"receivers: {report}"]
