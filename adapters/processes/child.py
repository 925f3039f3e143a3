"""The reader's side: takes orders and requests out of a socket, one after the other, and answers them."""

import errno
import socket
import threading
from array import array
from contextlib import suppress
from typing import Final

from adapters.processes import messages
from adapters.processes.fork_server import allow_cpu
from adapters.processes.messages import (
    Cut,
    Draw,
    Drawn,
    Excerpts,
    Failed,
    Find,
    Found,
    Gather,
    Keys,
    Order,
    Progress,
    Reply,
    Spool,
    Spooled,
    State,
    Statements,
)
from domain.ingestion.ports import OpenSnapshot, ParseFailed, ReadingOrder, SnapshotReader
from domain.ingestion.reading import NeedsMapping, StockSheet
from domain.kernel.problems import Problem
from ports.codec import Codec

TELLING: Final = 2.0
"""Seconds between two reports of how far reading is."""


class ReaderChild:
    """Serves one socket; a new order closes what the one before had open."""

    def __init__(self, connection: socket.socket, open_snapshot: OpenSnapshot, codec: Codec) -> None:
        self._connection, self._open, self._codec = connection, open_snapshot, codec
        self._reader: SnapshotReader | None = None
        self._sending = threading.Lock()

    def serve(self) -> None:
        """Until the other side closes the socket."""
        while (body := messages.receive_message(self._connection)) is not None:
            asked = messages.request(body)
            if isinstance(asked, Order):
                self._begin(asked)
            else:
                self._send(self._answer(asked))
        self._end()

    def _begin(self, order: Order) -> None:
        self._end()
        allow_cpu(order.cpu)
        self._reader = self._open(
            ReadingOrder(
                snapshot=order.snapshot,
                folder=order.folder,
                connector=order.connector,
                config=self._codec.decode(order.config),
                stream=order.stream,
                settings=order.settings,
                buckets=order.buckets,
                room=order.room,
                pushed=order.pushed,
                may_be_stock=order.may_be_stock,
                known=order.known,
                whole=order.whole,
                limit=order.limit,
            )
        )

    def _end(self) -> None:
        if self._reader is not None:
            with suppress(OSError):
                self._reader.close()
        self._reader = None

    def _answer(self, asked: Spool | Gather | State | Draw | Find | Cut) -> Reply:
        try:
            assert self._reader is not None
            return self._done(self._reader, asked)
        except ParseFailed as error:
            return Failed("parse", str(error))
        except NeedsMapping as error:
            return Failed("mapping", str(error), tables=error.tables)
        except StockSheet:
            return Failed("stock", "")
        except MemoryError:
            return Failed("memory", "")
        except OSError as error:
            return Failed("os", error.strerror or "", error.errno or errno.EIO)
        except Exception as error:
            return Failed("error", f"{type(error).__name__} at {_place(error)}")

    def _done(self, reader: SnapshotReader, asked: Spool | Gather | State | Draw | Find | Cut) -> Reply:
        match asked:
            case Spool():
                return self._spooled(reader)
            case Gather(start, stop):
                gathered = reader.gather(range(start, stop))
                return Keys(list(gathered.fingerprints), list(gathered.lines), list(gathered.rows))
            case State(start, stop, keys):
                problems: list[Problem] = []
                statements = reader.statements(range(start, stop), keys, problems)
                return Statements([self._codec.encode(statement) for statement in statements], problems)
            case Draw(count):
                sample = reader.sample(count)
                records = self._codec.encode(sample.records)
                return Drawn(records, sample.failure, sample.mapping, list(sample.problems))
            case Find(texts, most):
                return Found(reader.find(texts, most))
            case Cut(lines, beside):
                return Excerpts(list(reader.excerpt(lines, beside)))

    def _spooled(self, reader: SnapshotReader) -> Spooled:
        over = threading.Event()
        teller = threading.Thread(target=self._tell, args=(reader, over), daemon=True)
        teller.start()
        try:
            spooled = reader.spool()
        finally:
            over.set()
            teller.join()
        places = None if spooled.places is None else sorted(spooled.places)
        return Spooled(
            rows=spooled.rows,
            held=list(spooled.held),
            slots=array("I", spooled.slots).tobytes(),
            places=places,
            names_products=spooled.names_products,
            problems=list(spooled.problems),
            problem_count=spooled.problem_count,
            tables=spooled.tables,
        )

    def _tell(self, reader: SnapshotReader, over: threading.Event) -> None:
        while not over.wait(TELLING):
            with suppress(OSError):
                self._send(Progress(reader.rows))

    def _send(self, reply: Reply) -> None:
        with self._sending:
            for part in messages.framed(reply):
                self._connection.sendall(part)


def _place(error: BaseException) -> str:
    """Where it was raised, without any of the values that were worked on."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "?" if trace is None else f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
