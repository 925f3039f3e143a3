"""Acceptance of inbound messages, which is decided and committed before the sending server gets a reply."""

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
    DUPLICATE_WINDOW,
    MAX_BYTES_PER_MESSAGE,
    MAX_DATA_FILES,
    MAX_LISTED_ATTACHMENTS,
    MAX_TEXT_CHARS,
    Attachment,
    Authentication,
    Envelope,
    InboundMessage,
    MailPolicy,
    MessageFilter,
    MessageReason,
    MessageStatus,
    MessageUnreadable,
    ParsedAttachment,
    ParsedMessage,
    SenderCheckResult,
)
from domain.mail.ports import InboundAddresses, MessageParser, Recipient, SenderChecks
from domain.mail.usecases.attachments import CONTEXT, AttachmentStaging
from domain.mail.usecases.verdicts import UNKNOWN_ADDRESS, AddressGone, MailDisposition, MessageRefused, MessageVerdict
from domain.runs.model import RunTrigger
from domain.sources.model import Source, SourceStatus
from domain.sources.ports import SourceStore
from domain.sources.senders import contains_sender
from domain.uploads.model import Upload
from domain.uploads.usecases import new_upload_run, queue_upload_run
from ports.unit_of_work import Tx, UnitOfWork

_MAX_HEADER_BYTES = 128 * 1024
"""Maximum bytes of a message's header that the parser receives; a longer header is truncated and then refused."""


