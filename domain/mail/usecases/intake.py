"""Acceptance of messages, decided while the sender waits and answered once the outcome is committed."""

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from domain.kernel.addresses import is_loopback
from domain.kernel.errors import Conflict, QuotaExceeded
from domain.kernel.ids import new_id
from domain.kernel.paging import PageRequest
from domain.mail.model import (
    LARGEST,
    LONGEST_TEXT,
    MOST_FILES,
    MOST_LISTED,
    SAME_WITHIN,
    Attachment,
    Authentication,
    CheckResult,
    Envelope,
    File,
    InboundMessage,
    MailPolicy,
    MessageFilter,
    MessageReason,
    MessageStatus,
    MessageUnreadable,
    ReadMessage,
)
from domain.mail.ports import InboundAddresses, MessageReader, Recipient, SenderChecks
from domain.mail.usecases.staging import CONTEXT, Staging
from domain.mail.usecases.verdicts import UNKNOWN, AddressGone, Answer, Refused, Verdict
from domain.runs.model import RunTrigger
from domain.sources.model import Source, SourceStatus
from domain.sources.ports import SourceStore
from domain.sources.senders import is_listed
from domain.uploads.model import Upload
from domain.uploads.usecases import run_of, start_run
from ports.unit_of_work import Tx, UnitOfWork

_LONGEST_HEADER = 128 * 1024
"""Maximum bytes of a message's header; the parser accepts fewer."""


