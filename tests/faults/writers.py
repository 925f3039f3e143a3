"""Writers of several organisations that keep the books: what was acknowledged, what broke off and is there, what is not."""

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
"""Of each organisation."""
_RETRY_SECONDS = 0.1


class _Rollback(Exception):
    """A transaction that is rolled back."""


@dataclass
class WriteRecord:
    """What the writers of one tenant know of their events."""

    acknowledged: list[str] = field(default_factory=list)
    """Committed, as the database said."""
    recovered: list[str] = field(default_factory=list)
    """The connection broke off, and they are there."""
    rolled_back: list[str] = field(default_factory=list)
    """Rolled back, or broken off and not there."""


@dataclass
class Writers:
    """In a thread of their own, as long as the context lasts. `publishers` tell the network all that they write."""

    tenancies: Sequence[Tenancy]
    publishers: frozenset[Tenant]
    env: Mapping[str, str]
    seed: int
    records: dict[Tenant, WriteRecord] = field(default_factory=dict)
    unexpected_errors: list[str] = field(default_factory=list)
    """What nobody is to hear: errors that are none of the domain's."""
    _publishers: list[Publisher] = field(default_factory=list)
    _is_running: threading.Event = field(default_factory=threading.Event)
    _stop: threading.Event = field(default_factory=threading.Event)
    _paused_writers: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Begin the books."""
        self.records = {one.tenant: WriteRecord() for one in self.tenancies}

    @contextlib.contextmanager
    def run(self) -> Iterator[None]:
        """Write until the context is left."""
        for number, one in enumerate([*self.tenancies] * WRITERS):
            made = Publisher(one.tenant, one.organisation.get_catalogue_id(one.tenant.livemode))
            made.restrict_subjects(random.Random(self.seed + number).randint(20, 60))
            self._publishers.append(made)
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
        """How many events of each tenant so far."""
        return {tenant: len(book.acknowledged) for tenant, book in self.records.items()}

    def pause(self) -> None:
        """Wait until nobody is in a transaction any more, and let nobody begin one."""
        self._is_running.clear()
        wait_until(lambda: len(self._paused_writers) == len(self._publishers), "the writers rest", within=90)

    def resume(self) -> None:
        """Go on."""
        self._is_running.set()

    def restart(self, tenant: Tenant, rows: Sequence[tuple[str, str, int]]) -> None:
        """The database went back: these (id, subject, version) are all that its log has. The writers must rest."""
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
        """Some are large, some slow, some are rolled back."""
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
        """It broke off: asked until there is an answer, the log says whether it was committed."""
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
