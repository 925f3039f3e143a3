"""Parser of an email message: author, subject, message ID and attached files."""

import asyncio
import hashlib
from collections.abc import Iterator
from dataclasses import replace

from adapters.mime.archives import UnpackBudget, unpack_archive
from adapters.mime.bodies import decode_body
from adapters.mime.structure import MessagePart, MessageSplitter, find_content_type
from adapters.mime.texts import decode_header_text, find_author, find_disposition, find_filename
from domain.kernel.errors import Unavailable
from domain.mail.contents import ContentKind, detect_kind
from domain.mail.model import AttachmentNote, MessageUnreadable, ParsedAttachment, ParsedMessage
from ports.parsing import ParserFailed, ParserRunner, ParserTerminated

_BODY_TYPES = ("text/plain", "text/html", "text/enriched", "text/richtext", "text/x-amp-html", "text/watch-html")
_MAX_ID_CHARS = 998


READER_ERRORS = (MessageUnreadable,)
"""Exception types of `parse_message` that a ParserRunner must raise unchanged, instead of ParserTerminated."""


class MimeReader:
    """Parser of email messages, an implementation of the port MessageParser (domain/mail/ports.py).

    `run` runs the parser in a thread or a process.
    """

    def __init__(self, run: ParserRunner = asyncio.to_thread) -> None:
        self._run = run

    async def parse(self, raw: bytes) -> ParsedMessage:
        try:
            return await self._run(parse_message, raw)
        except ParserTerminated as ended:
            raise MessageUnreadable(f"The message cannot be read: {ended}.") from None
        except ParserFailed:
            raise Unavailable from None


def parse_message(raw: bytes) -> ParsedMessage:
    """Parse an email message. Raises MessageUnreadable."""
    parts = MessageSplitter(raw)
    subject, sender = decode_header_text(parts.headers, "subject"), ""
    try:
        sender = find_author(parts.headers)
        files = tuple(_mark_duplicates(_iterate_files(parts)))
    except MessageUnreadable as error:
        raise MessageUnreadable(str(error), sender, subject) from error
    message_id = str(parts.headers.get("message-id", "")).strip()[:_MAX_ID_CHARS]
    return ParsedMessage(sender, subject, message_id.encode("utf-8", "replace").decode(), files)


def _iterate_files(parts: MessageSplitter) -> Iterator[ParsedAttachment]:
    budget = UnpackBudget()
    for number, leaf in enumerate(parts.iterate_leaves(), start=1):
        name = find_filename(leaf.headers)
        if (
            not name
            and find_disposition(leaf.headers) != "attachment"
            and find_content_type(leaf.headers) in _BODY_TYPES
        ):
            continue
        yield from _read_leaf(name or f"part {number}", leaf, budget)


def _read_leaf(name: str, leaf: MessagePart, budget: UnpackBudget) -> Iterator[ParsedAttachment]:
    encoding = str(leaf.headers.get("content-transfer-encoding", "")).strip().lower()
    content = None if leaf.is_truncated else decode_body(leaf.body, encoding)
    if content is None or find_content_type(leaf.headers) == "message/partial":
        yield ParsedAttachment(name, len(leaf.body), note=AttachmentNote.DAMAGED)
        return
    kind = detect_kind(content)
    if isinstance(kind, AttachmentNote):
        yield ParsedAttachment(name, len(content), note=kind)
    elif kind == ContentKind.FILE:
        yield ParsedAttachment(name, len(content), content)
    else:
        yield from unpack_archive(name, content, kind, budget)


def _mark_duplicates(files: Iterator[ParsedAttachment]) -> Iterator[ParsedAttachment]:
    """Yield the files with digests; a file with the content of an earlier one is yielded with a note instead of content."""
    seen: set[str] = set()
    for file in files:
        if file.content is None:
            yield file
            continue
        digest = hashlib.sha256(file.content).hexdigest()
        if digest in seen:
            yield ParsedAttachment(file.filename, file.size, note=AttachmentNote.DUPLICATE)
        else:
            yield replace(file, digest=digest)
        seen.add(digest)
