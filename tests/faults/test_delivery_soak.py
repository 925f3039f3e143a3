"""Deliveries and feed during faults of all components: nothing is lost or reordered.

`SOAK_SECONDS` is the duration (default 60), `SOAK_SEED` the random seed.
"""

import asyncio
import contextlib
import os
import random
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from adapters.postgres.nodes.pool import Pool
from benchmarks.delivery_reconciliation import ReconciliationReport, reconcile
from benchmarks.event_publisher import Publisher
from benchmarks.feed_readers import NO_ERRORS, LongPollReader, SeenEvent, StreamReader, compare_with_table
from benchmarks.receiver_client import ReceiverClient
from domain.events.ports import EventLog
from domain.kernel.errors import DomainError
from entrypoints.container import open_dependencies
from entrypoints.dependencies import Dependencies
from entrypoints.settings import read_settings
from ports.unit_of_work import UnitOfWork
from tests.faults.faulty_services import FaultyServices, run_faulty_services
from tests.flows.service_processes import Tenancy
from tests.support import builders
from tests.support.webhook_endpoints import EndpointClient, create_endpoint, run_receiver

SECONDS = float(os.environ.get("SOAK_SECONDS", "60"))
SETTLE_SECONDS = 180.0
"""Seconds after the last fault within which everything has arrived."""
ORGANISATIONS = 2


class _Rollback(Exception):
    """Causes the rollback of a transaction."""


@dataclass
class EventLoad:
    """Thread that appends events with slow commits and rollbacks, and readers."""

    tenancies: list[Tenancy]
    env: dict[str, str]
    port: int
    seed: int
    polls: list[LongPollReader] = field(default_factory=list)
    streams: list[StreamReader] = field(default_factory=list)
    unresolved: int = 0
    rolled_back: int = 0
    failure: BaseException | None = None
    _stop: threading.Event = field(default_factory=threading.Event)
    _end: threading.Event = field(default_factory=threading.Event)

    @contextlib.contextmanager
    def run(self) -> Iterator[None]:
        """Append and read until the context ends; reading continues until `end`."""
        thread = threading.Thread(target=lambda: asyncio.run(self._run_load()))
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            self._end.set()
            thread.join(60)
        if self.failure is not None:
            raise self.failure

    def stop_appending(self) -> None:
        """Stop appending; readers continue."""
        self._stop.set()

    async def _run_load(self) -> None:
        try:
            async with open_dependencies(read_settings(self.env)) as container:
                base = f"http://127.0.0.1:{self.port}"
                self.polls = [LongPollReader(base, str(one.api.secret)) for one in self.tenancies]
                self.streams = [StreamReader(base, str(one.api.secret)) for one in self.tenancies]
                readers = [asyncio.create_task(reader.run()) for reader in (*self.polls, *self.streams)]
                await asyncio.sleep(1)
                await asyncio.gather(*(self._append(container, number) for number in range(len(self.tenancies) * 2)))
                await asyncio.to_thread(self._end.wait)
                for task in readers:
                    task.cancel()
                await asyncio.gather(*readers, return_exceptions=True)
        except BaseException as error:
            self.failure = error

    async def _append(self, container: Dependencies, number: int) -> None:
        tenancy, dice = self.tenancies[number % len(self.tenancies)], random.Random(self.seed + number)
        publisher = Publisher(tenancy.tenant, tenancy.organisation.get_catalogue_id(tenancy.tenant.livemode))
        publisher.restrict_subjects(dice.randint(40, 120))
        while not self._stop.is_set():
            events = publisher.generate_events(dice.randint(1, 12))
            try:
                async with container[UnitOfWork].begin(tenancy.tenant, builders.CALL) as tx:
                    await tx[EventLog].append(events)
                    await asyncio.sleep(dice.random() * 0.1 if dice.random() < 0.2 else 0)
                    if dice.random() < 0.05:
                        raise _Rollback
            except _Rollback:
                publisher.roll_back(events)
                self.rolled_back += 1
            except DomainError:
                self.unresolved += 1
                if not await self._committed(container, tenancy, events[0].id):
                    publisher.roll_back(events)
            await asyncio.sleep(dice.random() * 0.15)

    async def _committed(self, container: Dependencies, tenancy: Tenancy, id: str) -> bool:
        """Return whether the transaction with this event was committed; retried until the database responds."""
        while True:
            try:
                async with container[Pool].connect_to_tenant(tenancy.tenant) as link:
                    cursor = await link.driver_connection.execute("SELECT FROM events WHERE id = %s", (id,))
                    return await cursor.fetchone() is not None
            except DomainError:
                await asyncio.sleep(0.2)


def _create_endpoints(
    faulty_services: FaultyServices, tenancy: Tenancy, receiver: ReceiverClient
) -> list[EndpointClient]:
    kinds = ({}, {"status": 500, "times": 1, "share": 0.02}, {"after": 0.1}, {"do": "close", "times": 1})
    return [create_endpoint(tenancy.api, receiver, does=dict(kind)) for kind in kinds]


