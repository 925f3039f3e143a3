"""Execution of an operation's handler in its unit of work; the change and the stored response commit together."""

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, aclosing, contextmanager
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from typing import Any

import msgspec

from adapters.wire.cursors import Cursors
from domain.access.model import Principal
from domain.access.usecases import AccessService, Proof
from domain.kernel.concurrency import ConcurrencyLimit
from domain.kernel.errors import DomainError, IdempotencyKeyReused, NotFound, PreconditionFailed
from domain.kernel.ids import is_id
from domain.kernel.paging import PageRequest
from domain.kernel.plain import plain
from domain.kernel.tenancy import AuditContext
from domain.kernel.versions import Versions
from domain.secrets.ports import Vault
from entrypoints.dependencies import Dependencies
from entrypoints.http.checks import RequestState, read_preconditions
from entrypoints.http.exchange import BODILESS, STREAMED, WITH_BODY, HeaderList, Response
from entrypoints.http.pressure import Pressure
from entrypoints.http.problems import Absence, Problems, is_word
from entrypoints.http.representations import hash_of, is_packed, is_unchanged, tag_of
from entrypoints.operations.event_stream import EventStream
from entrypoints.operations.operation import (
    PREVIEW_TYPE,
    DetachedContext,
    DetachedRead,
    DetachedWrite,
    Operation,
    Read,
    ReadContext,
    Reply,
    Stream,
    StreamContext,
    Write,
    WriteContext,
    permit,
)
from entrypoints.settings import Settings
from ports.clock import Clock
from ports.idempotency import IdempotencyStore, StoredAnswer
from ports.unit_of_work import Recorded, Tx, UnitOfWork

encode = msgspec.json.Encoder(decimal_format="number").encode


class ResponseBuilder:
    """Builds the responses of successful operations."""

    def __init__(self, versions: Versions) -> None:
        self._versions = versions
        self._rewritten = frozenset(date for date in versions.dates if not versions.unchanged(date))
        self._names = {date: (b"service-version", date.encode()) for date in versions.dates}

    def success(self, state: RequestState, reply: Reply) -> Response:
        """Return the reply as a response; 304 if the client has the current representation."""
        request, reads, status = state.request, state.route.reads, reply.status or state.operation.status
        if reply.stream is not None:
            state.stream = None if request.method == "HEAD" else reply.stream
            return Response(status, self._headers(state, reply, STREAMED))
        if reply.body is None:
            return Response(status, self._headers(state, reply, BODILESS[reads]))
        body = reply.body if isinstance(reply.body, bytes) else encode(reply.body)
        is_rewritten = state.version in self._rewritten
        if is_rewritten:
            body = encode(self._versions.shape(msgspec.json.decode(body), state.version))
        headers = self._headers(state, reply, WITH_BODY[reads])
        if reads or reply.version is not None:
            shape = state.version if is_rewritten else ""
            if reply.etag_source is not None:
                text = hash_of(encode(reply.etag_source)) + shape
            else:
                text = hash_of(body) if reply.etag is None else f"{reply.etag}{shape}"
            etag = f'"{text}"' if reply.version is None else f'"{reply.version}-{text}"'
            client_tags = request.headers.get("if-none-match") if reads else None
            if client_tags is not None and is_unchanged(client_tags, etag):
                packed = tag_of(etag, gzip=is_packed(request.headers.get("accept-encoding"), len(body)))
                return Response(304, [*BODILESS[True], self._names[state.version], (b"etag", packed.encode())])
            headers.append((b"etag", etag.encode()))
        return Response(status, headers, body)

    def _headers(self, state: RequestState, reply: Reply, shared: HeaderList) -> HeaderList:
        headers = [*shared, self._names[state.version]]
        for name, value in reply.headers.items():
            headers.append((name.lower().encode(), value.encode("latin-1")))
        if state.dry_run is not None:
            headers.append((b"service-dry-run", state.dry_run.encode()))
        return headers

    def preview(self, state: RequestState, recorded: Recorded) -> Response:
        """Return the dry-run preview of the operation (docs/conventions.md#dry-run-and-explain)."""
        headers = self._headers(state, Reply(), BODILESS[False])
        headers.append((b"content-type", PREVIEW_TYPE))
        return Response(200, headers, encode(preview_of(state.operation.id, recorded)))

    def replay(self, state: RequestState, stored: StoredAnswer, body: bytes) -> Response:
        """Return the stored response again, with its decrypted body."""
        stored_headers = [(name.encode(), value.encode("latin-1")) for name, value in stored.headers]
        headers = [*BODILESS[False], *stored_headers, (b"idempotent-replayed", b"true")]
        if stored.status >= 400:
            state.error_code = msgspec.json.decode(body).get("code")
        return Response(stored.status, headers, body)