@dataclass(frozen=True, slots=True)
class Intake:
    """Acceptance of messages for the SMTP listener.

    What is reported as accepted is committed, with its bytes in the object store.
    """

    uow: UnitOfWork
    addresses: InboundAddresses
    reader: MessageReader
    checks: SenderChecks
    staging: Staging

    async def find(self, address: str) -> Recipient | None:
        """Return the recipient at the address, or None. Raises Unavailable."""
        return await self.addresses.find(address)

    async def take(self, recipient: Recipient, envelope: Envelope, raw: bytes) -> Verdict:
        """Accept or refuse a message; either is recorded for the source before the reply. Raises Unavailable."""
        incoming = _IncomingMessage(recipient, envelope, (await asyncio.to_thread(hashlib.sha256, raw)).hexdigest())
        try:
            return await self._evaluate(incoming, raw)
        except AddressGone:
            return UNKNOWN
        except Refused as refused:
            return await self._note_refusal(incoming, refused)

    async def refuse(self, recipient: Recipient, envelope: Envelope, head: bytes, refused: Refused) -> Verdict:
        """Refuse a message of which only the beginning, `head`, was received."""
        incoming = _IncomingMessage(recipient, envelope, hashlib.sha256(head).hexdigest())
        try:
            incoming.know(await self.reader.read(_header(head)))
        except MessageUnreadable as unreadable:
            incoming.sender, incoming.subject = unreadable.sender or incoming.sender, unreadable.subject
        return await self._note_refusal(incoming, refused)

    async def _evaluate(self, incoming: "_IncomingMessage", raw: bytes) -> Verdict:
        # Only mail of a listed and verified sender is parsed beyond its header.
        header = await self._read(incoming, _header(raw))
        incoming.know(replace(header, files=()))
        async with self.uow.read(incoming.recipient.tenant) as tx:
            source = await self._source(tx, incoming.recipient)
        _refuse_sender(incoming, source, header)
        incoming.authentication = await self.checks.check(raw, header.sender, incoming.envelope)
        _refuse_unauthenticated(incoming, header)
        _refuse_inactive(source)
        message = await self._read(incoming, raw)
        incoming.know(message)
        if len(message.data) > MOST_FILES:
            text = f"The message holds {len(message.data)} data files; at most {MOST_FILES} are taken at a time."
            raise Refused(MessageReason.TOO_MANY_FILES, text)
        return await self._store(incoming, message)

    async def _read(self, incoming: "_IncomingMessage", raw: bytes) -> ReadMessage:
        try:
            return await self.reader.read(raw)
        except MessageUnreadable as unreadable:
            incoming.sender, incoming.subject = unreadable.sender or incoming.sender, unreadable.subject
            raise Refused(MessageReason.MALFORMED, str(unreadable)) from unreadable

    async def _store(self, incoming: "_IncomingMessage", message: ReadMessage) -> Verdict:
        tenant, source = incoming.recipient.tenant, incoming.recipient.source
        if message.data:
            async with self.uow.read(tenant) as tx:
                if await _find_same(tx, incoming, MessageStatus.ACCEPTED):
                    return await self._commit(incoming, message, ())
        try:
            uploads = await self.staging.put(tenant, source, message.data) if message.data else []
        except QuotaExceeded as full:
            text = "The recipient's storage is full; try again later."
            raise Refused(MessageReason.QUOTA_EXCEEDED, text, Answer.LATER) from full
        except Conflict as busy:
            text = "Too many files are waiting for this recipient; try again later."
            raise Refused(MessageReason.QUOTA_EXCEEDED, text, Answer.LATER) from busy
        try:
            return await self._commit(incoming, message, uploads)
        except BaseException:
            await self.staging.drop(tenant, uploads)
            raise

    async def _commit(self, incoming: "_IncomingMessage", message: ReadMessage, uploads: Sequence[Upload]) -> Verdict:
        """Commit everything that acceptance involves in one transaction.

        The source is locked, so that the second of two equal messages is recognised.
        """
        tenant, unread = incoming.recipient.tenant, list(uploads)
        async with self.uow.begin(tenant, CONTEXT) as tx:
            source = await self._source(tx, incoming.recipient, lock=True)
            _refuse_inactive(source)
            first = await _find_same(tx, incoming, MessageStatus.ACCEPTED)
            if first is not None:
                await tx.store(InboundMessage).add(_again(incoming.message(MessageStatus.ACCEPTED, tx.now), first))
                text = "Taken before; nothing was started again."
                verdict = Verdict(Answer.TAKEN, MessageReason.DUPLICATE, text)
            elif message.data and not uploads:
                raise Conflict("The message that this one repeated is gone.")
            else:
                completed = [await start_run(tx, upload, run_of(tx, upload, RunTrigger.MAIL)) for upload in uploads]
                taken = incoming.message(MessageStatus.ACCEPTED, tx.now, message.files, completed)
                await tx.store(InboundMessage).add(taken)
                unread = []
                verdict = Verdict(Answer.TAKEN, taken.reason, taken.detail or f"Taken; {len(completed)} data files.")
        await self.staging.drop(tenant, unread)
        return verdict

    async def _source(self, tx: Tx, recipient: Recipient, *, lock: bool = False) -> Source:
        source = await tx[SourceStore].get(recipient.source, lock=lock)
        if source is None or source.inbound_address != recipient.address:
            raise AddressGone
        return source

    async def _note_refusal(self, incoming: "_IncomingMessage", refused: Refused) -> Verdict:
        """Record a refusal once per message: a sender that retries gets each reply, its recipient one record."""
        async with self.uow.begin(incoming.recipient.tenant, CONTEXT) as tx:
            try:
                await self._source(tx, incoming.recipient)
            except AddressGone:
                return UNKNOWN
            before = await _find_same(tx, incoming, MessageStatus.REFUSED)
            if before is None or before.reason != refused.reason:
                message = incoming.message(MessageStatus.REFUSED, tx.now, incoming.files)
                await tx.store(InboundMessage).add(replace(message, reason=refused.reason, detail=str(refused)))
        return refused.verdict


