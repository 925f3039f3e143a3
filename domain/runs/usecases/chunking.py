"""One chunk of a run: lines gathered by key, their fingerprints, and the statements of those that changed."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from domain.catalogue.batch import RowFingerprint
from domain.catalogue.statements import ProductStatement
from domain.ingestion.model import FeedSettings, Group
from domain.ingestion.normalise import normalise
from domain.ingestion.records import from_record
from domain.kernel.problems import Problem
from domain.runs.usecases.reading import PUSHED, Sheet, slot_of
from ports.codec import Codec

Line = tuple[int, int, bytes]
"""Table number, line and the encoded cells."""


@dataclass(slots=True)
class Chunk:
    """A chunk's lines by key, in the feed's order, and a mark for each key."""

    lines: dict[str, list[Line]] = field(default_factory=dict)
    fingerprints: dict[str, RowFingerprint] = field(default_factory=dict)


class ChunkBuilder:
    """Turns spooled lines into chunks and chunks into statements, in the calling thread."""

    def __init__(self, codec: Codec, sheets: Sequence[Sheet], context: FeedSettings) -> None:
        self._codec = codec
        self._sheets = sheets
        self._context = context

    def chunk(self, lines: Sequence[bytes]) -> Chunk:
        """Gather lines by key."""
        chunk, decode = Chunk(), self._codec.decode
        by_key = chunk.lines
        for entry in lines:
            head, _, cells = entry.partition(b"\t")
            table, key, line = decode(head)
            by_key.setdefault(key, []).append((table, line, cells))
        for key, kept in by_key.items():
            digest = blake2b(digest_size=16)
            for table, _, cells in kept:
                digest.update(self._sheets[max(table, 0)].salt)
                digest.update(cells)
            chunk.fingerprints[key] = RowFingerprint(slot_of(key, self._context.stream), key, digest.digest())
        return chunk

    def statements(self, chunk: Chunk, keys: Collection[str]) -> tuple[list[ProductStatement], list[Problem]]:
        """What the feed states under these keys. A statement's key is the mark's."""
        stated: list[ProductStatement] = []
        problems: list[Problem] = []
        for key, lines in chunk.lines.items():
            if key not in keys:
                continue
            statement = self._statement(key, lines, problems)
            if statement is not None:
                stated.append(statement)
        return stated, problems

    def _statement(self, key: str, lines: Sequence[Line], problems: list[Problem]) -> ProductStatement | None:
        """One key's statement; what several sheets say of it is laid together."""
        whole: ProductStatement | None = None
        for table in dict.fromkeys(entry[0] for entry in lines):
            rows = [(line, self._codec.decode(cells)) for number, line, cells in lines if number == table]
            part, found = self._read(table, key, rows)
            problems += found
            if part is not None:
                whole = part if whole is None else together(whole, part)
        if whole is not None:
            whole.key = key
        return whole

    def _read(self, table: int, key: str, rows: list[tuple[int, Any]]) -> tuple[ProductStatement | None, list[Problem]]:
        if table == PUSHED:
            line, record = rows[-1]
            statement, found = from_record(record, self._context, line)
            return statement, found
        sheet = self._sheets[table]
        assert sheet.plan is not None
        return normalise(Group(key, rows, sheet.name), sheet.plan)


def together(first: ProductStatement, second: ProductStatement) -> ProductStatement:
    """Two sheets' statements of one product: the second fills in what the first does not say."""
    first.data = {**second.data, **first.data}
    known = {variant.key: variant for variant in first.variants}
    for variant in second.variants:
        mine = known.get(variant.key)
        if mine is None:
            first.variants.append(variant)
            continue
        mine.data = {**variant.data, **mine.data}
        places = {offer.location for offer in mine.offers}
        mine.offers += [offer for offer in variant.offers if offer.location not in places]
    first.discontinued = first.discontinued or second.discontinued
    return first