@dataclass(frozen=True, slots=True)
class MessageIntake:
    """Use cases that accept or refuse messages which the SMTP listener receives."""

    uow: UnitOfWork
    addresses: InboundAddresses
    parser: MessageParser
    sender_checks: SenderChecks
    staging: AttachmentStaging

    async def find_recipient(self, address: str) -> Recipient | None:
        """Return the source that accepts mail at the address, or None. Raises Unavailable."""
        return await self.addresses.find_recipient(address)

    async def accept_or_refuse(self, recipient: Recipient, envelope: Envelope, raw: bytes) -> MessageVerdict:
        """Accept or refuse the message `raw`, and record the result; return the reply. Raises Unavailable.

        After an acceptance, the files of the message are stored and their runs are queued.
        """
        incoming = _IncomingMessage(recipient, envelope, (await asyncio.to_thread(hashlib.sha256, raw)).hexdigest())
        try:
            return await self._check_and_store(incoming, raw)
        except AddressGone:
            return UNKNOWN_ADDRESS
        except MessageRefused as refused:
            return await self._store_refusal(incoming, refused)

    async def record_refusal(
        self, recipient: Recipient, envelope: Envelope, head: bytes, refusal: MessageRefused
    ) -> MessageVerdict:
        """Record the refusal of a message for the reason `refusal`; return the reply.

        `head` is the beginning of the message; the rest was not kept.
        """
        incoming = _IncomingMessage(recipient, envelope, hashlib.sha256(head).hexdigest())
        try:
            incoming.update(await self.parser.parse(_extract_header(head)))
        except MessageUnreadable as unreadable:
            incoming.sender, incoming.subject = unreadable.sender or incoming.sender, unreadable.subject
        return await self._store_refusal(incoming, refusal)

    async def _check_and_store(self, incoming: "_IncomingMessage", raw: bytes) -> MessageVerdict:
        # Only mail of a listed and verified sender is parsed beyond its header.
        header = await self._parse_message(incoming, _extract_header(raw))
        incoming.update(replace(header, files=()))
        async with self.uow.begin_reading(incoming.recipient.tenant) as tx:
            source = await self._load_source(tx, incoming.recipient)
        _refuse_sender(incoming, source, header)
        incoming.authentication = await self.sender_checks.check(raw, header.sender, incoming.envelope)
        _refuse_unauthenticated(incoming, header)
        _refuse_inactive(source)
        message = await self._parse_message(incoming, raw)
        incoming.update(message)
        if len(message.data_files) > MAX_DATA_FILES:
            text = f"The message has {len(message.data_files)} data files. Send at most {MAX_DATA_FILES} files per message."
            raise MessageRefused(MessageReason.TOO_MANY_FILES, text)
        return await self._store_message(incoming, message)

    async def _parse_message(self, incoming: "_IncomingMessage", raw: bytes) -> ParsedMessage:
        try:
            return await self.parser.parse(raw)
        except MessageUnreadable as unreadable:
            incoming.sender, incoming.subject = unreadable.sender or incoming.sender, unreadable.subject
            raise MessageRefused(MessageReason.MALFORMED, str(unreadable)) from unreadable

    async def _store_message(self, incoming: "_IncomingMessage", message: ParsedMessage) -> MessageVerdict:
        tenant, source = incoming.recipient.tenant, incoming.recipient.source
        if message.data_files:
            async with self.uow.begin_reading(tenant) as tx:
                if await _find_duplicate(tx, incoming, MessageStatus.ACCEPTED):
                    return await self._commit_acceptance(incoming, message, ())
        try:
            uploads = await self.staging.store_files(tenant, source, message.data_files) if message.data_files else []
        except QuotaExceeded as full:
            text = "The recipient's storage is full. Try again later."
            raise MessageRefused(MessageReason.QUOTA_EXCEEDED, text, MailDisposition.LATER) from full
        except Conflict as busy:
            text = "Too many files are waiting for this recipient. Try again later."
            raise MessageRefused(MessageReason.QUOTA_EXCEEDED, text, MailDisposition.LATER) from busy
        try:
            return await self._commit_acceptance(incoming, message, uploads)
        except BaseException:
            await self.staging.delete_unused(tenant, uploads)
            raise

    async def _commit_acceptance(
        self, incoming: "_IncomingMessage", message: ParsedMessage, uploads: Sequence[Upload]
    ) -> MessageVerdict:
        """Record the accepted message and start the runs of its uploads, in one transaction; return the reply."""
        tenant, unused_uploads = incoming.recipient.tenant, list(uploads)
        async with self.uow.begin(tenant, CONTEXT) as tx:
            # The lock ensures that the second of two equal messages is recognised as a duplicate.
            source = await self._load_source(tx, incoming.recipient, lock=True)
            _refuse_inactive(source)
            first = await _find_duplicate(tx, incoming, MessageStatus.ACCEPTED)
            if first is not None:
                await tx.store(InboundMessage).add(
                    _mark_as_duplicate(incoming.build_record(MessageStatus.ACCEPTED, tx.now), first)
                )
                text = "Duplicate message. No new run was started."
                verdict = MessageVerdict(MailDisposition.TAKEN, MessageReason.DUPLICATE, text)
            elif message.data_files and not uploads:
                raise Conflict("The original of this duplicate message no longer exists.")
            else:
                completed = [
                    await queue_upload_run(tx, upload, new_upload_run(tx, upload, RunTrigger.MAIL))
                    for upload in uploads
                ]
                taken = incoming.build_record(MessageStatus.ACCEPTED, tx.now, message.files, completed)
                await tx.store(InboundMessage).add(taken)
                unused_uploads = []
                verdict = MessageVerdict(
                    MailDisposition.TAKEN, taken.reason, taken.detail or f"Accepted; {len(completed)} data files."
                )
        await self.staging.delete_unused(tenant, unused_uploads)
        return verdict

    async def _load_source(self, tx: Tx, recipient: Recipient, *, lock: bool = False) -> Source:
        source = await tx[SourceStore].get(recipient.source, lock=lock)
        if source is None or source.inbound_address != recipient.address:
            raise AddressGone
        return source

    async def _store_refusal(self, incoming: "_IncomingMessage", refused: MessageRefused) -> MessageVerdict:
        """Store the refusal of a message, unless the same refusal is stored already; return the reply."""
        async with self.uow.begin(incoming.recipient.tenant, CONTEXT) as tx:
            try:
                await self._load_source(tx, incoming.recipient)
            except AddressGone:
                return UNKNOWN_ADDRESS
            before = await _find_duplicate(tx, incoming, MessageStatus.REFUSED)
            if before is None or before.reason != refused.reason:
                message = incoming.build_record(MessageStatus.REFUSED, tx.now, incoming.files)
                await tx.store(InboundMessage).add(replace(message, reason=refused.reason, detail=str(refused)))
        return refused.verdict


