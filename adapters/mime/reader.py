"""Reader of a message and of its attachments with data."""

import asyncio
import hashlib
from collections.abc import Iterator
from dataclasses import replace

from adapters.mime.archives import Room, unpacked
from adapters.mime.bodies import decoded
from adapters.mime.structure import Leaf, Taken, content_type
from adapters.mime.texts import author_of, disposition_of, filename_of, header_text
from domain.kernel.errors import Unavailable
from domain.mail.contents import ContentKind, kind_of
from domain.mail.model import AttachmentNote, File, MessageUnreadable, ReadMessage
from ports.parsing import ParserEnded, ParserFailed, ParserRunner

_BODIES = ("text/plain", "text/html", "text/enriched", "text/richtext", "text/x-amp-html", "text/watch-html")
_LONGEST_ID = 998


READER_ERRORS = (MessageUnreadable,)


class MimeReader:
    """MessageReader. `run` runs the parser, and raises READER_ERRORS unchanged."""

    def __init__(self, run: ParserRunner = asyncio.to_thread) -> None:
        self._run = run

    async def read(self, raw: bytes) -> ReadMessage:
        try:
            return await self._run(read, raw)
        except ParserEnded as ended:
            raise MessageUnreadable(f"The message cannot be read: {ended}.") from None
        except ParserFailed:
            raise Unavailable from None


def read(raw: bytes) -> ReadMessage:
    """Parse a message. Raises MessageUnreadable."""
    taken = Taken(raw)
    subject, sender = header_text(taken.headers, "subject"), ""
    try:
        sender = author_of(taken.headers)
        files = tuple(_once(_files(taken)))
    except MessageUnreadable as error:
        raise MessageUnreadable(str(error), sender, subject) from error
    identity = str(taken.headers.get("message-id", "")).strip()[:_LONGEST_ID]
    return ReadMessage(sender, subject, identity.encode("utf-8", "replace").decode(), files)


def _files(taken: Taken) -> Iterator[File]:
    room = Room()
    for at, leaf in enumerate(taken.leaves(), start=1):
        name = filename_of(leaf.headers)
        if not name and disposition_of(leaf.headers) != "attachment" and content_type(leaf.headers) in _BODIES:
            continue
        yield from _of_leaf(name or f"part {at}", leaf, room)


def _of_leaf(name: str, leaf: Leaf, room: Room) -> Iterator[File]:
    encoding = str(leaf.headers.get("content-transfer-encoding", "")).strip().lower()
    content = None if leaf.cut else decoded(leaf.body, encoding)
    if content is None or content_type(leaf.headers) == "message/partial":
        yield File(name, len(leaf.body), note=AttachmentNote.DAMAGED)
        return
    kind = kind_of(content)
    if isinstance(kind, AttachmentNote):
        yield File(name, len(content), note=kind)
    elif kind == ContentKind.FILE:
        yield File(name, len(content), content)
    else:
        yield from unpacked(name, content, kind, room)


def _once(files: Iterator[File]) -> Iterator[File]:
    """Mark repeated content as a duplicate, and set the digest of the others."""
    seen: set[str] = set()
    for file in files:
        if file.content is None:
            yield file
            continue
        digest = hashlib.sha256(file.content).hexdigest()
        if digest in seen:
            yield File(file.filename, file.size, note=AttachmentNote.DUPLICATE)
        else:
            yield replace(file, digest=digest)
        seen.add(digest)
