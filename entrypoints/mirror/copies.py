"""Storage of a mirror: an SQLite file, or a folder with one file per product. The cursor is never ahead of the data."""

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
"""Current products by ID; None for a removed one."""


class MirrorError(CommandError):
    """The copy cannot be continued; the message names the reason and the remedy."""


class SqliteCopy:
    """SQLite file for one process at a time: products in `products(id, body)`, notes in `mirror(name, value)`; atomic changes."""

    def __init__(self, path: Path) -> None:
        self._db = sqlite3.connect(path, isolation_level=None)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = NORMAL")
        self._db.execute("CREATE TABLE IF NOT EXISTS products (id TEXT PRIMARY KEY, body TEXT NOT NULL)")
        self._db.execute("CREATE TABLE IF NOT EXISTS mirror (name TEXT PRIMARY KEY, value TEXT NOT NULL)")

    def note(self, name: str) -> str | None:
        """Return the note with the name, or None."""
        row = self._db.execute("SELECT value FROM mirror WHERE name = ?", (name,)).fetchone()
        return str(row[0]) if row else None

    def set_note(self, name: str, value: str | None) -> None:
        """Set a note, or delete it."""
        if value is None:
            self._db.execute("DELETE FROM mirror WHERE name = ?", (name,))
        else:
            self._db.execute("INSERT OR REPLACE INTO mirror VALUES (?, ?)", (name, value))

    def held(self, id: str) -> bytes | None:
        """Return the stored product, or None."""
        row = self._db.execute("SELECT body FROM products WHERE id = ?", (id,)).fetchone()
        return row[0].encode() if row else None

    def count(self) -> int:
        """Return the number of stored products."""
        return int(self._db.execute("SELECT count(*) FROM products").fetchone()[0])

    def apply(self, changed: Changed, cursor: str) -> None:
        """Store changes and cursor in one transaction."""
        with self._transaction():
            self.put((id, body) for id, body in changed.items() if body is not None)
            gone = [(id,) for id, body in changed.items() if body is None]
            self._db.executemany("DELETE FROM products WHERE id = ?", gone)
            self.set_note(CURSOR, cursor)

    def put(self, products: Iterable[tuple[str, bytes]]) -> None:
        """Store products."""
        rows = ((id, body.decode()) for id, body in products)
        self._db.executemany("INSERT OR REPLACE INTO products VALUES (?, ?)", rows)

    @contextmanager
    def loading(self, cursor: str) -> Iterator[Self]:
        """Replace all products in one transaction, so that concurrent readers see the previous state."""
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
        """Close the file."""
        self._db.close()


class FolderCopy:
    """Folder with products as `products/<id>.json`, each replaced atomically; notes are files, the cursor is written last."""

    def __init__(self, path: Path) -> None:
        self._notes, self._products = path, path / "products"
        self._products.mkdir(parents=True, exist_ok=True)
        self._seen: set[str] = set()
        for leftover in self._products.glob(".fresh*"):
            leftover.unlink()

    def note(self, name: str) -> str | None:
        """Return the note with the name, or None."""
        with suppress(FileNotFoundError):
            return (self._notes / name).read_text("utf-8")
        return None

    def set_note(self, name: str, value: str | None) -> None:
        """Set a note, or delete it."""
        if value is None:
            (self._notes / name).unlink(missing_ok=True)
        else:
            _write_atomically(self._notes / name, value.encode())

    def held(self, id: str) -> bytes | None:
        """Return the stored product, or None."""
        with suppress(FileNotFoundError):
            return self._path(id).read_bytes()
        return None

    def count(self) -> int:
        """Return the number of stored products."""
        return sum(1 for _ in self._products.glob("*.json"))

    def apply(self, changed: Changed, cursor: str) -> None:
        """Store the data before the cursor, so that after a crash the same changes are read again."""
        for id, body in changed.items():
            if body is None:
                self._path(id).unlink(missing_ok=True)
            else:
                _write_atomically(self._path(id), body)
        self.set_note(CURSOR, cursor)

    def put(self, products: Iterable[tuple[str, bytes]]) -> None:
        """Store products."""
        for id, body in products:
            _write_atomically(self._path(id), body)
            self._seen.add(id)

    @contextmanager
    def loading(self, cursor: str) -> Iterator[Self]:
        """Replace all products: others are removed at the end, before the cursor is set."""
        self._seen = set()
        yield self
        for path in self._products.glob("*.json"):
            if path.stem not in self._seen:
                path.unlink()
        self.set_note(CURSOR, cursor)

    def _path(self, id: str) -> Path:
        if not id.replace("_", "").isalnum() or not id.isascii():
            raise MirrorError(f"The service returned a product ID that is not a valid file name: {id!r}")
        return self._products / f"{id}.json"


def _write_atomically(path: Path, content: bytes) -> None:
    fresh = path.with_name(f".fresh-{path.name}")
    fresh.write_bytes(content)
    fresh.replace(path)


Copy = SqliteCopy | FolderCopy
"""A copy that can be killed at any time: its cursor is never ahead of its data."""


@contextmanager
def opened(path: Path) -> Iterator[Copy]:
    """Open the copy: an SQLite file by its suffix, else a folder. Raises MirrorError if it is locked or not writable."""
    is_file = path.suffix in SUFFIXES or path.is_file()
    try:
        (path.parent if is_file else path).mkdir(parents=True, exist_ok=True)
        with (path.with_name(path.name + ".lock") if is_file else path / ".lock").open("ab") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise MirrorError(f"Another mirror uses this copy ({lock.name} is locked).") from None
            if is_file:
                with closing(SqliteCopy(path)) as copy:
                    yield copy
            else:
                yield FolderCopy(path)
    except (OSError, sqlite3.Error) as error:
        raise MirrorError(f"The copy at {path} is not writable: {error}") from error
