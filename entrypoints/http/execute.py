"""Execution of operations, with stored responses for repeated requests, and open event streams."""

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

from adapters.api_json.cursors import CursorSigner
from domain.access.model import Principal
from domain.access.usecases import AccessService, StoredCredential
from domain.kernel.concurrency import ConcurrencyLimit
from domain.kernel.errors import DomainError, IdempotencyKeyReused, NotFound, PreconditionFailed
from domain.kernel.ids import is_id
from domain.kernel.json_values import to_json_value
from domain.kernel.paging import PageRequest
from domain.kernel.tenancy import AuditContext
from domain.kernel.versions import Versions
from domain.people.usecases.sessions import ClientInfo
from domain.secrets.ports import Vault
from entrypoints.dependencies import Dependencies
from entrypoints.http.checks import RequestState, read_preconditions
from entrypoints.http.exchange import BODILESS_HEADERS, BODY_HEADERS, STREAM_HEADERS, HeaderList, Response
from entrypoints.http.logs import read_user_agent
from entrypoints.http.pressure import Pressure
from entrypoints.http.problems import NotFoundMessages, ProblemResponses, is_valid_parameter
from entrypoints.http.representations import build_representation_etag, compute_etag, contains_etag, should_compress
from entrypoints.http.tool_calls import AssistantTools
from entrypoints.operations.event_stream import ResponseStream
from entrypoints.operations.operation import (
    PREVIEW_TYPE,
    DetachedContext,
    DetachedRead,
    ExternalCall,
    Operation,
    Read,
    ReadContext,
    Reply,
    StreamContext,
    StreamOperation,
    Write,
    WriteContext,
    check_caller,
)
from entrypoints.settings import Settings
from ports.clock import Clock
from ports.idempotency import IdempotencyStore, StoredResponse
from ports.unit_of_work import RecordedEffects, Tx, UnitOfWork

encode_json = msgspec.json.Encoder(decimal_format="number").encode


class ResponseBuilder:
    """Builder of the responses to successful requests, in the API version of the request."""

    def __init__(self, versions: Versions) -> None:
        self._versions = versions
        self._converted_versions = frozenset(date for date in versions.dates if not versions.has_latest_shape(date))
        self._version_header_by_date = {date: (b"service-version", date.encode()) for date in versions.dates}

    def build_success(self, state: RequestState, reply: Reply) -> Response:
        """Build the response to a successful request from the reply of its handler.

        Status 304 if the client's copy is current.
        """
        request, is_read, status = state.request, state.route.is_read, reply.status or state.operation.status
        if reply.stream is not None:
            state.stream = None if request.method == "HEAD" else reply.stream
            return Response(status, self._build_headers(state, reply, STREAM_HEADERS))
        if reply.body is None:
            return Response(status, self._build_headers(state, reply, BODILESS_HEADERS[is_read]))
        body = reply.body if isinstance(reply.body, bytes) else encode_json(reply.body)
        is_converted = state.version in self._converted_versions
        if is_converted:
            body = encode_json(self._versions.convert(msgspec.json.decode(body), state.version))
        headers = self._build_headers(state, reply, BODY_HEADERS[is_read])
        if is_read or reply.version is not None:
            version_suffix = state.version if is_converted else ""
            if reply.etag_source is not None:
                tag = compute_etag(encode_json(reply.etag_source)) + version_suffix
            else:
                tag = compute_etag(body) if reply.etag is None else f"{reply.etag}{version_suffix}"
            etag = f'"{tag}"' if reply.version is None else f'"{reply.version}-{tag}"'
            client_tags = request.headers.get("if-none-match") if is_read else None
            if client_tags is not None and contains_etag(client_tags, etag):
                client_etag = build_representation_etag(
                    etag, is_compressed=should_compress(request.headers.get("accept-encoding"), len(body))
                )
                return Response(
                    304,
                    [
                        *BODILESS_HEADERS[True],
                        self._version_header_by_date[state.version],
                        (b"etag", client_etag.encode()),
                    ],
                )
            headers.append((b"etag", etag.encode()))
        return Response(status, headers, body)

    def _build_headers(self, state: RequestState, reply: Reply, common_headers: HeaderList) -> HeaderList:
        headers = [*common_headers, self._version_header_by_date[state.version]]
        for name, value in reply.headers.items():
            headers.append((name.lower().encode(), value.encode("latin-1")))
        if state.dry_run is not None:
            headers.append((b"service-dry-run", state.dry_run.encode()))
        return headers

    def build_preview(self, state: RequestState, recorded: RecordedEffects) -> Response:
        """Build the response with the preview of a dry run (docs/conventions.md#dry-run-and-explain)."""
        headers = self._build_headers(state, Reply(), BODILESS_HEADERS[False])
        headers.append((b"content-type", PREVIEW_TYPE))
        return Response(200, headers, encode_json(render_preview(state.operation.id, recorded)))

    def build_replay(self, state: RequestState, stored: StoredResponse, body: bytes) -> Response:
        """Build the response to a repeated request from the stored response and its decrypted body."""
        stored_headers = [(name.encode(), value.encode("latin-1")) for name, value in stored.headers]
        headers = [*BODILESS_HEADERS[False], *stored_headers, (b"idempotent-replayed", b"true")]
        if stored.status >= 400:
            state.error_code = msgspec.json.decode(body).get("code")
        return Response(stored.status, headers, body)


