"""All documents of a catalogue, copied as they are stored: COPY in binary, of which nothing but the lengths is looked at."""

import asyncio
import select
from collections.abc import AsyncGenerator
from datetime import datetime
from typing import Final

from psycopg import pq
from psycopg.errors import error_from_result

from adapters.postgres.catalogue_query import SQL
from adapters.postgres.session import Session
from adapters.postgres.sqlfile import rendered
from domain.kernel.lines import Lines

PORTION: Final = 1 << 21
"""Bytes after which a portion ends: with the document that reaches them."""
_SIGNATURE: Final = 19
"""Before the first row: eleven bytes of signature, flags, and the length of an extension that there never is."""
_ROW: Final = 6
"""Before each document: how many fields the row has (two bytes), and the field's length (four). Source: PostgreSQL
documentation, COPY, "Binary Format"."""
_GLANCE: Final = 200
"""Milliseconds after which who waits for the server looks whether it is still wanted."""


async def lines(session: Session, updated_since: datetime | None) -> AsyncGenerator[Lines, None]:
    """Every document of the session's tenant, as many at a time as are a portion."""
    names = frozenset({"updated_since"} if updated_since is not None else ())
    statement = f"COPY ({rendered(SQL['products_copied'], names)}) TO STDOUT (FORMAT binary)"
    async with session.link.cursor.copy(statement, session.params(updated_since=updated_since)):
        reading = _Reading(session.link.connection.pgconn)
        while not reading.over:
            portion = await reading.portion()
            if portion.rows:
                yield portion


class _Reading:
    """Reads the rows of a COPY on a thread: the server sends them in pieces of 8 KB, and a turn of the event loop for each would cost as much as packing them."""

    def __init__(self, pgconn: pq.abc.PGconn) -> None:
        self._pgconn = pgconn
        self._begins = _SIGNATURE + _ROW
        self._wanted = True
        self.over = False

    async def portion(self) -> Lines:
        """The next documents. Whoever is cancelled waits until the thread lets go of the connection."""
        reading = asyncio.ensure_future(asyncio.to_thread(self._read))
        try:
            return await asyncio.shield(reading)
        except asyncio.CancelledError:
            self._wanted = False
            await asyncio.wait((reading,))
            raise

    def _read(self) -> Lines:
        held: list[bytes | memoryview] = []
        weight, begins, get, hold = 0, self._begins, self._pgconn.get_copy_data, held.append
        while weight < PORTION:
            size, row = get(1)
            if size > begins:  # a row is a message; what ends them is shorter
                hold(row[begins:])
                weight += size
                begins = self._begins = _ROW
            elif size < 0:
                self._end()
                break
            elif size == 0 and not self._waited():
                break
        rows = len(held)
        hold(b"")
        return Lines(rows, b"\n".join(held) if rows else b"")

    def _waited(self) -> bool:
        """Wait for what the server sends next; False when nobody wants it any more."""
        poll = select.poll()
        poll.register(self._pgconn.socket, select.POLLIN)
        while self._wanted:
            if poll.poll(_GLANCE):
                self._pgconn.consume_input()
                return True
        return False

    def _end(self) -> None:
        """Raises what the server ended the rows with, if it was an error."""
        self.over = True
        failed: pq.abc.PGresult | None = None
        while (result := self._pgconn.get_result()) is not None:
            if result.status != pq.ExecStatus.COMMAND_OK:
                failed = failed or result
        if failed is not None:
            raise error_from_result(failed)
