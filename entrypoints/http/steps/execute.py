"""The handler in its unit of work: what it did and what is answered commit together, or not at all."""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from typing import Any, Final

import msgspec

from adapters.wire.cursors import Cursors
from domain.kernel.concurrency import ConcurrencyLimit
from domain.kernel.errors import DomainError, IdempotencyKeyReused, NotFound, PreconditionFailed
from domain.kernel.ids import is_id
from domain.kernel.tenancy import AuditContext
from entrypoints.dependencies import Dependencies
from entrypoints.http.absence import Absence, is_word
from entrypoints.http.exchange import HeaderList, Response
from entrypoints.http.operation import DetachedRead, DetachedWrite, Read, Stream, Write
from entrypoints.http.pressure import Pressure
from entrypoints.http.problems import Problems
from entrypoints.http.reply import Reply
from entrypoints.http.request_context import DetachedContext, ReadContext, StreamContext, WriteContext
from entrypoints.http.request_state import RequestState
from entrypoints.http.steps.preconditions import read_preconditions
from entrypoints.http.steps.respond import ResponseBuilder
from ports.idempotency import StoredAnswer
from ports.unit_of_work import Tx

ALONE: Final = 2
"""Requests of operations that compute much (`Operation.alone`) that a process carries out at a time."""
NEVER_STORED: Final = frozenset({400, 401, 403, 429})
WORTH_REPEATING: Final = frozenset({b"content-type", b"location", b"etag", b"service-version", b"retry-after"})
_canonical: Final = msgspec.json.Encoder(order="deterministic", decimal_format="number").encode


def fingerprint(state: RequestState) -> bytes:
    """What makes two requests the same: method, path, query and body, however its JSON is spaced or ordered."""
    request = state.request
    head = f"{request.method} {request.path}?{request.query}\n".encode()
    return blake2b(head + _canonical(state.body), digest_size=16).digest()


def is_stored(error: DomainError, status: int) -> bool:
    """Whether a refusal is the request's outcome, to be answered again, and not a state of affairs that passes."""
    return 400 <= status < 500 and status not in NEVER_STORED and not error.code.startswith("idempotency_")


