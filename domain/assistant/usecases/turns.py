"""Turns: claimed in a transaction, run in a task of one process, and sent to clients from a log of frames.

A turn continues if its client disconnects. A request that is repeated with the same Idempotency-Key receives the frames of the
turn from the beginning, also from another process. If the process of a turn ends, a repeated request runs the turn again: reads
are repeated, and approved changes return their stored results, because each has its own idempotency key.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from hashlib import blake2b
from typing import Any, Final

from domain.access.model import Principal
from domain.agents.model import AgentTool
from domain.agents.usecases.tools import ToolManifest
from domain.assistant.instructions import build_instructions
from domain.assistant.model import (
    APPROVAL_PERIOD,
    MAX_HISTORY_BYTES,
    MAX_TITLE_CHARS,
    ApprovalDecision,
    AssistantPreferences,
    AssistantSettings,
    Conversation,
    PendingCall,
    Turn,
    TurnInput,
    build_answer_id,
)
from domain.assistant.ports import (
    AssistantEngine,
    AssistantUpkeep,
    CallTool,
    ChunkPosition,
    Frame,
    MemoryStore,
    ToolResult,
    TurnOutcome,
    TurnRequest,
    TurnStore,
)
from domain.assistant.usecases.budget import AssistantBudget
from domain.assistant.usecases.conversations import ConversationService, require_person
from domain.kernel.concurrency import ConcurrencyLimit
from domain.kernel.errors import Conflict, IdempotencyKeyReused, Unavailable, Unprocessable
from domain.kernel.resource import with_changes
from domain.kernel.tenancy import Actor, AuditContext, Tenant
from domain.platform.model import ComponentState
from domain.usage.model import ModelUse
from ports.clock import Clock
from ports.idempotency import IdempotencyStore, StoredResponse
from ports.language_models import ModelUsage
from ports.unit_of_work import Tx, UnitOfWork

_LOG = logging.getLogger("joinery.assistant")
ALIVE_PERIOD = timedelta(seconds=15)
"""Time after which a turn whose process does not extend it is considered interrupted."""
FLUSH_SECONDS = 0.5
"""Seconds between two writes of new frames, and between two reads of a turn that another process runs."""
HEARTBEAT_SECONDS = 15.0
MAX_CHUNK_BYTES = 64 * 1024
"""Maximum bytes of a chunk of several frames, so that a client that reads slowly occupies little memory."""
FINAL_CHUNK = 1 << 30
"""Number of the chunk with the frames that end a turn; it is stored together with the state of the conversation."""
MAX_TURNS, MAX_ORG_TURNS = 256, 16
"""Maximum number of turns in progress in a process, and of one organisation in it."""
HEALTH_PERIOD = timedelta(minutes=10)
MIN_FAILURES = 5
"""Minimum number of failed turns in HEALTH_PERIOD for the assistant to count as degraded or down."""
_HEARTBEAT = b": keep-alive\n\n"
FIRST_POSITION: Final[ChunkPosition] = (0, -1)
"""Position before all chunks."""
_SHUTDOWN = AuditContext(Actor("service", "api"), "assistant.close")
_EXPIRED = "The request for approval has expired. The audit log shows whether the change was made."
_NO_MODEL = "The assistant has no language model. The operator can set one with JOINERY_MODELS."


@dataclass(frozen=True, slots=True)
class TurnCaller:
    """Caller of a turn.

    Attributes:
        principal: The person's credential.
        tools: The tools for agents.
        call_tool: Calls a tool as the assistant, for the person.
        context: The request, for transactions.
    """

    principal: Principal
    tools: ToolManifest
    call_tool: CallTool
    context: AuditContext

    @property
    def tenant(self) -> Tenant:
        """The tenant of the credential."""
        return self.principal.tenant


def create_assistant_principal(caller: Principal, conversation: str) -> Principal:
    """Return the identity under which tools are called: the caller's permissions, with the conversation as the actor."""
    actor = Actor("agent", conversation, require_person(caller))
    return replace(caller, actor=actor, via="assistant", is_personal_token=True, is_console_session=False)


