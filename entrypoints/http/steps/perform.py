"""The handler in its unit of work: what it did and what is answered commit together, or not at all."""

from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Final, cast

import msgspec

from adapters.wire.cursors import Cursors, FeedCursors
from domain.kernel.errors import DomainError, IdempotencyKeyReused, PreconditionFailed
from domain.kernel.tenancy import Call as Caller
from entrypoints.http.exchange import HeaderList, Response
from entrypoints.http.operation import Call, Reply
from entrypoints.http.pressure import Pressure
from entrypoints.http.problems import Problems
from entrypoints.http.steps.answer import Answers
from entrypoints.http.steps.preconditions import read_preconditions
from entrypoints.http.steps.resource import check_ids
from entrypoints.http.use_cases import UseCases
from entrypoints.http.visit import Visit
from ports.idempotency import StoredAnswer
from ports.secrets import Vault
from ports.unit_of_work import Tx, UnitOfWork

NEVER_STORED: Final = frozenset({400, 401, 403, 429})
WORTH_REPEATING: Final = frozenset({b"content-type", b"location", b"etag", b"service-version", b"retry-after"})
NO_TX: Final = cast("Tx", None)
"""What GETs outside are given: they take no connection that they would hold for nothing."""
_canonical: Final = msgspec.json.Encoder(order="deterministic", decimal_format="number").encode


def fingerprint(visit: Visit) -> bytes:
    """What makes two requests the same: method, path, query and body, however its JSON is spaced or ordered."""
    request = visit.request
    head = f"{request.method} {request.path}?{request.query}\n".encode()
    return blake2b(head + _canonical(visit.body), digest_size=16).digest()


def is_stored(error: DomainError, status: int) -> bool:
    """Whether a refusal is the request's outcome, to be told again, and not a state of affairs that passes."""
    return 400 <= status < 500 and status not in NEVER_STORED and not error.code.startswith("idempotency_")


@dataclass(frozen=True, slots=True)
class Perform:
    """Runs an operation whose request has passed every check that needs no transaction."""

    uow: UnitOfWork
    use: UseCases
    cursors: Cursors
    feed: FeedCursors
    pressure: Pressure
    base_url: str
    answers: Answers
    problems: Problems
    vault: Vault

    async def __call__(self, visit: Visit) -> Response:
        """The answer. Raises DomainError, with nothing done."""
        if visit.operation.outside:
            return await self._outside(visit)
        return await (self._read(visit) if visit.route.reads else self._write(visit))

    async def _read(self, visit: Visit) -> Response:
        check_ids(visit)
        async with self.uow.read(visit.caller.tenant) as tx:
            reply = await visit.operation.handler(self._call(visit, tx, None))
        return self.answers.success(visit, reply)

    async def _outside(self, visit: Visit) -> Response:
        """Read what is needed, let the connection go, then reach out; what only reads finds all it needs out there."""
        check_ids(visit)
        if visit.route.reads:
            return await self._reached(visit, await visit.operation.handler(self._call(visit, NO_TX, None)))
        async with self.uow.read(visit.caller.tenant) as tx:
            tx.dry = visit.dry_run is not None
            reply = await visit.operation.handler(self._call(visit, tx, None))
            if visit.dry_run == "explain":
                return self.answers.preview(visit, tx.recorded)
        return await self._reached(visit, reply)

    async def _reached(self, visit: Visit, reply: Reply) -> Response:
        if reply.later is not None:
            made = await reply.later()
            if isinstance(made, Reply):
                reply = made
            else:
                reply.body = made
        return self.answers.success(visit, reply)

    async def _write(self, visit: Visit) -> Response:
        caller = visit.caller
        call = Caller(caller.actor, visit.operation.id, visit.request_id)
        async with self.uow.begin(caller.tenant, call) as tx:
            tx.dry = visit.dry_run is not None
            if visit.idempotency_key is None or tx.dry:
                return await self._act(visit, tx)
            return await self._act_once(visit, tx, visit.idempotency_key)

    async def _act_once(self, visit: Visit, tx: Tx, key: str) -> Response:
        stored = await tx.idempotency.hold(key)
        same = fingerprint(visit)
        if stored is not None:
            if stored.fingerprint != same:
                raise IdempotencyKeyReused
            return self.answers.replay(visit, self._opened(visit, key, stored))
        try:
            async with self.uow.attempt(tx):
                response = await self._act(visit, tx)
        except DomainError as error:
            if not is_stored(error, self.problems.status(error)):
                raise
            visit.error_code = error.code
            response = self.problems.answer(error, visit.request_id)
        kept = StoredAnswer(same, response.status, _kept(response.headers), response.body)
        await tx.idempotency.keep(key, self._sealed(visit, key, kept))
        return response

    def _sealed(self, visit: Visit, key: str, answer: StoredAnswer) -> StoredAnswer:
        """The answer as it may lie in store: of an operation that tells a secret it is sealed."""
        if not visit.operation.sealed:
            return answer
        return replace(answer, body=self.vault.seal({"body": answer.body.decode()}, key))

    def _opened(self, visit: Visit, key: str, stored: StoredAnswer) -> StoredAnswer:
        if not visit.operation.sealed:
            return stored
        body: str = self.vault.open(stored.body, key)["body"]
        return replace(stored, body=body.encode())

    async def _act(self, visit: Visit, tx: Tx) -> Response:
        check_ids(visit)
        read_preconditions(visit)
        reply = await self._handle(visit, tx)
        return (
            self.answers.preview(visit, tx.recorded)
            if visit.dry_run == "explain"
            else self.answers.success(visit, reply)
        )

    async def _handle(self, visit: Visit, tx: Tx) -> Reply:
        """Call the handler; If-Match with several ETags is met when any one of their versions is the present one."""
        handler, versions = visit.operation.handler, visit.expected_versions
        for version in versions[:-1] if versions else ():
            try:
                async with self.uow.attempt(tx):
                    return await handler(self._call(visit, tx, version))
            except PreconditionFailed:
                continue
        return await handler(self._call(visit, tx, versions[-1] if versions else None))

    def _call(self, visit: Visit, tx: Tx, expected_version: int | None) -> Call:
        cursors = self.cursors
        return Call(
            operation=visit.operation,
            principal=visit.caller,
            tx=tx,
            use=self.use,
            ids=visit.match.ids,
            query=visit.query,
            body=visit.body,
            cut=visit.cut,
            base_url=self.base_url,
            cursor=lambda key: cursors.sign(visit.cursor_context, key),
            feed=self.feed,
            idle=self.pressure.idle,
            expected_version=expected_version,
            version=visit.version,
            request_id=visit.request_id,
            last_event_id=visit.request.headers.get("last-event-id"),
        )


def _kept(headers: HeaderList) -> tuple[tuple[str, str], ...]:
    return tuple((name.decode(), value.decode("latin-1")) for name, value in headers if name in WORTH_REPEATING)