class Execute:
    """Runs an operation whose request has passed every check that needs no transaction."""

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
        self._uow, self._vault, self._clock = dependencies.uow, dependencies.vault, dependencies.clock
        self._base_url, self._services = dependencies.settings.base_url, services
        self._cursors, self._waiters, self._responses, self._problems = cursors, waiters, responses, problems
        self._absence, self._pressure = absence, pressure
        self._alone = ConcurrencyLimit(ALONE, 1)

    async def __call__(self, state: RequestState) -> Response:
        """The answer. Raises DomainError, with nothing done."""
        if not state.operation.alone:
            return await self._carry_out(state)
        org = state.caller.tenant.org
        async with AsyncExitStack() as held:
            with self._idle(org):
                await held.enter_async_context(self._alone.slot(org))
            return await self._carry_out(state)

    async def _carry_out(self, state: RequestState) -> Response:
        match state.operation:
            case Read() as operation:
                return await self._read(state, operation)
            case Write() as operation:
                return await self._write(state, operation)
            case DetachedRead() as operation:
                check_ids(state)
                idle = partial(self._idle, state.caller.tenant.org)
                context = DetachedContext(*self._shared(state), self._clock.now(), idle)
                return self._responses.success(state, await operation.handler(context))
            case DetachedWrite() as operation:
                return await self._detached_write(state, operation)
            case Stream() as operation:
                check_ids(state)
                self._waiters.check(state.caller.tenant.org)
                streaming = StreamContext(*self._shared(state), self._clock.now())
                return self._responses.success(state, await operation.handler(streaming))
            case operation:
                raise TypeError(f"{operation.id} is of no kind that can be run")

    @contextmanager
    def _idle(self, org: str, *, checked: bool = True) -> Iterator[None]:
        """Count a request that only waits, which presses nobody. Raises RateLimited unless it is a change that is done."""
        with self._waiters.holding(org, checked=checked), self._pressure.idle():
            yield

    async def _read(self, state: RequestState, operation: Read) -> Response:
        check_ids(state)
        async with self._uow.read(state.caller.tenant) as tx:
            reply = await operation.handler(ReadContext(*self._shared(state), tx.now, tx))
        if reply.later is not None:
            reply = await reply.later()
        return self._responses.success(state, reply)

    async def _detached_write(self, state: RequestState, operation: DetachedWrite) -> Response:
        """Read what is needed, let the connection go, then reach out."""
        check_ids(state)
        async with self._uow.read(state.caller.tenant) as tx:
            tx.dry = state.dry_run is not None
            reach = await operation.handler(self._writing(state, tx, None))
            if state.dry_run == "explain":
                return self._responses.preview(state, tx.recorded)
        return self._responses.success(state, await reach())

    async def _write(self, state: RequestState, operation: Write) -> Response:
        caller = state.caller
        context = AuditContext(caller.actor, operation.id, state.request_id, operation.reversible)
        async with self._uow.begin(caller.tenant, context) as tx:
            tx.dry = state.dry_run is not None
            if state.idempotency_key is None or tx.dry:
                response = await self._act(state, operation, tx)
            else:
                response = await self._act_once(state, operation, tx, state.idempotency_key)
        if state.later is None or state.dry_run is not None:
            return response
        return await self._finished(state, operation, context, state.later)

    async def _finished(
        self, state: RequestState, operation: Write, context: AuditContext, later: Callable[[], Awaitable[Reply]]
    ) -> Response:
        """What the change set going has come to; a repetition is answered the same from then on."""
        with self._idle(state.caller.tenant.org, checked=False):
            response = self._responses.success(state, await later())
        if (key := state.idempotency_key) is not None:
            kept = StoredAnswer(fingerprint(state), response.status, _kept(response.headers), response.body)
            async with self._uow.begin(state.caller.tenant, context) as tx:
                await tx.idempotency.revise(key, self._encrypted(operation, key, kept).body)
        return response

    async def _act_once(self, state: RequestState, operation: Write, tx: Tx, key: str) -> Response:
        stored = await tx.idempotency.hold(key)
        same = fingerprint(state)
        if stored is not None:
            if stored.fingerprint != same:
                raise IdempotencyKeyReused
            return self._responses.replay(state, self._decrypted(operation, key, stored))
        try:
            async with tx.savepoint():
                response = await self._act(state, operation, tx)
        except DomainError as error:
            if not is_stored(error, self._problems.status(error)):
                raise
            state.error_code = error.code
            told = self._absence.worded(state) if isinstance(error, NotFound) else error
            response = self._problems.answer(told, state.request_id)
        kept = StoredAnswer(same, response.status, _kept(response.headers), response.body)
        await tx.idempotency.keep(key, self._encrypted(operation, key, kept))
        return response

    def _encrypted(self, operation: Write, key: str, answer: StoredAnswer) -> StoredAnswer:
        """The answer as it may lie in store: of an operation that tells a secret it is encrypted."""
        if not operation.encrypt_replay:
            return answer
        return replace(answer, body=self._vault.seal({"body": answer.body.decode()}, key))

    def _decrypted(self, operation: Write, key: str, stored: StoredAnswer) -> StoredAnswer:
        if not operation.encrypt_replay:
            return stored
        body: str = self._vault.open(stored.body, key)["body"]
        return replace(stored, body=body.encode())

    async def _act(self, state: RequestState, operation: Write, tx: Tx) -> Response:
        check_ids(state)
        read_preconditions(state)
        reply = await self._handle(state, operation, tx)
        state.later = reply.later
        return (
            self._responses.preview(state, tx.recorded)
            if state.dry_run == "explain"
            else self._responses.success(state, reply)
        )

    async def _handle(self, state: RequestState, operation: Write, tx: Tx) -> Reply:
        """Call the handler; If-Match with several ETags is met when any one of their versions is the present one."""
        handler, versions = operation.handler, state.expected_versions
        for version in versions[:-1] if versions else ():
            try:
                async with tx.savepoint():
                    return await handler(self._writing(state, tx, version))
            except PreconditionFailed:
                continue
        return await handler(self._writing(state, tx, versions[-1] if versions else None))

    def _writing(self, state: RequestState, tx: Tx, version: int | None) -> WriteContext[Any]:
        return WriteContext(*self._shared(state), tx.now, tx, version)

    def _shared(self, state: RequestState) -> tuple[Any, RequestState, Cursors, str]:
        """What every kind of context is made of: its service, the request, and what is the same for all."""
        return self._services[state.operation.area], state, self._cursors, self._base_url


def _kept(headers: HeaderList) -> tuple[tuple[str, str], ...]:
    return tuple((name.decode(), value.decode("latin-1")) for name, value in headers if name in WORTH_REPEATING)


def check_ids(state: RequestState) -> None:
    """Raises NotFound."""
    ids = state.match.ids
    if not ids:
        return
    prefixes = state.operation.ids
    for name, text in ids.items():
        prefix = prefixes.get(name)
        if not (is_id(prefix, text) if prefix is not None else is_word(text)):
            raise NotFound
