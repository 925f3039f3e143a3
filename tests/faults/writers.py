"""Writers of several organisations, with records of acknowledged, recovered and rolled-back events."""

import asyncio
import contextlib
import random
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from adapters.postgres.nodes.pool import Pool
from benchmarks.event_publisher import Publisher
from domain.events.model import Event
from domain.events.ports import EventLog
from domain.kernel.errors import DomainError
from domain.kernel.tenancy import Tenant
from entrypoints.container import open_dependencies
from entrypoints.dependencies import Dependencies
from entrypoints.settings import read_settings
from ports.unit_of_work import UnitOfWork
from tests.flows.service_processes import Tenancy, wait_until
from tests.support import builders

WRITERS = 2
"""Writers per organisation."""
_RETRY_SECONDS = 0.1


class _Rollback(Exception):
    """Causes the rollback of a transaction."""


@dataclass
class WriteRecord:
    """Events of one tenant as known by its writers."""

    acknowledged: list[str] = field(default_factory=list)
    """Commits that the database acknowledged."""
    recovered: list[str] = field(default_factory=list)
    """Commits without acknowledgement that were found in the log."""
    rolled_back: list[str] = field(default_factory=list)
    """Transactions that were rolled back, or interrupted and not found."""


@dataclass
class Writers:
    """Thread of writers. `publishers` publish all of their events to the network."""

    tenancies: Sequence[Tenancy]
    publishers: frozenset[Tenant]
    env: Mapping[str, str]
    seed: int
    records: dict[Tenant, WriteRecord] = field(default_factory=dict)
    unexpected_errors: list[str] = field(default_factory=list)
    """Errors that are not domain errors."""
    _publishers: list[Publisher] = field(default_factory=list)
    _is_running: threading.Event = field(default_factory=threading.Event)
    _stop: threading.Event = field(default_factory=threading.Event)
    _paused_writers: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Create empty records."""
        self.records = {one.tenant: WriteRecord() for one in self.tenancies}

    @contextlib.contextmanager
    def run(self) -> Iterator[None]:
        """Write until the context ends."""
        for number, one in enumerate([*self.tenancies] * WRITERS):
            publisher = Publisher(one.tenant, one.organisation.get_catalogue_id(one.tenant.livemode))
            publisher.restrict_subjects(random.Random(self.seed + number).randint(20, 60))
            self._publishers.append(publisher)
        thread = threading.Thread(target=lambda: asyncio.run(self._run_writers()), name="writers")
        self._is_running.set()
        thread.start()
        try:
            yield
        finally:
            self._is_running.set()
            self._stop.set()
            thread.join(90)

    @property
    def count_acknowledged(self) -> dict[Tenant, int]:
        """Return the number of acknowledged events of each tenant."""
        return {tenant: len(book.acknowledged) for tenant, book in self.records.items()}

    def pause(self) -> None:
        """Wait until all transactions have ended, and start no further one."""
        self._is_running.clear()
        wait_until(lambda: len(self._paused_writers) == len(self._publishers), "the writers rest", within=90)

    def resume(self) -> None:
        """Resume the writers."""
        self._is_running.set()

    def restart(self, tenant: Tenant, rows: Sequence[tuple[str, str, int]]) -> None:
        """Continue from a restored database, whose log contains the rows (id, subject, version). The writers must be paused."""
        self.records[tenant] = WriteRecord(acknowledged=[id_ for id_, _, _ in rows])
        for publisher in self._publishers:
            if publisher.tenant == tenant:
                publisher.versions = {subject: version for _, subject, version in rows}

    async def _run_writers(self) -> None:
        try:
            async with open_dependencies(read_settings(self.env)) as container:
                await asyncio.gather(*(self._write(container, number) for number in range(len(self._publishers))))
        except Exception as error:
            self.unexpected_errors.append(f"the writers: {error!r}")

    async def _write(self, container: Dependencies, number: int) -> None:
        publisher, dice = self._publishers[number], random.Random(self.seed * 1_000 + number)
        while not self._stop.is_set():
            if self._is_running.is_set():
                await self._transaction(container, publisher, dice)
                await asyncio.sleep(dice.random() * 0.3)
            else:
                self._paused_writers.add(number)
                await asyncio.sleep(0.02)
                if self._is_running.is_set():
                    self._paused_writers.discard(number)

    async def _transaction(self, container: Dependencies, publisher: Publisher, dice: random.Random) -> None:
        """Write one transaction, which may be large, slow or rolled back."""
        events = publisher.generate_events(dice.choice((1, 1, 1, 2, 2, 3, 3, 5, 8, 50)))
        for event in events:
            event.is_published = publisher.tenant in self.publishers
        ids, book = [event.id for event in events], self.records[publisher.tenant]
        try:
            async with container[UnitOfWork].begin(publisher.tenant, builders.CALL) as tx:
                await tx[EventLog].append(events)
                await asyncio.sleep(dice.random() * 0.1 if dice.random() < 0.2 else 0)
                if dice.random() < 0.05:
                    raise _Rollback
        except _Rollback:
            book.rolled_back += ids
            publisher.roll_back(events)
        except Exception as error:
            if not isinstance(error, DomainError):
                self.unexpected_errors.append(f"a writer: {error!r}")
            await self._resolve(container, publisher, book, events)
        else:
            book.acknowledged += ids

    async def _resolve(
        self, container: Dependencies, publisher: Publisher, book: WriteRecord, events: Sequence[Event]
    ) -> None:
        """Determine from the log whether an interrupted transaction was committed; retried until the database responds."""
        ids = [event.id for event in events]
        statement = "SELECT count(*) FROM events WHERE id = ANY(%s)"
        while True:
            try:
                async with container[Pool].connect_to_tenant(publisher.tenant) as link:
                    [(count,)] = await (await link.driver_connection.execute(statement, (ids,))).fetchall()
                break
            except DomainError:
                await asyncio.sleep(_RETRY_SECONDS)
        if count:
            book.recovered += ids
        else:
            book.rolled_back += ids
            publisher.roll_back(events)