@dataclass(slots=True)
class _TurnLog:
    """Frames of a turn that this process runs, in memory for its clients and for the next write.

    Attributes:
        is_stored: Whether the end of the turn was stored.
        is_complete: Whether no further frames follow.
    """

    turn: Turn
    frames: list[bytes] = field(default_factory=list)
    final_frames: list[bytes] = field(default_factory=list)
    is_stored: bool = False
    is_complete: bool = False
    stored_count: int = 0
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    stopping: asyncio.Event = field(default_factory=asyncio.Event)

    def add(self, frame: Frame) -> None:
        """Add a frame; final frames are not sent before the end of the turn is stored."""
        (self.final_frames if frame.is_final or self.final_frames else self.frames).append(frame.data)
        self._notify()

    def complete(self) -> None:
        """End the streams of the clients; with the final frames if the end of the turn was stored."""
        if self.is_stored:
            self.frames += self.final_frames
        self.is_complete = True
        self._notify()

    def _notify(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()


@dataclass(frozen=True, slots=True)
class _Host:
    """Implementation of TurnHost with the use cases of the assistant."""

    service: "TurnService"
    caller: TurnCaller
    conversation: Conversation
    settings: AssistantSettings
    preferences: AssistantPreferences
    tools: Sequence[AgentTool]
    stopping: asyncio.Event

    async def read(self, tool: AgentTool, arguments: Mapping[str, Any]) -> ToolResult:
        return await self.caller.call_tool(tool, arguments, None, None)

    async def preview(self, call_id: str, tool: AgentTool, arguments: Mapping[str, Any]) -> ToolResult | PendingCall:
        result = await self.caller.call_tool(tool, arguments, _build_key(self.conversation.id, call_id), "explain")
        if result.is_error:
            return result
        return PendingCall(call_id, tool.operation, tool.name, arguments, result.body, self.service.clock.now())

    async def execute(self, call_id: str, tool: AgentTool, arguments: Mapping[str, Any]) -> ToolResult:
        return await self.caller.call_tool(tool, arguments, _build_key(self.conversation.id, call_id), None)

    async def reserve(self, usage: ModelUsage) -> ModelUse:
        async with self.service.uow.begin(self.caller.tenant, self.caller.context) as tx:
            return await self.service.budget.reserve(
                tx, self.conversation.person, self.settings, self.preferences, usage, self.conversation.id
            )

    async def settle(self, use: ModelUse, usage: ModelUsage | None) -> None:
        async with self.service.uow.begin(self.caller.tenant, self.caller.context) as tx:
            await self.service.budget.settle(tx, self.conversation.person, use, usage)


def _split_frames(frames: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    """Yield the frames in groups of at most MAX_CHUNK_BYTES; a larger frame is a group of its own."""
    start = size = 0
    for position, frame in enumerate(frames):
        if position > start and size + len(frame) > MAX_CHUNK_BYTES:
            yield frames[start:position]
            start, size = position, 0
        size += len(frame)
    if frames:
        yield frames[start:]


def _build_key(conversation: str, call_id: str) -> str:
    """Return the idempotency key of a tool call."""
    return f"assistant-{blake2b(f'{conversation}:{call_id}'.encode(), digest_size=20).hexdigest()}"


def _mark_attempted(call: PendingCall, approval: ApprovalDecision | None) -> PendingCall:
    """Return the call with the arguments with which it is executed, if it is approved."""
    if approval is None:
        return call
    return replace(call, attempted=True, arguments=call.arguments if approval.arguments is None else approval.arguments)


async def _require_new_message(tx: Tx, conversation: str, turn_input: TurnInput) -> None:
    """Raise Unprocessable if the conversation has a message with this ID: frames and messages are found by it."""
    message = turn_input.message
    if message is not None and await tx[TurnStore].has_answer(conversation, build_answer_id(message.id)):
        raise Unprocessable.for_field(
            "message.id",
            "duplicate",
            "The conversation has a message with this ID. Send a new message with another ID.",
        )


class TurnInterrupted(Exception):
    """The process of a turn has ended, or its end could not be stored. The client is disconnected, and can repeat the request."""


class TurnStream:
    """Response to the request of a turn: its frames, which may be sent while the turn runs."""

    def __init__(self, service: "TurnService", tenant: Tenant, turn: Turn, *, is_replay: bool) -> None:
        self._service, self._tenant, self._turn, self.is_replay = service, tenant, turn, is_replay
        self._is_ended = False

    def end(self, reason: str) -> None:
        """End the stream; the turn is stopped if the credential is no longer valid."""
        self._is_ended = True
        if reason == "credential":
            self._service.stop_locally(self._tenant, self._turn)

    async def iter_chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the frames.

        The stream of a repeated request begins with the frames of earlier turns of the same message, because the client
        builds the whole message again. Raises TurnInterrupted.
        """
        service, tenant, turn = self._service, self._tenant, self._turn
        log = service.find_log(tenant, turn)
        if log is not None and self.is_replay:
            async for _, data in service.iter_stored_chunks(tenant, turn, turn.number - 1):
                yield data
        async with contextlib.aclosing(self._follow_store() if log is None else self._follow_log(log)) as chunks:
            async for data in chunks:
                yield data

    async def _follow_log(self, log: _TurnLog) -> AsyncGenerator[bytes, None]:
        """Yield the frames of a turn that this process runs."""
        position = 0
        while not self._is_ended:
            frames, changed, is_complete = log.frames[position:], log.changed, log.is_complete
            if frames:
                for group in _split_frames(frames):
                    yield b"".join(group)
                position += len(frames)
            elif is_complete:
                if not log.is_stored:
                    raise TurnInterrupted
                return
            else:
                try:
                    async with asyncio.timeout(HEARTBEAT_SECONDS):
                        await changed.wait()
                except TimeoutError:
                    yield _HEARTBEAT

    async def _follow_store(self) -> AsyncGenerator[bytes, None]:
        """Yield the frames of a turn that has ended, or that another process runs, until another attempt replaces it."""
        service, tenant, turn = self._service, self._tenant, self._turn
        position, silent_seconds = FIRST_POSITION, 0.0
        while not self._is_ended:
            stored = await service.find_attempt(tenant, turn)
            is_running = stored is not None and stored.is_running(service.clock.now())
            async for newest, data in service.iter_stored_chunks(tenant, turn, turn.number, position):
                yield data
                position, silent_seconds = newest, 0.0
            if not is_running:
                if stored is None or stored.ended_at is None:
                    raise TurnInterrupted
                return
            if silent_seconds >= HEARTBEAT_SECONDS:
                yield _HEARTBEAT
                silent_seconds = 0.0
            await asyncio.sleep(FLUSH_SECONDS)
            silent_seconds += FLUSH_SECONDS


class TurnService:
    """Use cases of turns.

    Args:
        uow: Begins transactions.
        clock: The clock.
        engine: Runs turns with a language model; None if no model is configured.
        budget: Pays for requests to models.
        conversations: Conversations and settings.
    """

    def __init__(
        self,
        uow: UnitOfWork,
        clock: Clock,
        engine: AssistantEngine | None,
        budget: AssistantBudget,
        conversations: ConversationService,
    ) -> None:
        self.uow, self.clock, self.budget, self._engine = uow, clock, budget, engine
        self.conversations = conversations
        self._logs: dict[tuple[Tenant, str, int], _TurnLog] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._limit = ConcurrencyLimit(MAX_TURNS, MAX_ORG_TURNS, noun="turns of the assistant in progress")

    def find_log(self, tenant: Tenant, turn: Turn) -> _TurnLog | None:
        """Return the log of a turn that this process runs, or None."""
        return self._logs.get((tenant, turn.conversation, turn.number))

    def stop_locally(self, tenant: Tenant, turn: Turn) -> None:
        """Stop a turn if this process runs it."""
        if (log := self.find_log(tenant, turn)) is not None:
            log.stopping.set()

    async def iter_stored_chunks(
        self, tenant: Tenant, turn: Turn, until: int, after: ChunkPosition = FIRST_POSITION
    ) -> AsyncGenerator[tuple[ChunkPosition, bytes], None]:
        """Yield the stored chunks of the turn's message after a position, of turns up to the number `until`."""
        while True:
            async with self.uow.begin_reading(tenant) as tx:
                chunks = await tx[TurnStore].list_chunks(turn, until, after)
            for chunk in chunks:
                yield chunk
            if not chunks:
                return
            after, _ = chunks[-1]

    async def find_attempt(self, tenant: Tenant, turn: Turn) -> Turn | None:
        """Return the present state of a turn; None if another attempt has replaced this one."""
        async with self.uow.begin_reading(tenant) as tx:
            stored = await tx[TurnStore].find(turn.conversation, turn.request_key)
        return stored if stored is not None and stored.attempt == turn.attempt else None

    def prepare(self, settings: AssistantSettings) -> None:
        """Load in the background what turns need, so that the first turn of the process need not wait."""
        if self._engine is not None and self._engine.is_available(settings.model):
            self._start_task(self._engine.prepare(settings.model), "assistant preparation")

    def _start_task(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """Start a task, which `close` cancels if it has not ended."""
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def render_messages(self, conversation: Conversation) -> Sequence[Any]:
        """Return the messages of a conversation in the format of the AI SDK."""
        return (
            []
            if self._engine is None
            else await self._engine.render_messages(conversation.history, conversation.pending)
        )

    async def stop(self, caller: TurnCaller, id: str) -> None:
        """Stop the running turn of a conversation, wherever it runs. Raises NotFound; Conflict if none is running."""
        async with self.uow.begin(caller.tenant, caller.context) as tx:
            await self.conversations.get(tx, require_person(caller.principal), id, lock=True)
            turn = await tx[TurnStore].get_newest(id)
            if turn is None or not turn.is_running(tx.now):
                raise Conflict("No turn of this conversation is running.")
            await tx[TurnStore].save(replace(turn, is_stopping=True))
        self.stop_locally(caller.tenant, turn)

    async def check(self, caller: TurnCaller, id: str, turn_input: TurnInput | None) -> None:
        """Raise the errors of `start`, without starting a turn."""
        async with self.uow.begin_scratch(caller.tenant, caller.context) as tx:
            conversation = await self.conversations.get(tx, require_person(caller.principal), id)
            if turn_input is not None:
                await _require_new_message(tx, id, turn_input)
                await self._check_access(tx, caller, conversation)
                await self._decide(tx, conversation, turn_input)

    async def start(
        self, caller: TurnCaller, id: str, turn_input: TurnInput, request_key: str, fingerprint: bytes
    ) -> TurnStream:
        """Start a turn, or continue that of a repeated request; return its stream.

        Raises:
            NotFound: The person has no such conversation.
            Conflict: Another turn is running, or calls wait for approval.
            Unprocessable: The decisions do not concern all pending calls, or the conversation has a message with this ID.
            IdempotencyKeyReused: The key belongs to another request.
            PermissionDenied: The person may not use the assistant.
            AiBudgetReached, QuotaExceeded: Nothing can be spent.
            RateLimited: Too many turns are in progress.
            Unavailable: No model is configured.
        """
        with contextlib.ExitStack() as stack:
            async with self.uow.begin(caller.tenant, caller.context) as tx:
                conversation = await self.conversations.get(tx, require_person(caller.principal), id, lock=True)
                repeated = await tx[TurnStore].find(id, request_key)
                if repeated is not None and repeated.fingerprint != fingerprint:
                    raise IdempotencyKeyReused
                if repeated is not None and (repeated.ended_at or repeated.is_running(tx.now)):
                    return TurnStream(self, caller.tenant, repeated, is_replay=True)
                stack.enter_context(self._limit.immediate_slot(caller.tenant.org))
                newest = await tx[TurnStore].get_newest(id)
                if newest is not None and newest.is_running(tx.now):
                    raise Conflict("A turn of this conversation is running. Wait until it ends, or stop it.")
                if repeated is not None and newest is not None and newest.number != repeated.number:
                    raise Conflict("The turn was interrupted, and the conversation has continued. Send a new message.")
                if repeated is None:
                    await _require_new_message(tx, id, turn_input)
                turn_input = repeated.input if repeated else turn_input
                host, request = await self._prepare(tx, caller, conversation, turn_input, newest)
                if repeated is not None and repeated.is_stopping:
                    host.stopping.set()
                turn = Turn(
                    conversation=id,
                    number=repeated.number if repeated else (newest.number if newest else 0) + 1,
                    request_key=request_key,
                    fingerprint=fingerprint,
                    input=turn_input,
                    answer=repeated.answer if repeated else request.answer,
                    attempt=repeated.attempt + 1 if repeated else 1,
                    alive_until=tx.now + ALIVE_PERIOD,
                    is_stopping=host.stopping.is_set(),
                )
                await tx[TurnStore].delete_chunks(turn)
                await tx[TurnStore].save(turn)
            log = _TurnLog(turn, stopping=host.stopping)
            self._logs[caller.tenant, id, turn.number] = log
            self._start_task(self._run(host, request, log, stack.pop_all()), "assistant turn")
        return TurnStream(self, caller.tenant, turn, is_replay=repeated is not None)

    async def _check_access(
        self, tx: Tx, caller: TurnCaller, conversation: Conversation
    ) -> tuple[AssistantSettings, AssistantPreferences]:
        settings, preferences = await self.conversations.check_access(tx, conversation.person, caller.principal.role)
        if self._engine is None or not self._engine.is_available(settings.model):
            raise Unavailable(_NO_MODEL, retry_after=60)
        await self.budget.require_budget(tx, conversation.person, settings, preferences)
        return settings, preferences

    async def _prepare(
        self, tx: Tx, caller: TurnCaller, conversation: Conversation, turn_input: TurnInput, newest: Turn | None
    ) -> tuple[_Host, TurnRequest]:
        """Validate the input, mark the approved calls as attempted, and return the host and the request of the turn."""
        settings, preferences = await self._check_access(tx, caller, conversation)
        if len(conversation.history) > MAX_HISTORY_BYTES and turn_input.message is not None:
            raise Conflict("The conversation is too long. Start a new one.")
        decisions = await self._decide(tx, conversation, turn_input)
        approved = {decision.id: decision for decision in decisions if decision.approve}
        message, title = turn_input.message, conversation.title
        if message is not None and title is None:
            title = " ".join(message.text.split())[:MAX_TITLE_CHARS] or None
        pending = tuple(_mark_attempted(call, approved.get(call.id)) for call in conversation.pending)
        conversation = with_changes(
            conversation, tx.now, title=title, pending=pending, last_turn_at=tx.now, active_at=tx.now
        )
        await tx.store(Conversation).save(conversation)
        memories = await tx[MemoryStore].list_usable(conversation.person) if preferences.memory_enabled else ()
        tools = caller.tools.list_permitted(caller.principal.scopes)
        host = _Host(self, caller, conversation, settings, preferences, tools, asyncio.Event())
        request = TurnRequest(
            conversation=conversation.id,
            model=settings.model,
            instructions=build_instructions(conversation, memories),
            history=conversation.history,
            pending=pending,
            message=message,
            decisions=decisions,
            answer=build_answer_id(message.id) if message else (newest.answer if newest else "answer"),
        )
        return host, request

    async def _decide(self, tx: Tx, conversation: Conversation, turn_input: TurnInput) -> Sequence[ApprovalDecision]:
        """Return the effective decisions on the pending calls. A message rejects them.

        If a call was executed before, the decision becomes the former approval, so that the model receives the stored result. A
        rejected call that may have been started is locked, so that it cannot be executed any more.
        """
        given = {decision.id: decision for decision in turn_input.decisions}
        pending = {call.id: call for call in conversation.pending}
        if turn_input.message is not None:
            if any(call.attempted for call in pending.values()):
                raise Conflict("Approved changes were interrupted. Send the decisions about them again.")
            return ()
        if not pending:
            raise Conflict("No call waits for approval.")
        if given.keys() != pending.keys() or len(given) != len(turn_input.decisions):
            listed = ", ".join(pending)
            raise Unprocessable.for_field(
                "approvals", "invalid_value", f"Decide on every pending approval, and on no other: {listed}."
            )
        decisions = []
        for call in pending.values():
            decision = given[call.id]
            if call.requested_at + APPROVAL_PERIOD < tx.now:
                decision = ApprovalDecision(call.id, approve=False, reason=_EXPIRED)
            elif call.attempted:
                key = _build_key(conversation.id, call.id)
                if await tx[IdempotencyStore].lock(key) is not None:
                    decision = ApprovalDecision(call.id, approve=True)
                elif not decision.approve:
                    await tx[IdempotencyStore].store(key, StoredResponse(b"", 409, (), b"{}"))
            decisions.append(decision)
        return decisions

    async def _run(self, host: _Host, request: TurnRequest, log: _TurnLog, stack: contextlib.ExitStack) -> None:
        """Run the turn, while a second task stores its frames; then store the conversation, and release the final frames."""
        assert self._engine is not None
        outcome = TurnOutcome(request.history, request.pending)
        with stack:
            try:
                async with asyncio.TaskGroup() as group:
                    writer = group.create_task(self._write_frames(host.caller, log))
                    async with contextlib.aclosing(self._engine.run_turn(request, host, outcome)) as frames:
                        async for frame in frames:
                            log.add(frame)
                    writer.cancel()
                await self._finish(host, log, outcome)
                log.is_stored = True
            except* _TurnLost:
                _LOG.warning("turn continued by another process", extra={"conversation": log.turn.conversation})
            except* Exception as errors:
                _LOG.exception("turn failed", exc_info=errors, extra={"conversation": log.turn.conversation})
            finally:
                log.complete()
                key = host.caller.tenant, log.turn.conversation, log.turn.number
                if self._logs.get(key) is log:  # another attempt may run in this process
                    del self._logs[key]

    async def _write_frames(self, caller: TurnCaller, log: _TurnLog) -> None:
        """Store new frames until cancelled, and extend the time until which the turn is considered running.

        Raises _TurnLost if another process has taken over the turn.
        """
        while True:
            await asyncio.sleep(FLUSH_SECONDS)
            async with self.uow.begin(caller.tenant, caller.context) as tx:
                is_stopping = await tx[TurnStore].extend(log.turn, tx.now + ALIVE_PERIOD)
                if is_stopping is None:
                    raise _TurnLost
                count = await self._store_frames(tx, log)
            log.stored_count = count
            if is_stopping:
                log.stopping.set()

    async def _store_frames(self, tx: Tx, log: _TurnLog) -> int:
        """Store the frames that are not stored yet; return the number of stored frames."""
        count = log.stored_count
        for group in _split_frames(log.frames[count:]):
            await tx[TurnStore].append(log.turn, count, b"".join(group))
            count += len(group)
        return count

    async def _finish(self, host: _Host, log: _TurnLog, outcome: TurnOutcome) -> None:
        """Store the messages, the pending calls, the remaining frames and the end of the turn."""
        caller, turn = host.caller, log.turn
        async with self.uow.begin(caller.tenant, caller.context) as tx:
            conversation = await tx.store(Conversation).get(turn.conversation, lock=True)
            if conversation is None or await tx[TurnStore].extend(turn, tx.now + ALIVE_PERIOD) is None:
                raise _TurnLost
            await self._store_frames(tx, log)
            await tx[TurnStore].append(turn, FINAL_CHUNK, b"".join(log.final_frames))
            await tx[TurnStore].save(replace(turn, ended_at=tx.now, has_failed=outcome.has_failed))
            await tx.store(Conversation).save(
                with_changes(
                    conversation,
                    tx.now,
                    history=outcome.history,
                    pending=outcome.pending,
                    has_read_data=conversation.has_read_data or outcome.has_read_data,
                    last_turn_at=tx.now,
                )
            )

    async def close(self) -> None:
        """Stop all turns, when the process ends; a repeated request continues them at another process at once."""
        interrupted = dict(self._logs)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for (tenant, *_), log in interrupted.items():
            async with self.uow.begin(tenant, _SHUTDOWN) as tx:
                await tx[TurnStore].extend(log.turn, tx.now)


class _TurnLost(Exception):
    """Another process has taken over the turn, or the conversation was deleted."""


class AssistantHealth:
    """Health of the assistant, by the turns that ended in the last minutes."""

    def __init__(self, upkeep: AssistantUpkeep, clock: Clock) -> None:
        self._upkeep, self._clock = upkeep, clock

    async def __call__(self) -> ComponentState:
        """Return the state: degraded if most turns failed, down if all did, in both cases at least MIN_FAILURES."""
        failed, total = await self._upkeep.count_ended_turns(self._clock.now() - HEALTH_PERIOD)
        if failed < MIN_FAILURES or failed * 2 < total:
            return ComponentState.OPERATIONAL
        return ComponentState.DOWN if failed == total else ComponentState.DEGRADED