def _fetch_logged_events(faulty_services: FaultyServices, tenancy: Tenancy) -> list[SeenEvent]:
    statement = "SELECT id, subject, version FROM events WHERE org = %(org)s ORDER BY position"
    return [SeenEvent(*row) for row in faulty_services.fetch_rows(statement, org=tenancy.tenant.org)]


def _list_open_deliveries(faulty_services: FaultyServices, receiver: ReceiverClient) -> Iterator[str]:
    """Yield the open deliveries by endpoint."""
    rows = faulty_services.fetch_rows(
        "SELECT e.url, e.status, e.checkpoint, (SELECT max(position) FROM events v WHERE v.org = e.org), d.status, count(d), "
        "min(d.tries), max(d.tries), min(d.next_attempt_at) - now(), max(d.next_attempt_at) - now() "
        "FROM webhook_endpoints e LEFT JOIN webhook_deliveries d ON d.endpoint = e.id AND d.status <> 'succeeded' "
        "GROUP BY e.url, e.org, e.status, e.checkpoint, d.status ORDER BY 1"
    )
    for url, status, checkpoint, last, *open in rows:
        if status != "enabled" or checkpoint < last or open[1]:
            yield f"{url}: {status}, served up to {checkpoint} of {last}; open: {' '.join(map(str, open))}"


def _reconcile_deliveries(
    faulty_services: FaultyServices, tenancies: list[Tenancy], endpoints: dict[str, list[EndpointClient]]
) -> ReconciliationReport:
    wanted = {
        one.path: [seen.id for seen in _fetch_logged_events(faulty_services, tenancy)]
        for tenancy in tenancies
        for one in endpoints[tenancy.tenant.org]
    }
    receiver = next(iter(endpoints.values()))[0].receiver
    return reconcile(wanted, receiver.deliveries(*wanted))


@pytest.mark.soak
def test_deliveries_and_feed_survive_faults_of_every_component(capsys: pytest.CaptureFixture[str]) -> None:
    seed = int(os.environ.get("SOAK_SEED", time.time_ns() % 1_000_000))
    dice = random.Random(seed)
    with run_faulty_services() as faulty_services, run_receiver(faulty_services.services) as receiver:
        tenancies = [faulty_services.services.create_organisation(livemode=False) for _ in range(ORGANISATIONS)]
        endpoints = {tenancy.tenant.org: _create_endpoints(faulty_services, tenancy, receiver) for tenancy in tenancies}
        load = EventLoad(tenancies, faulty_services.services.env, faulty_services.services.port, seed)
        with load.run():
            until = time.monotonic() + SECONDS
            while time.monotonic() < until:
                time.sleep(dice.uniform(0.5, 3))
                faulty_services.inject_fault(dice)
            load.stop_appending()
            ended, report = time.monotonic(), _reconcile_deliveries(faulty_services, tenancies, endpoints)
            while report.missing and time.monotonic() < ended + SETTLE_SECONDS:
                time.sleep(1)
                report = _reconcile_deliveries(faulty_services, tenancies, endpoints)
            calm = time.monotonic() - ended
            readers = _compare_readers(faulty_services, load, tenancies)
        with capsys.disabled():
            print(f"\nseed {seed}, {SECONDS:.0f} s: {dict(faulty_services.fault_counts)}")
            print(f"appended {sum(len(_fetch_logged_events(faulty_services, one)) for one in tenancies):,} events; {load.rolled_back} "
                  f"transactions rolled back, {load.unresolved} broken off")  # fmt: skip
            print(f"deliveries: {report}; complete {calm:.0f} s after the last blow")
            print("\n".join(f"{name}: {verdict}" for name, verdict in readers.items()))
            print("\n".join(_list_open_deliveries(faulty_services, receiver)))
        assert report.is_clean, str(report)
        assert all(verdict.startswith(NO_ERRORS) for verdict in readers.values()), readers


def _compare_readers(faulty_services: FaultyServices, load: EventLoad, tenancies: list[Tenancy]) -> dict[str, str]:
    """Return what each reader saw compared with the log, once they have had time to reach its end."""
    verdicts: dict[str, str] = {}
    until = time.monotonic() + 45
    while time.monotonic() < until:
        for kind, readers in (("long polls", load.polls), ("stream", load.streams)):
            for number, (reader, tenancy) in enumerate(zip(readers, tenancies, strict=True)):
                verdicts[f"{kind} {number}"] = (
                    f"{compare_with_table(list(reader.events), _fetch_logged_events(faulty_services, tenancy))}, broke off {reader.breaks}"
                )
        if all(one.startswith(NO_ERRORS) for one in verdicts.values()):
            break
        time.sleep(1)
    return verdicts
