"""Followers of every kind, with the events received in each life and false responses."""

import asyncio
import contextlib
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import aiohttp

from domain.changes.model import FeedPosition
from domain.changes.ports import EventReader
from domain.changes.usecases.log_tailer import LogTailer
from domain.changes.usecases.service import ChangesService
from domain.kernel.errors import CursorExpired, DomainError
from entrypoints.container import open_dependencies
from entrypoints.settings import read_settings
from tests.faults.writers import WriteRecord
from tests.flows.service_processes import Tenancy, wait_until

_CONNECTION_ERRORS = (aiohttp.ClientError, OSError, TimeoutError)
_RETRIED_STATUSES = (429, 503)
_GONE = 410
_RETRY_SECONDS = 0.1


class FollowedEvent(NamedTuple):
    """An event as received by a follower."""

    id: str
    org: str


@dataclass
class Follower:
    """Follower of a tenant's events. A life ends with the response that events are missing (410)."""

    kind: str
    tenancy: Tenancy
    write_records: Mapping[Any, WriteRecord]
    lives: list[list[FollowedEvent]] = field(default_factory=lambda: [[]])
    disconnects: int = 0
    unexpected_errors: list[str] = field(default_factory=list)
    """Unexpected responses."""
    false_responses: list[str] = field(default_factory=list)
    """Responses with `caught_up` although an acknowledged event was missing."""
    caught_up: int = 0
    _seen: set[str] = field(default_factory=set)
    _checked: tuple[int, int] = (0, 0)

    @property
    def received(self) -> list[FollowedEvent]:
        """Return the events of the current life."""
        return self.lives[-1]

    def record_events(self, events: Sequence[FollowedEvent]) -> None:
        """Record received events."""
        self.lives[-1] += events
        self._seen.update(event.id for event in events)

    def restart(self) -> None:
        """Begin a new life after the cursor has expired."""
        self.lives.append([])
        self._seen, self._checked = set(), (0, 0)

    def get_acknowledged(self) -> tuple[list[str], int]:
        """Return the acknowledged events, which must precede every later `caught_up`."""
        ids = self.write_records[self.tenancy.tenant].acknowledged
        return ids, len(ids)

    def check_caught_up(self, known: tuple[list[str], int]) -> None:
        """Check that all events known before `caught_up` were received."""
        ids, count = known
        which, checked = self._checked
        missing = [id_ for id_ in ids[checked if which == id(ids) else 0 : count] if id_ not in self._seen]
        self.caught_up += 1
        self._checked = (id(ids), count)
        if missing:
            self.false_responses.append(f"{self.kind}: caught up without {len(missing)} of {count} events")

    async def wait_to_reconnect(self) -> None:
        """Wait before reconnecting."""
        self.disconnects += 1
        await asyncio.sleep(_RETRY_SECONDS)

    async def run(self, thread: "FollowerThread") -> None:
        """Follow until cancelled."""
        raise NotImplementedError


@dataclass
class PageFollower(Follower):
    """Follower that requests pages; with `wait`, by long polls."""

    query: dict[str, str] = field(default_factory=dict)
    cursor: str | None = None

    async def run(self, thread: "FollowerThread") -> None:
        async with thread.create_session(self.tenancy) as session:
            while True:
                try:
                    if not await self._page(session):
                        await asyncio.sleep(_RETRY_SECONDS)
                except _CONNECTION_ERRORS:
                    await self.wait_to_reconnect()

    async def _page(self, session: aiohttp.ClientSession) -> bool:
        """Request a page; return whether more may be available at once."""
        known, query = self.get_acknowledged(), self.query | ({"cursor": self.cursor} if self.cursor else {})
        async with session.get("/v1/changes", params=query) as answer:
            content = await answer.read()
        if answer.status != 200:
            self._refused(answer.status, content)
            return False
        page = json.loads(content)
        self.record_events([FollowedEvent(event["id"], event["tenant_id"]) for event in page["data"]])
        self.cursor = page["next_cursor"]
        if page["caught_up"] and "types" not in self.query:
            self.check_caught_up(known)
        return bool(page["data"]) or "wait" in self.query

    def _refused(self, status: int, content: bytes) -> None:
        if status == _GONE:
            self.cursor = None
            self.restart()
        elif status in _RETRIED_STATUSES:
            self.disconnects += 1
        else:
            self.unexpected_errors.append(f"{self.kind}: {status} {content.decode()[:200]}")


