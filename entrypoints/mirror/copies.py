"""Where a mirror keeps its copy: an SQLite file, or a folder of one file a product. The cursor never runs ahead of the data."""

import fcntl
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Self

from entrypoints.errors import CommandError

SUFFIXES = frozenset({".sqlite", ".sqlite3", ".db"})
CURSOR = "cursor"
Changed = Mapping[str, bytes | None]
"""Products as they are now, by id; None for what is not there any more."""


class MirrorError(CommandError):
    """The copy cannot go on as it is; the sentence says why, and what to do."""


class SqliteCopy:
    """One file, for one process at a time. Products in `products(id, body)`, notes in `mirror(name, value)`; each change is one transaction."""

    def __init__(self, path: Path) -> None:
        self._db = sqlite3.connect(path, isolation_level=None)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = NORMAL")
        self._db.execute("CREATE TABLE IF NOT EXISTS products (id TEXT PRIMARY KEY, body TEXT NOT NULL)")
        self._db.execute("CREATE TABLE IF NOT EXISTS mirror (name TEXT PRIMARY KEY, value TEXT NOT NULL)")

    def note(self, name: str) -> str | None:
        """What was noted under the name."""
        row = self._db.execute("SELECT value FROM mirror WHERE name = ?", (name,)).fetchone()
        return str(row[0]) if row else None

    def set_note(self, name: str, value: str | None) -> None:
        """Note something, or forget it."""
        if value is None:
            self._db.execute("DELETE FROM mirror WHERE name = ?", (name,))
        else:
            self._db.execute("INSERT OR REPLACE INTO mirror VALUES (?, ?)", (name, value))

    def held(self, id: str) -> bytes | None:
        """A product as it is kept."""
        row = self._db.execute("SELECT body FROM products WHERE id = ?", (id,)).fetchone()
        return row[0].encode() if row else None

    def count(self) -> int:
        """How many products are kept."""
        return int(self._db.execute("SELECT count(*) FROM products").fetchone()[0])

    def apply(self, changed: Changed, cursor: str) -> None:
        """Data and cursor in one transaction."""
        with self._transaction():
            self.put((id, body) for id, body in changed.items() if body is not None)
            gone = [(id,) for id, body in changed.items() if body is None]
            self._db.executemany("DELETE FROM products WHERE id = ?", gone)
            self.set_note(CURSOR, cursor)

    def put(self, products: Iterable[tuple[str, bytes]]) -> None:
        """Keep these."""
        rows = ((id, body.decode()) for id, body in products)
        self._db.executemany("INSERT OR REPLACE INTO products VALUES (?, ?)", rows)

    @contextmanager
    def loading(self, cursor: str) -> Iterator[Self]:
        """Everything in one transaction: who reads the file meanwhile sees what was there before."""
        with self._transaction():
            self._db.execute("DELETE FROM products")
            yield self
            self.set_note(CURSOR, cursor)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            self._db.execute("ROLLBACK")
            raise

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()


class FolderCopy:
    """Products as `products/<id>.json`, each replaced as a whole; notes as files of their own, the cursor written last."""

    def __init__(self, path: Path) -> None:
        self._notes, self._products = path, path / "products"
        self._products.mkdir(parents=True, exist_ok=True)
        self._seen: set[str] = set()
        for left in self._products.glob(".fresh*"):
            left.unlink()

    def note(self, name: str) -> str | None:
        """What was noted under the name."""
        with suppress(FileNotFoundError):
            return (self._notes / name).read_text("utf-8")
        return None

    def set_note(self, name: str, value: str | None) -> None:
        """Note something, or forget it."""
        if value is None:
            (self._notes / name).unlink(missing_ok=True)
        else:
            _replaced(self._notes / name, value.encode())

    def held(self, id: str) -> bytes | None:
        """A product as it is kept."""
        with suppress(FileNotFoundError):
            return self._path(id).read_bytes()
        return None

    def count(self) -> int:
        """How many products are kept."""
        return sum(1 for _ in self._products.glob("*.json"))

    def apply(self, changed: Changed, cursor: str) -> None:
        """The data first; who is killed before the cursor reads the same changes again."""
        for id, body in changed.items():
            if body is None:
                self._path(id).unlink(missing_ok=True)
            else:
                _replaced(self._path(id), body)
        self.set_note(CURSOR, cursor)

    def put(self, products: Iterable[tuple[str, bytes]]) -> None:
        """Keep these."""
        for id, body in products:
            _replaced(self._path(id), body)
            self._seen.add(id)

    @contextmanager
    def loading(self, cursor: str) -> Iterator[Self]:
        """What was not put is removed at the end, and the cursor stands then."""
        self._seen = set()
        yield self
        for path in self._products.glob("*.json"):
            if path.stem not in self._seen:
                path.unlink()
        self.set_note(CURSOR, cursor)

    def _path(self, id: str) -> Path:
        if not id.replace("_", "").isalnum() or not id.isascii():
            raise MirrorError(f"The service answers a product under an id that can be no file's name: {id!r}")
        return self._products / f"{id}.json"


def _replaced(path: Path, content: bytes) -> None:
    fresh = path.with_name(f".fresh-{path.name}")
    fresh.write_bytes(content)
    fresh.replace(path)


Copy = SqliteCopy | FolderCopy
"""Killed at any moment, its cursor stands behind nothing that it does not hold."""


@contextmanager
def opened(path: Path) -> Iterator[Copy]:
    """Open the copy there: an SQLite file by its suffix, else a folder. Raises MirrorError when another mirror holds it, or for no place."""
    is_file = path.suffix in SUFFIXES or path.is_file()
    try:
        (path.parent if is_file else path).mkdir(parents=True, exist_ok=True)
        with (path.with_name(path.name + ".lock") if is_file else path / ".lock").open("ab") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise MirrorError(f"Another mirror keeps this copy ({lock.name} is locked).") from None
            if is_file:
                with closing(SqliteCopy(path)) as copy:
                    yield copy
            else:
                yield FolderCopy(path)
    except (OSError, sqlite3.Error) as error:
        raise MirrorError(f"The copy at {path} cannot be kept: {error}") from error
