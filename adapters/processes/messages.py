"""What a process and its readers say to each other: length-prefixed MessagePack, decoded to declared types alone.

Nothing that a reader says can run code here: it works on hostile files.
"""

import socket
from collections.abc import Sequence
from typing import Literal

import msgspec

from domain.catalogue.batch import RowFingerprint
from domain.ingestion.mapping.learned import KnownMapping
from domain.ingestion.model import FeedSettings, HeaderMapping
from domain.ingestion.reading import Excerpt, FoundRows, ReadTables
from domain.kernel.problems import Problem

LENGTH = 8
"""Bytes of a message's length, big-endian, before each."""


class Order(msgspec.Struct, tag=True, frozen=True):
    """A snapshot to read (ports.feed_readers.ReadingOrder); `config` as JSON. `cpu` bounds its processor time, in seconds."""

    snapshot: str
    folder: str
    connector: str
    config: bytes
    stream: str
    settings: FeedSettings
    buckets: int
    room: int
    pushed: bool
    may_be_stock: bool
    known: tuple[KnownMapping, ...]
    whole: bool
    limit: int | None
    cpu: int


class Spool(msgspec.Struct, tag=True, frozen=True):
    """Read everything."""


class Gather(msgspec.Struct, tag=True, frozen=True):
    """Tell the keys of the buckets from `start` to before `stop`."""

    start: int
    stop: int


class State(msgspec.Struct, tag=True, frozen=True):
    """Tell what the feed states under those keys of the buckets."""

    start: int
    stop: int
    keys: list[str]


class Draw(msgspec.Struct, tag=True, frozen=True):
    """Read the first so many records."""

    count: int


class Find(msgspec.Struct, tag=True, frozen=True):
    """Seek the first so many rows that have one of the texts as a cell."""

    texts: list[str]
    most: int


class Cut(msgspec.Struct, tag=True, frozen=True):
    """Read those lines, with so many around each."""

    lines: list[tuple[str | None, int]]
    beside: int


class Progress(msgspec.Struct, tag=True, frozen=True):
    """So many rows are read; the answer is still to come."""

    rows: int


class Spooled(msgspec.Struct, tag=True, frozen=True):
    """The answer to Spool; `slots` as unsigned 32-bit integers in the machine's order."""

    rows: int
    held: list[int]
    slots: bytes
    places: list[str] | None
    names_products: bool
    problems: list[Problem]
    problem_count: int
    tables: ReadTables


class Keys(msgspec.Struct, tag=True, frozen=True):
    """The answer to Gather."""

    fingerprints: list[RowFingerprint]
    lines: list[int]
    rows: list[int]


class Statements(msgspec.Struct, tag=True, frozen=True):
    """The answer to State; each of `statements` as JSON with exact numbers."""

    statements: list[bytes]
    problems: list[Problem]


class Drawn(msgspec.Struct, tag=True, frozen=True):
    """The answer to Draw; `records` as JSON with exact numbers."""

    records: bytes
    failure: str | None
    mapping: HeaderMapping | None
    problems: list[Problem]


class Found(msgspec.Struct, tag=True, frozen=True):
    """The answer to Find."""

    found: FoundRows


class Excerpts(msgspec.Struct, tag=True, frozen=True):
    """The answer to Cut."""

    tables: list[Excerpt]


class Failed(msgspec.Struct, tag=True, frozen=True):
    """What was asked for cannot be had: its kind, for `os` the error's number, for `mapping` the tables that there are."""

    kind: Literal["parse", "mapping", "stock", "memory", "os", "error"]
    message: str
    errno: int = 0
    tables: ReadTables | None = None


Request = Order | Spool | Gather | State | Draw | Find | Cut
Reply = Progress | Spooled | Keys | Statements | Drawn | Found | Excerpts | Failed

encode = msgspec.msgpack.Encoder().encode
request = msgspec.msgpack.Decoder(Request).decode
reply = msgspec.msgpack.Decoder(Reply).decode


def framed(message: msgspec.Struct) -> Sequence[bytes]:
    """The message's length and the message."""
    body = encode(message)
    return len(body).to_bytes(LENGTH), body


def receive_message(connection: socket.socket) -> bytes | None:
    """Return the body of the next message; None when the other side closes the connection."""
    head = _receive_exactly(connection, LENGTH)
    return None if head is None else _receive_exactly(connection, int.from_bytes(head))


def _receive_exactly(connection: socket.socket, length: int) -> bytes | None:
    received = bytearray()
    while len(received) < length:
        part = connection.recv(min(length - len(received), 1 << 20))
        if not part:
            return None
        received += part
    return bytes(received)