class _IncomingMessage:
    """The data of a message known so far."""

    def __init__(self, recipient: Recipient, envelope: Envelope, digest: str) -> None:
        self.recipient, self.envelope, self.fingerprint = recipient, envelope, digest
        self.sender, self.subject = envelope.sender, ""
        self.files: Sequence[File] = ()
        self.authentication: Authentication | None = None

    def know(self, message: ReadMessage) -> None:
        """Update from the parsed message. A message is identified by its id and data, however it travelled."""
        self.sender, self.subject, self.files = message.sender, message.subject, message.files
        if message.message_id:
            data = sorted(file.digest for file in message.data)
            self.fingerprint = hashlib.sha256("\0".join([message.message_id, *data]).encode()).hexdigest()

    def message(
        self, status: MessageStatus, now: datetime, files: Sequence[File] = (), uploads: Sequence[Upload] = ()
    ) -> InboundMessage:
        """Return the record of the message; `uploads` are those of its data files, in order."""
        runs = iter([upload.run for upload in uploads])
        listed = [
            Attachment(file.filename, file.size, next(runs, None) if file.content is not None else None, note=file.note)
            for file in files
        ]
        none, further = status == MessageStatus.ACCEPTED and not uploads, len(listed) - MOST_LISTED
        notes = ["No data file was found in the message."] if none else []
        if further > 0:
            listed.sort(key=lambda attachment: attachment.run is None)
            notes.append(f"{further} further attachments are not named.")
        return InboundMessage(
            id=new_id("inm"),
            source=self.recipient.source,
            sender=self.sender[:LONGEST_TEXT],
            subject=self.subject[:LONGEST_TEXT],
            received_at=now,
            status=status,
            fingerprint=self.fingerprint,
            attachments=tuple(listed[:MOST_LISTED]),
            authentication=self.authentication,
            reason=MessageReason.NO_DATA if none else None,
            detail=" ".join(notes) or None,
        )


def _header(raw: bytes) -> bytes:
    """Return the message's header as a message of its own; of one that is too long, enough to refuse it."""
    end = raw.find(b"\r\n\r\n", 0, _LONGEST_HEADER)
    return raw[: end if end >= 0 else _LONGEST_HEADER] + b"\r\n\r\n"


def _again(message: InboundMessage, first: InboundMessage) -> InboundMessage:
    detail = f"The same message was taken before, as {first.id}; nothing was started again."
    return replace(message, attachments=first.attachments, reason=MessageReason.DUPLICATE, detail=detail)


async def _find_same(tx: Tx, incoming: _IncomingMessage, status: MessageStatus) -> InboundMessage | None:
    """Return the newest equal message of that status within SAME_WITHIN, or None."""
    wanted = MessageFilter(incoming.recipient.source, status, incoming.fingerprint)
    found = (await tx.store(InboundMessage).page(PageRequest(1), wanted)).items
    return found[0] if found and tx.now - found[0].received_at < SAME_WITHIN else None


def _refuse_sender(incoming: _IncomingMessage, source: Source, message: ReadMessage) -> None:
    if not incoming.envelope.sender:
        raise Refused(MessageReason.BOUNCE, "Bounces and notifications without a return path are not taken here.")
    inbound = source.config.get("inbound") or {}
    if not is_listed(inbound.get("senders", ()), message.sender):
        raise Refused(MessageReason.SENDER_NOT_LISTED, f"{message.sender} may not send to this address.")


def _refuse_unauthenticated(incoming: _IncomingMessage, message: ReadMessage) -> None:
    found = incoming.authentication
    assert found is not None
    domain = message.sender.rpartition("@")[2]
    if found.dmarc == CheckResult.FAIL and found.policy == MailPolicy.REJECT:
        text = f"The message fails DMARC (SPF {found.spf}, DKIM {found.dkim}), and {domain} asks to refuse such mail."
        raise Refused(MessageReason.DMARC_REJECTED, text)
    if found.dmarc == CheckResult.TEMPERROR and not is_loopback(incoming.envelope.peer):
        text = f"The name system could not say whether the message is from {domain}; try again later."
        raise Refused(MessageReason.NOT_CHECKED, text, Answer.LATER)


def _refuse_inactive(source: Source) -> None:
    if source.status == SourceStatus.DISABLED:
        raise Refused(MessageReason.SOURCE_NOT_ACTIVE, "The recipient takes no mail any more.")
    if not source.runnable:
        text = f"The recipient is {source.status} and takes no mail now; try again later."
        raise Refused(MessageReason.SOURCE_NOT_ACTIVE, text, Answer.LATER)


def too_large() -> Refused:
    """Return the refusal of a message over the limit."""
    return Refused(MessageReason.TOO_LARGE, f"The message is larger than {LARGEST} bytes.")


def not_clean(what: str) -> Refused:
    """Return the refusal of a message with malformed line endings."""
    return Refused(MessageReason.MALFORMED, what)