def preview_of(operation: str, recorded: Recorded) -> Mapping[str, Any]:
    """Return the preview as JSON."""
    return {
        "object": "preview",
        "operation": operation,
        "allowed": True,
        "changes": [
            {"object": change.object, "id": change.id, "action": change.action, "fields": change.fields()}
            for change in recorded.changes
        ],
        "events": [{"type": event.type, "subject": event.subject} for event in recorded.events],
        "jobs": [{"kind": job.kind, "subject": job.lane.partition(":")[2] or job.lane} for job in recorded.jobs],
        "warnings": list(recorded.warnings),
        **plain(recorded.forecasts),
    }


LIFETIME = (3_300.0, 3_600.0)
"""Range in seconds of a stream's lifetime, so that streams opened together do not reconnect together."""
PERIOD = 0.75
"""Seconds between checks of all credentials: one statement, and only while streams are open."""

LOG = logging.getLogger("joinery.http")


@dataclass(frozen=True, slots=True, eq=False)
class _Open:
    stream: EventStream
    operation: Operation
    credential: bytes
    """Empty if the edge that authenticated the caller checks the credential itself."""
    address: str
    until: float


class OpenStreams:
    """Registry of open streams; ends those that are expired or whose caller has lost permission."""

    def __init__(
        self,
        access: AccessService,
        clock: Clock,
        waiters: ConcurrencyLimit,
        period: float = PERIOD,
        lifetime: tuple[float, float] = LIFETIME,
    ) -> None:
        self._access, self._clock, self._period, self._lifetime = access, clock, period, lifetime
        self._waiters = waiters
        self._open: set[_Open] = set()
        self._proofs: Mapping[bytes, Proof] = {}
        self._watch: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        """Return the number of open streams."""
        return len(self._open)

    async def kept(self, state: RequestState, stream: EventStream) -> AsyncGenerator[bytes, None]:
        """Yield the stream's chunks, and watch it from the first one until it ends or its consumer stops."""
        until = asyncio.get_running_loop().time() + random.uniform(*self._lifetime)  # noqa: S311  spreads load
        entry = _Open(stream, state.operation, state.credential, state.address, until)
        self._open.add(entry)
        if self._watch is None or self._watch.done():
            self._watch = asyncio.create_task(self._watch_streams(), name="open-streams")
        try:
            with self._waiters.holding(state.caller.tenant.org, checked=False):
                async with aclosing(stream.pieces()) as pieces:
                    async for piece in pieces:
                        yield piece
        finally:
            self._open.discard(entry)

    async def _watch_streams(self) -> None:
        while self._open:
            await asyncio.sleep(self._period)
            entries = set(self._open)
            try:
                self._proofs = await self._access.known({entry.credential for entry in entries if entry.credential})
            except Exception as error:
                LOG.warning("credentials of open streams not checked: %r", error)
                entries = {entry for entry in entries if entry.credential in self._proofs}
            for entry in entries:
                if asyncio.get_running_loop().time() >= entry.until:
                    entry.stream.end("lifetime")
                elif entry.credential:
                    self._check_permission(entry)

    def _check_permission(self, entry: _Open) -> None:
        try:
            proof = self._proofs.get(entry.credential)
            permit(entry.operation, self._access.judge(proof, entry.address, self._clock.now()))
        except DomainError:
            entry.stream.end("credential")


