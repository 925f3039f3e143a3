"""The handler in its unit of work: what it did and what is answered commit together, or not at all."""

from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Final, cast

import msgspec

from adapters.wire.cursors import Cursors, FeedCursors
from domain.kernel.errors import DomainError, IdempotencyKeyReused, PreconditionFailed
from domain.kernel.tenancy import AuditContext
from entrypoints.http.exchange import HeaderList, Response
from entrypoints.http.operation import Reply, RequestContext
from entrypoints.http.pressure import Pressure
from entrypoints.http.problems import Problems
from entrypoints.http.request_state import RequestState
from entrypoints.http.steps.preconditions import read_preconditions
from entrypoints.http.steps.resource import check_ids
from entrypoints.http.steps.respond import ResponseBuilder
from entrypoints.http.use_cases import UseCases
from ports.idempotency import StoredAnswer
from ports.secrets import Vault
from ports.unit_of_work import Tx, UnitOfWork

NEVER_STORED: Final = frozenset({400, 401, 403, 429})
WORTH_REPEATING: Final = frozenset({b"content-type", b"location", b"etag", b"service-version", b"retry-after"})
NO_TX: Final = cast("Tx", None)
"""What GETs outside are given: they take no connection that they would hold for nothing."""
_canonical: Final = msgspec.json.Encoder(order="deterministic", decimal_format="number").encode


def fingerprint(state: RequestState) -> bytes:
    """What makes two requests the same: method, path, query and body, however its JSON is spaced or ordered."""
    request = state.request
    head = f"{request.method} {request.path}?{request.query}\n".encode()
    return blake2b(head + _canonical(state.body), digest_size=16).digest()


def is_stored(error: DomainError, status: int) -> bool:
    """Whether a refusal is the request's outcome, to be told again, and not a state of affairs that passes."""
    return 400 <= status < 500 and status not in NEVER_STORED and not error.code.startswith("idempotency_")


@dataclass(frozen=True, slots=True)
class Execute:
    """Runs an operation whose request has passed every check that needs no transaction."""

    uow: UnitOfWork
    use: UseCases
    cursors: Cursors
    feed: FeedCursors
    pressure: Pressure
    base_url: str
    answers: ResponseBuilder
    problems: Problems
    vault: Vault

    async def __call__(self, state: RequestState) -> Response:
        """The answer. Raises DomainError, with nothing done."""
        if state.operation.outside:
            return await self._outside(state)
        return await (self._read(state) if state.route.reads else self._write(state))

    async def _read(self, state: RequestState) -> Response:
        check_ids(state)
        async with self.uow.read(state.caller.tenant) as tx:
            reply = await state.operation.handler(self._call(state, tx, None))
        return self.answers.success(state, reply)

    async def _outside(self, state: RequestState) -> Response:
        """Read what is needed, let the connection go, then reach out; what only reads finds all it needs out there."""
        check_ids(state)
        if state.route.reads:
            return await self._reached(state, await state.operation.handler(self._call(state, NO_TX, None)))
        async with self.uow.read(state.caller.tenant) as tx:
            tx.dry = state.dry_run is not None
            reply = await state.operation.handler(self._call(state, tx, None))
            if state.dry_run == "explain":
                return self.answers.preview(state, tx.recorded)
        return await self._reached(state, reply)

    async def _reached(self, state: RequestState, reply: Reply) -> Response:
        if reply.later is not None:
            made = await reply.later()
            if isinstance(made, Reply):
                reply = made
            else:
                reply.body = made
        return self.answers.success(state, reply)

    async def _write(self, state: RequestState) -> Response:
        caller = state.caller
        call = AuditContext(caller.actor, state.operation.id, state.request_id)
        async with self.uow.begin(caller.tenant, call) as tx:
            tx.dry = state.dry_run is not None
            if state.idempotency_key is None or tx.dry:
                return await self._act(state, tx)
            return await self._act_once(state, tx, state.idempotency_key)

    async def _act_once(self, state: RequestState, tx: Tx, key: str) -> Response:
        stored = await tx.idempotency.hold(key)
        same = fingerprint(state)
        if stored is not None:
            if stored.fingerprint != same:
                raise IdempotencyKeyReused
            return self.answers.replay(state, self._opened(state, key, stored))
        try:
            async with tx.savepoint():
                response = await self._act(state, tx)
        except DomainError as error:
            if not is_stored(error, self.problems.status(error)):
                raise
            state.error_code = error.code
            response = self.problems.answer(error, state.request_id)
        kept = StoredAnswer(same, response.status, _kept(response.headers), response.body)
        await tx.idempotency.keep(key, self._sealed(state, key, kept))
        return response

    def _sealed(self, state: RequestState, key: str, answer: StoredAnswer) -> StoredAnswer:
        """The answer as it may lie in store: of an operation that tells a secret it is sealed."""
        if not state.operation.sealed:
            return answer
        return replace(answer, body=self.vault.seal({"body": answer.body.decode()}, key))

    def _opened(self, state: RequestState, key: str, stored: StoredAnswer) -> StoredAnswer:
        if not state.operation.sealed:
            return stored
        body: str = self.vault.open(stored.body, key)["body"]
        return replace(stored, body=body.encode())

    async def _act(self, state: RequestState, tx: Tx) -> Response:
        check_ids(state)
        read_preconditions(state)
        reply = await self._handle(state, tx)
        return (
            self.answers.preview(state, tx.recorded)
            if state.dry_run == "explain"
            else self.answers.success(state, reply)
        )

    async def _handle(self, state: RequestState, tx: Tx) -> Reply:
        """Call the handler; If-Match with several ETags is met when any one of their versions is the present one."""
        handler, versions = state.operation.handler, state.expected_versions
        for version in versions[:-1] if versions else ():
            try:
                async with tx.savepoint():
                    return await handler(self._call(state, tx, version))
            except PreconditionFailed:
                continue
        return await handler(self._call(state, tx, versions[-1] if versions else None))

    def _call(self, state: RequestState, tx: Tx, expected_version: int | None) -> RequestContext:
        cursors = self.cursors
        return RequestContext(
            operation=state.operation,
            principal=state.caller,
            tx=tx,
            use=self.use,
            ids=state.match.ids,
            query=state.query,
            body=state.body,
            page_request=state.page_request,
            base_url=self.base_url,
            cursor=lambda key: cursors.sign(state.cursor_context, key),
            feed=self.feed,
            idle=self.pressure.idle,
            expected_version=expected_version,
            version=state.version,
            request_id=state.request_id,
            last_event_id=state.request.headers.get("last-event-id"),
        )


def _kept(headers: HeaderList) -> tuple[tuple[str, str], ...]:
    return tuple((name.decode(), value.decode("latin-1")) for name, value in headers if name in WORTH_REPEATING)