def render_preview(operation: str, recorded: RecordedEffects) -> Mapping[str, Any]:
    """Return the JSON of a preview, which lists the effects that a dry run recorded.

    `operation` is the operation's ID.
    """
    return {
        "object": "preview",
        "operation": operation,
        "allowed": True,
        "changes": [
            {"object": change.object, "id": change.id, "action": change.action, "fields": change.list_changed_fields()}
            for change in recorded.changes
        ],
        "events": [{"type": event.type, "subject": event.subject} for event in recorded.events],
        "jobs": [{"kind": job.kind, "subject": job.lane.partition(":")[2] or job.lane} for job in recorded.jobs],
        "warnings": list(recorded.warnings),
        **to_json_value(recorded.extra_previews),
    }


STREAM_LIFETIME_SECONDS = (3_300.0, 3_600.0)
"""Minimum and maximum seconds of a stream's random lifetime, so that clients do not reconnect all at once."""
CREDENTIAL_CHECK_SECONDS = 0.75
"""Seconds between two checks of the credentials of all open streams."""

LOG = logging.getLogger("joinery.http")


@dataclass(frozen=True, slots=True, eq=False)
class _OpenStream:
    """Open event stream, with the data for repeated checks of the caller's permission.

    Attributes:
        credential: The digest of the credential; empty if the application that authenticated the caller also makes the
            checks.
        address: The client's IP address.
        until: The end of the stream's lifetime, in the event loop's time.
    """

    stream: ResponseStream
    operation: Operation
    credential: bytes
    address: str
    until: float


class OpenStreams:
    """Registry of open event streams.

    A stream is ended when its lifetime is over or its caller has lost permission.
    """

    def __init__(
        self,
        access: AccessService,
        clock: Clock,
        waiters: ConcurrencyLimit,
        period: float = CREDENTIAL_CHECK_SECONDS,
        lifetime: tuple[float, float] = STREAM_LIFETIME_SECONDS,
    ) -> None:
        self._access, self._clock, self._period, self._lifetime = access, clock, period, lifetime
        self._waiters = waiters
        self._open_streams: set[_OpenStream] = set()
        self._credential_by_digest: Mapping[bytes, StoredCredential] = {}
        self._check_task: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        """Return the number of open streams."""
        return len(self._open_streams)

    async def iterate_chunks(self, state: RequestState, stream: ResponseStream) -> AsyncGenerator[bytes, None]:
        """Yield the chunks of the stream, which is registered and checked until it ends."""
        until = asyncio.get_running_loop().time() + random.uniform(*self._lifetime)  # noqa: S311  spreads load
        entry = _OpenStream(stream, state.operation, state.credential_digest, state.address, until)
        self._open_streams.add(entry)
        if self._check_task is None or self._check_task.done():
            self._check_task = asyncio.create_task(self._check_streams(), name="open-streams")
        try:
            with self._waiters.immediate_slot(state.caller.tenant.org, is_checked=False):
                async with aclosing(stream.iter_chunks()) as chunks:
                    async for chunk in chunks:
                        yield chunk
        finally:
            self._open_streams.discard(entry)

    async def _check_streams(self) -> None:
        # One statement checks all credentials.
        while self._open_streams:
            await asyncio.sleep(self._period)
            entries = set(self._open_streams)
            try:
                self._credential_by_digest = await self._access.find_all(
                    {entry.credential for entry in entries if entry.credential}
                )
            except Exception as error:
                LOG.warning("credentials of open streams not checked: %r", error)
                entries = {entry for entry in entries if entry.credential in self._credential_by_digest}
            for entry in entries:
                if asyncio.get_running_loop().time() >= entry.until:
                    entry.stream.end("lifetime")
                elif entry.credential:
                    self._check_permission(entry)

    def _check_permission(self, entry: _OpenStream) -> None:
        try:
            stored_credential = self._credential_by_digest.get(entry.credential)
            check_caller(entry.operation, self._access.verify(stored_credential, entry.address, self._clock.now()))
        except DomainError:
            entry.stream.end("credential")