class _IncomingMessage:
    """Message that is being processed, with the values that were read from it so far."""

    def __init__(self, recipient: Recipient, envelope: Envelope, digest: str) -> None:
        self.recipient, self.envelope, self.fingerprint = recipient, envelope, digest
        self.sender, self.subject = envelope.sender, ""
        self.files: Sequence[ParsedAttachment] = ()
        self.authentication: Authentication | None = None

    def update(self, message: ParsedMessage) -> None:
        """Set sender, subject, files and fingerprint from the parsed message."""
        # The fingerprint depends on Message-ID and data files only, so that copies by different routes are equal.
        self.sender, self.subject, self.files = message.sender, message.subject, message.files
        if message.message_id:
            data = sorted(file.digest for file in message.data_files)
            self.fingerprint = hashlib.sha256("\0".join([message.message_id, *data]).encode()).hexdigest()

    def build_record(
        self,
        status: MessageStatus,
        now: datetime,
        files: Sequence[ParsedAttachment] = (),
        uploads: Sequence[Upload] = (),
    ) -> InboundMessage:
        """Return the record of the message to store; `uploads` are the uploads of its data files, in the same order."""
        runs = iter([upload.run for upload in uploads])
        listed = [
            Attachment(file.filename, file.size, next(runs, None) if file.content is not None else None, note=file.note)
            for file in files
        ]
        has_no_data, unlisted = status == MessageStatus.ACCEPTED and not uploads, len(listed) - MAX_LISTED_ATTACHMENTS
        notes = ["No data file was found in the message."] if has_no_data else []
        if unlisted > 0:
            listed.sort(key=lambda attachment: attachment.run is None)
            notes.append(f"{unlisted} further attachments are not listed.")
        return InboundMessage(
            id=new_id("inm"),
            source=self.recipient.source,
            sender=self.sender[:MAX_TEXT_CHARS],
            subject=self.subject[:MAX_TEXT_CHARS],
            received_at=now,
            status=status,
            fingerprint=self.fingerprint,
            attachments=tuple(listed[:MAX_LISTED_ATTACHMENTS]),
            authentication=self.authentication,
            reason=MessageReason.NO_DATA if has_no_data else None,
            detail=" ".join(notes) or None,
        )


def _extract_header(raw: bytes) -> bytes:
    """Return the header of a message as a message without a body; a header that is too long is truncated."""
    end = raw.find(b"\r\n\r\n", 0, _MAX_HEADER_BYTES)
    return raw[: end if end >= 0 else _MAX_HEADER_BYTES] + b"\r\n\r\n"


def _mark_as_duplicate(message: InboundMessage, original: InboundMessage) -> InboundMessage:
    detail = f"This message is a duplicate of {original.id}. No new run was started."
    return replace(message, attachments=original.attachments, reason=MessageReason.DUPLICATE, detail=detail)


async def _find_duplicate(tx: Tx, incoming: _IncomingMessage, status: MessageStatus) -> InboundMessage | None:
    """Return the newest record with this status and the message's source and fingerprint.

    Return None if there is none, or if the record is older than `DUPLICATE_WINDOW`.
    """
    wanted = MessageFilter(incoming.recipient.source, status, incoming.fingerprint)
    found = (await tx.store(InboundMessage).page(PageRequest(1), wanted)).items
    return found[0] if found and tx.now - found[0].received_at < DUPLICATE_WINDOW else None


def _refuse_sender(incoming: _IncomingMessage, source: Source, message: ParsedMessage) -> None:
    if not incoming.envelope.sender:
        raise MessageRefused(
            MessageReason.BOUNCE, "This address does not accept bounces and other messages without a return path."
        )
    inbound = source.config.get("inbound") or {}
    if not contains_sender(inbound.get("senders", ()), message.sender):
        raise MessageRefused(
            MessageReason.SENDER_NOT_LISTED,
            f"{message.sender} is not in the list of permitted senders of this address. Ask the recipient to add the sender.",
        )


def _refuse_unauthenticated(incoming: _IncomingMessage, message: ParsedMessage) -> None:
    found = incoming.authentication
    assert found is not None
    domain = message.sender.rpartition("@")[2]
    if found.dmarc == SenderCheckResult.FAIL and found.policy == MailPolicy.REJECT:
        text = (
            f"The message fails DMARC (SPF {found.spf}, DKIM {found.dkim}), and {domain} requests rejection of "
            f"such mail. Send the message through a server that the domain authorises."
        )
        raise MessageRefused(MessageReason.DMARC_REJECTED, text)
    if found.dmarc == SenderCheckResult.TEMPERROR and not is_loopback(incoming.envelope.peer):
        text = f"DNS could not confirm that the message is from {domain}. Try again later."
        raise MessageRefused(MessageReason.NOT_CHECKED, text, MailDisposition.LATER)


def _refuse_inactive(source: Source) -> None:
    if source.status == SourceStatus.DISABLED:
        raise MessageRefused(MessageReason.SOURCE_NOT_ACTIVE, "The recipient no longer accepts mail.")
    if not source.is_runnable:
        text = f"The recipient is {source.status} and does not accept mail now. Try again later."
        raise MessageRefused(MessageReason.SOURCE_NOT_ACTIVE, text, MailDisposition.LATER)


def create_size_refusal() -> MessageRefused:
    """Return the refusal of a message that is larger than `MAX_BYTES_PER_MESSAGE`."""
    return MessageRefused(
        MessageReason.TOO_LARGE,
        f"The message is larger than {MAX_BYTES_PER_MESSAGE} bytes. Send fewer or smaller files.",
    )


def create_malformed_refusal(reply_text: str) -> MessageRefused:
    """Return the refusal of a malformed message; `reply_text` is the text of the reply, which states the defect."""
    return MessageRefused(MessageReason.MALFORMED, reply_text)