_SharedArguments = tuple[Any, Principal, Mapping[str, str], Mapping[str, Any], PageRequest, str, bytes, Cursors, str]
ALONE = 2
"""Maximum concurrent requests of compute-intensive operations (`Operation.alone`) in a process."""
NEVER_STORED = frozenset({400, 401, 403, 429})
WORTH_REPEATING = frozenset({b"content-type", b"location", b"etag", b"service-version", b"retry-after"})
_canonical = msgspec.json.Encoder(order="deterministic", decimal_format="number").encode


def fingerprint(state: RequestState) -> bytes:
    """Return a digest of method, path, query and normalised body, by which repeated requests are recognised."""
    request = state.request
    head = f"{request.method} {request.path}?{request.query}\n".encode()
    return blake2b(head + _canonical(state.body), digest_size=16).digest()


def is_stored(error: DomainError, status: int) -> bool:
    """Return whether an error is the final outcome of the request, to be stored, and not a temporary state."""
    return 400 <= status < 500 and status not in NEVER_STORED and not error.code.startswith("idempotency_")


class Execute:
    """Executes an operation whose request has passed every check that needs no transaction."""

    def __init__(
        self,
        dependencies: Dependencies,
        services: Mapping[str, Any],
        cursors: Cursors,
        waiters: ConcurrencyLimit,
        pressure: Pressure,
        responses: ResponseBuilder,
        problems: Problems,
        absence: Absence,
    ) -> None:
        self._uow, self._vault, self._clock = dependencies[UnitOfWork], dependencies[Vault], dependencies[Clock]
        self._base_url, self._services = dependencies[Settings].base_url, services
        self._cursors, self._waiters, self._responses, self._problems = cursors, waiters, responses, problems
        self._absence, self._pressure = absence, pressure
        self._alone = ConcurrencyLimit(ALONE, 1)
        self._kinds: Mapping[type[Operation], Callable[[RequestState, Any], Awaitable[Response]]] = {
            Read: self._read,
            Write: self._write,
            DetachedRead: self._detached_read,
            DetachedWrite: self._detached_write,
            Stream: self._stream,
        }

    async def __call__(self, state: RequestState) -> Response:
        """Return the response. Raises DomainError with nothing changed."""
        operation, org = state.operation, state.caller.tenant.org
        execute = self._kinds[type(operation)]
        if state.match.ids and not isinstance(operation, Write):
            check_ids(state)
        if not operation.alone:
            return await execute(state, operation)
        async with AsyncExitStack() as stack:
            with self._idle(org):
                await stack.enter_async_context(self._alone.slot(org))
            return await execute(state, operation)

    async def _detached_read(self, state: RequestState, operation: DetachedRead) -> Response:
        idle = partial(self._idle, state.caller.tenant.org)
        context = DetachedContext(*self._shared(state), self._clock.now(), idle)
        return self._responses.success(state, await operation.handler(context))

    async def _stream(self, state: RequestState, operation: Stream) -> Response:
        self._waiters.check(state.caller.tenant.org)
        context = StreamContext(*self._shared(state), self._clock.now(), state.request.headers.get("last-event-id"))
        return self._responses.success(state, await operation.handler(context))

    @contextmanager
    def _idle(self, org: str, *, checked: bool = True) -> Iterator[None]:
        """Count a waiting request, which adds no pressure. Raises RateLimited if `checked` and over the limit."""
        with self._waiters.holding(org, checked=checked), self._pressure.idle():
            yield

    async def _read(self, state: RequestState, operation: Read) -> Response:
        async with self._uow.read(state.caller.tenant) as tx:
            reply = await operation.handler(ReadContext(*self._shared(state), tx.now, tx))
        if reply.later is not None:
            reply = await reply.later()
        return self._responses.success(state, reply)

    async def _detached_write(self, state: RequestState, operation: DetachedWrite) -> Response:
        """Read what is needed, release the connection, then call external systems."""
        async with self._uow.read(state.caller.tenant) as tx:
            tx.dry = state.dry_run is not None
            call_outside = await operation.handler(self._write_context(state, tx, None))
            if state.dry_run == "explain":
                return self._responses.preview(state, tx.recorded)
        return self._responses.success(state, await call_outside())

    async def _write(self, state: RequestState, operation: Write) -> Response:
        caller = state.caller
        context = AuditContext(caller.actor, operation.id, state.request_id, operation.reversible)
        async with self._uow.begin(caller.tenant, context) as tx:
            tx.dry = state.dry_run is not None
            if state.idempotency_key is None or tx.dry:
                response = await self._run_handler(state, operation, tx)
            else:
                response = await self._run_handler_once(state, operation, tx, state.idempotency_key)
        if state.later is None or state.dry_run is not None:
            return response
        return await self._complete(state, operation, context, state.later)

    async def _complete(
        self, state: RequestState, operation: Write, context: AuditContext, later: Callable[[], Awaitable[Reply]]
    ) -> Response:
        """Await the work that the change started, and store its response for repeated requests."""
        with self._idle(state.caller.tenant.org, checked=False):
            response = self._responses.success(state, await later())
        if (key := state.idempotency_key) is not None:
            async with self._uow.begin(state.caller.tenant, context) as tx:
                await tx[IdempotencyStore].revise(key, self._encrypted(operation, key, response.body))
        return response

    async def _run_handler_once(self, state: RequestState, operation: Write, tx: Tx, key: str) -> Response:
        stored = await tx[IdempotencyStore].hold(key)
        same = fingerprint(state)
        if stored is not None:
            if stored.fingerprint != same:
                raise IdempotencyKeyReused
            return self._responses.replay(state, stored, self._decrypted(operation, key, stored.body))
        try:
            async with tx.savepoint():
                response = await self._run_handler(state, operation, tx)
        except DomainError as error:
            if not is_stored(error, self._problems.status(error)):
                raise
            state.error_code = error.code
            error = self._absence.worded(state) if isinstance(error, NotFound) else error
            response = self._problems.answer(error, state.request_id)
        headers = tuple(
            (name.decode(), value.decode("latin-1")) for name, value in response.headers if name in WORTH_REPEATING
        )
        answer = StoredAnswer(same, response.status, headers, self._encrypted(operation, key, response.body))
        await tx[IdempotencyStore].keep(key, answer)
        return response

    def _encrypted(self, operation: Write, key: str, body: bytes) -> bytes:
        """Return the body as stored: encrypted if the operation returns a secret."""
        return self._vault.seal({"body": body.decode()}, key) if operation.encrypt_replay else body

    def _decrypted(self, operation: Write, key: str, body: bytes) -> bytes:
        return str(self._vault.open(body, key)["body"]).encode() if operation.encrypt_replay else body

    async def _run_handler(self, state: RequestState, operation: Write, tx: Tx) -> Response:
        check_ids(state)
        read_preconditions(state)
        reply = await self._call_handler(state, operation, tx)
        state.later = reply.later
        return (
            self._responses.preview(state, tx.recorded)
            if state.dry_run == "explain"
            else self._responses.success(state, reply)
        )

    async def _call_handler(self, state: RequestState, operation: Write, tx: Tx) -> Reply:
        """Call the handler; an If-Match with several ETags is met if one of their versions is the current one."""
        handler, versions = operation.handler, state.expected_versions
        for version in versions[:-1] if versions else ():
            try:
                async with tx.savepoint():
                    return await handler(self._write_context(state, tx, version))
            except PreconditionFailed:
                continue
        return await handler(self._write_context(state, tx, versions[-1] if versions else None))

    def _write_context(self, state: RequestState, tx: Tx, version: int | None) -> WriteContext[Any]:
        return WriteContext(*self._shared(state), tx.now, tx, version, state.command)

    def _shared(self, state: RequestState) -> _SharedArguments:
        """Return the arguments that all context classes begin with."""
        service, page = self._services[state.operation.area], (state.page_request, state.version, state.cursor_context)
        return service, state.caller, state.match.ids, state.query, *page, self._cursors, self._base_url


def check_ids(state: RequestState) -> None:
    """Check the IDs in the path. Raises NotFound if one is malformed or of another kind."""
    prefixes = state.operation.ids
    for name, text in state.match.ids.items():
        prefix = prefixes.get(name)
        if not (is_id(prefix, text) if prefix is not None else is_word(text)):
            raise NotFound