@dataclass
class StreamFollower(Follower):
    """Follower of server-sent events, which reconnects with the last ID."""

    cursor: str | None = None
    reasons: list[str] = field(default_factory=list)

    async def run(self, thread: "FollowerThread") -> None:
        async with thread.create_session(self.tenancy) as session:
            while True:
                with contextlib.suppress(*_CONNECTION_ERRORS):
                    if self.cursor is None:
                        await self._begin(session)
                    else:
                        await self._listen(session, self.cursor)
                await self.wait_to_reconnect()

    async def _begin(self, session: aiohttp.ClientSession) -> None:
        """Obtain a cursor at the beginning of the log, after at most one event."""
        async with session.get("/v1/changes", params={"limit": "1"}) as answer:
            page = json.loads(await answer.read())
        if answer.status == 200:
            self.record_events([FollowedEvent(event["id"], event["tenant_id"]) for event in page["data"]])
            self.cursor = page["next_cursor"]

    async def _listen(self, session: aiohttp.ClientSession, cursor: str) -> None:
        async with session.get("/v1/stream", headers={"Last-Event-ID": cursor}) as answer:
            if answer.status != 200:
                self._refused(answer.status, await answer.read())
                return
            sent: dict[str, str] = {}
            buffer = b""
            async for chunk in answer.content.iter_any():
                *lines, buffer = (buffer + chunk).split(b"\n")
                for line in lines:
                    if line:
                        name, _, value = line.decode().partition(":")
                        sent[name] = value.removeprefix(" ")
                    else:
                        self._take(sent)
                        sent = {}

    def _take(self, sent: dict[str, str]) -> None:
        if "data" not in sent:
            return
        data = json.loads(sent["data"])
        self.cursor = sent["id"]
        if sent["event"] == "stream.end":
            self.reasons.append(data["reason"])
        else:
            self.record_events([FollowedEvent(data["id"], data["tenant_id"])])

    def _refused(self, status: int, content: bytes) -> None:
        if status == _GONE:
            self.cursor = None
            self.restart()
        elif status not in _RETRIED_STATUSES:
            self.unexpected_errors.append(f"{self.kind}: {status} {content.decode()[:200]}")


@dataclass
class TailerFollower(Follower):
    """Follower by subscriptions of the LogTailer in this process."""

    position: FeedPosition | None = None

    async def run(self, thread: "FollowerThread") -> None:
        service: ChangesService = thread.service
        while True:
            try:
                start = await service.find_start(self.tenancy.tenant, self.position)
                async with service.tailer.subscribe(self.tenancy.tenant, start) as subscription:
                    while True:
                        batch = await subscription.next_batch(50, 5.0)
                        self.record_events(
                            [FollowedEvent(event.id, json.loads(event.body)["tenant_id"]) for event in batch.events]
                        )
                        self.position = batch.position
            except CursorExpired:
                self.position = None
                self.restart()
            except DomainError:
                await self.wait_to_reconnect()


def create_followers(tenancy: Tenancy, write_records: Mapping[Any, WriteRecord]) -> list[Follower]:
    """Create one follower of each kind."""
    return [
        PageFollower("pages", tenancy, write_records, query={"limit": "50"}),
        PageFollower("pages of few", tenancy, write_records, query={"limit": "17", "types": "offer.created"}),
        PageFollower("long polls", tenancy, write_records, query={"limit": "100", "wait": "5"}),
        StreamFollower("stream", tenancy, write_records),
        TailerFollower("subscription", tenancy, write_records),
    ]


@dataclass
class FollowerThread:
    """Thread that runs the followers."""

    followers: Sequence[Follower]
    env: Mapping[str, str]
    port: int
    unexpected_errors: list[str] = field(default_factory=list)
    _loop: asyncio.AbstractEventLoop | None = None
    _service: ChangesService | None = None
    _stop: threading.Event = field(default_factory=threading.Event)
    _is_paused: threading.Event = field(default_factory=threading.Event)
    _is_resumed: threading.Event = field(default_factory=threading.Event)

    @property
    def service(self) -> ChangesService:
        """The change feed service in this process."""
        assert self._service is not None
        return self._service

    def create_session(self, tenancy: Tenancy) -> aiohttp.ClientSession:
        """Create a client session for the API."""
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=5, sock_read=60)
        headers = {"Authorization": f"Bearer {tenancy.api.secret}"}
        return aiohttp.ClientSession(f"http://127.0.0.1:{self.port}", headers=headers, timeout=timeout)

    @contextlib.contextmanager
    def run(self) -> Iterator[None]:
        """Run the followers until the context ends."""
        thread = threading.Thread(target=lambda: asyncio.run(self._run_followers()), name="followers")
        thread.start()
        try:
            yield
        finally:
            self._is_resumed.set()
            self._stop.set()
            thread.join(60)

    @contextlib.contextmanager
    def pause(self) -> Iterator[None]:
        """Pause all followers."""
        self._is_resumed.clear()
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._block)
        wait_until(self._is_paused.is_set, "all followers are paused")
        try:
            yield
        finally:
            self._is_paused.clear()
            self._is_resumed.set()

    def _block(self) -> None:
        self._is_paused.set()
        self._is_resumed.wait()

    async def _run_followers(self) -> None:
        self._loop = asyncio.get_running_loop()
        async with open_dependencies(read_settings(self.env)) as container:
            tailer = container[LogTailer]
            self._service = ChangesService(container[EventReader], tailer)
            tasks = {asyncio.create_task(tailer.run()): "the tailer"}
            tasks |= {asyncio.create_task(one.run(self)): one.kind for one in self.followers}
            while not self._stop.is_set():
                await asyncio.sleep(0.1)
                for task in [task for task in tasks if task.done()]:
                    self.unexpected_errors.append(f"{tasks.pop(task)} ended: {task.exception()!r}")
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