_SharedArguments = tuple[
    Any, Principal, Mapping[str, str], Mapping[str, Any], PageRequest, str, bytes, CursorSigner, str
]
MAX_EXCLUSIVE_REQUESTS = 2
"""Maximum concurrent requests of compute-intensive operations (`Operation.is_exclusive`) in a process."""
UNSTORED_STATUSES = frozenset({400, 401, 403, 429})
"""Statuses of error responses that are not stored for repeated requests."""
STORED_HEADERS = frozenset({b"content-type", b"location", b"etag", b"service-version", b"retry-after"})
"""Headers of a response that are stored for repeated requests."""
_encode_canonically = msgspec.json.Encoder(order="deterministic", decimal_format="number").encode


def compute_fingerprint(state: RequestState) -> bytes:
    """Return a digest of method, path, query and body, which is equal for repetitions of a request."""
    request = state.request
    head = f"{request.method} {request.path}?{request.query}\n".encode()
    return blake2b(head + _encode_canonically(state.body), digest_size=16).digest()


def is_error_stored(error: DomainError, status: int) -> bool:
    """Return whether an error response is stored for repeated requests, because a retry would have the same outcome."""
    return 400 <= status < 500 and status not in UNSTORED_STATUSES and not error.code.startswith("idempotency_")


class OperationExecutor:
    """Executor of operations, for requests that have passed all checks that need no transaction."""

    def __init__(
        self,
        dependencies: Dependencies,
        services: Mapping[str, Any],
        cursors: CursorSigner,
        waiters: ConcurrencyLimit,
        pressure: Pressure,
        responses: ResponseBuilder,
        problems: ProblemResponses,
        absence: NotFoundMessages,
        tools: AssistantTools,
    ) -> None:
        self._uow, self._vault, self._clock = dependencies[UnitOfWork], dependencies[Vault], dependencies[Clock]
        self._base_url, self._services = dependencies[Settings].base_url, services
        self._cursors, self._waiters, self._responses, self._problems = cursors, waiters, responses, problems
        self._not_found_messages, self._pressure, self._tools = absence, pressure, tools
        self._exclusive_limit = ConcurrencyLimit(MAX_EXCLUSIVE_REQUESTS, 1)
        self._execute_by_type: Mapping[type[Operation], Callable[[RequestState, Any], Awaitable[Response]]] = {
            Read: self._execute_read,
            Write: self._execute_write,
            DetachedRead: self._execute_detached_read,
            ExternalCall: self._execute_external_call,
            StreamOperation: self._execute_stream,
        }

    async def __call__(self, state: RequestState) -> Response:
        """Execute the operation of the request; return the response.

        Raises the DomainError of a handler unless the error response is stored for the idempotency key.
        """
        operation, org = state.operation, state.caller.tenant.org
        execute = self._execute_by_type[type(operation)]
        if state.match.ids and not isinstance(operation, Write):
            check_ids(state)
        if not operation.is_exclusive:
            return await execute(state, operation)
        async with AsyncExitStack() as stack:
            with self._count_as_waiting(org):
                await stack.enter_async_context(self._exclusive_limit.slot(org))
            return await execute(state, operation)

    async def _execute_detached_read(self, state: RequestState, operation: DetachedRead) -> Response:
        count_as_waiting = partial(self._count_as_waiting, state.caller.tenant.org)
        context = DetachedContext(*self._build_context_arguments(state), self._clock.now(), count_as_waiting)
        return self._responses.build_success(state, await operation.handler(context))

    async def _execute_stream(self, state: RequestState, operation: StreamOperation) -> Response:
        self._waiters.check(state.caller.tenant.org)
        context = StreamContext(
            *self._build_context_arguments(state),
            self._clock.now(),
            state.request.headers.get("last-event-id"),
            state.command,
            self._build_audit_context(state),
            state.idempotency_key or "",
            compute_fingerprint(state),
            state.dry_run is not None,
            self._tools.manifest,
            partial(self._tools.call, state),
        )
        reply = await operation.handler(context)
        if state.dry_run == "explain":
            return self._responses.build_preview(state, RecordedEffects())
        return self._responses.build_success(state, reply)

    @contextmanager
    def _count_as_waiting(self, org: str, *, is_limited: bool = True) -> Iterator[None]:
        """Count the request as waiting instead of in flight, for the duration of the context.

        Raises RateLimited if `is_limited` is true and the organisation has too many waiting requests.
        """
        with self._waiters.immediate_slot(org, is_checked=is_limited), self._pressure.count_as_waiting():
            yield

    async def _execute_read(self, state: RequestState, operation: Read) -> Response:
        async with self._uow.begin_reading(state.caller.tenant) as tx:
            reply = await operation.handler(ReadContext(*self._build_context_arguments(state), tx.now, tx))
        if reply.complete_later is not None:
            reply = await reply.complete_later()
        return self._responses.build_success(state, reply)

    async def _execute_external_call(self, state: RequestState, operation: ExternalCall) -> Response:
        """Call the handler in a transaction and, after the transaction, the function that the handler returned."""
        key = state.idempotency_key if state.dry_run is None else None
        context = self._build_audit_context(state)
        if key is not None:
            async with self._uow.begin(state.caller.tenant, context) as tx:
                if (replay := await self._find_replay(state, operation, tx, key)) is not None:
                    return replay
        try:
            async with self._uow.begin_reading(state.caller.tenant) as tx:
                tx.is_dry_run = state.dry_run is not None
                outcome = await operation.handler(self._build_write_context(state, tx, None))
                if state.dry_run == "explain":
                    return self._responses.build_preview(state, tx.recorded)
            reply = outcome if isinstance(outcome, Reply) else await outcome()
            response = self._responses.build_success(state, reply)
        except DomainError as error:
            if key is None:
                raise
            response = self._build_stored_error(state, error)
        if key is not None:
            async with self._uow.begin(state.caller.tenant, context) as tx:
                replay = await self._find_replay(state, operation, tx, key)
                if replay is not None and (replay.status < 400 or response.status >= 400):
                    return replay
                state.error_code = None if response.status < 400 else state.error_code
                # a concurrent request with this key may have failed because this one was in progress
                await self._store_response(state, operation, tx, key, response)
        return response

    async def _execute_write(self, state: RequestState, operation: Write) -> Response:
        caller = state.caller
        context = self._build_audit_context(state)
        async with self._uow.begin(caller.tenant, context) as tx:
            tx.is_dry_run = state.dry_run is not None
            if state.idempotency_key is None or tx.is_dry_run:
                response = await self._run_handler(state, operation, tx)
            else:
                response = await self._run_handler_once(state, operation, tx, state.idempotency_key)
        if state.complete_later is None or state.dry_run is not None:
            return response
        return await self._complete_later(state, operation, context, state.complete_later)

    async def _complete_later(
        self,
        state: RequestState,
        operation: Write,
        context: AuditContext,
        complete_later: Callable[[], Awaitable[Reply]],
    ) -> Response:
        """Await `complete_later`, which waits for effects of the change.

        Return the final response, and store it for repetitions.
        """
        with self._count_as_waiting(state.caller.tenant.org, is_limited=False):
            response = self._responses.build_success(state, await complete_later())
        if (key := state.idempotency_key) is not None:
            async with self._uow.begin(state.caller.tenant, context) as tx:
                await tx[IdempotencyStore].replace_body(key, self._encrypt(operation, key, response.body))
        return response

    async def _run_handler_once(self, state: RequestState, operation: Write, tx: Tx, key: str) -> Response:
        if (replay := await self._find_replay(state, operation, tx, key)) is not None:
            return replay
        try:
            async with tx.savepoint():
                response = await self._run_handler(state, operation, tx)
        except DomainError as error:
            response = self._build_stored_error(state, error)
        await self._store_response(state, operation, tx, key, response)
        return response

    async def _find_replay(self, state: RequestState, operation: Operation, tx: Tx, key: str) -> Response | None:
        """Lock the key until the transaction ends, and return the stored response; None if there is none.

        Raises IdempotencyKeyReused if the key belongs to another request.
        """
        stored = await tx[IdempotencyStore].lock(key)
        if stored is None:
            return None
        if stored.fingerprint != compute_fingerprint(state):
            raise IdempotencyKeyReused
        return self._responses.build_replay(state, stored, self._decrypt(operation, key, stored.body))

    def _build_stored_error(self, state: RequestState, error: DomainError) -> Response:
        """Return the response for an error that is stored for repeated requests; raise other errors again."""
        if not is_error_stored(error, self._problems.get_status(error)):
            raise error
        state.error_code = error.code
        error = self._not_found_messages.build_error(state) if isinstance(error, NotFound) else error
        return self._problems.respond(error, state.request_id)

    async def _store_response(
        self, state: RequestState, operation: Operation, tx: Tx, key: str, response: Response
    ) -> None:
        headers = tuple(
            (name.decode(), value.decode("latin-1")) for name, value in response.headers if name in STORED_HEADERS
        )
        body = self._encrypt(operation, key, response.body)
        await tx[IdempotencyStore].store(
            key, StoredResponse(compute_fingerprint(state), response.status, headers, body)
        )

    def _build_audit_context(self, state: RequestState) -> AuditContext:
        operation = state.operation
        return AuditContext(state.caller.actor, operation.id, state.request_id, operation.is_reversible)

    def _encrypt(self, operation: Operation, key: str, body: bytes) -> bytes:
        """Return the body for storage; if the operation returns a secret, encrypted for the idempotency key `key`."""
        return self._vault.encrypt({"body": body.decode()}, key) if operation.encrypts_replay else body

    def _decrypt(self, operation: Operation, key: str, body: bytes) -> bytes:
        return str(self._vault.decrypt(body, key)["body"]).encode() if operation.encrypts_replay else body

    async def _run_handler(self, state: RequestState, operation: Write, tx: Tx) -> Response:
        check_ids(state)
        read_preconditions(state)
        reply = await self._call_handler(state, operation, tx)
        state.complete_later = reply.complete_later
        return (
            self._responses.build_preview(state, tx.recorded)
            if state.dry_run == "explain"
            else self._responses.build_success(state, reply)
        )

    async def _call_handler(self, state: RequestState, operation: Write, tx: Tx) -> Reply:
        """Call the handler with each version in If-Match until one is the current version; return the reply.

        Raises PreconditionFailed if no version is current. Without versions, the handler is called once.
        """
        handler, versions = operation.handler, state.expected_versions
        for version in versions[:-1] if versions else ():
            try:
                async with tx.savepoint():
                    return await handler(self._build_write_context(state, tx, version))
            except PreconditionFailed:
                continue
        return await handler(self._build_write_context(state, tx, versions[-1] if versions else None))

    def _build_write_context(self, state: RequestState, tx: Tx, version: int | None) -> WriteContext[Any]:
        client = ClientInfo(state.address, read_user_agent(state.request.headers) or "")
        return WriteContext(
            *self._build_context_arguments(state),
            tx.now,
            tx,
            version,
            state.command,
            client,
            self._build_audit_context(state),
            f"{state.caller.tenant.org}:{blake2b((state.idempotency_key or state.request_id).encode(), digest_size=16).hexdigest()}",
        )

    def _build_context_arguments(self, state: RequestState) -> _SharedArguments:
        """Return the arguments that the contexts of all types of operations have in common, in order."""
        service, page = self._services[state.operation.area], (state.page_request, state.version, state.cursor_context)
        return service, state.caller, state.match.ids, state.query, *page, self._cursors, self._base_url


def check_ids(state: RequestState) -> None:
    """Check the IDs in the path. Raises NotFound if an ID is malformed or belongs to another type of resource."""
    prefixes = state.operation.ids
    for name, text in state.match.ids.items():
        prefix = prefixes.get(name)
        if not (is_id(prefix, text) if prefix is not None else is_valid_parameter(text)):
            raise NotFound
