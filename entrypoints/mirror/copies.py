"""Copies of a catalogue that a mirror maintains: an SQLite file, or a folder with one file per product."""

import fcntl
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Self

from entrypoints.errors import CommandError

SQLITE_SUFFIXES = frozenset({".sqlite", ".sqlite3", ".db"})
"""Suffixes of SQLite files."""
CURSOR_NAME = "cursor"
"""Name under which the cursor of the change feed is stored."""
ChangedProducts = Mapping[str, bytes | None]
"""JSON of changed products by product ID; None for a removed product."""


class MirrorError(CommandError):
    """Failure of a mirror; the message names the reason and the remedy."""


class SqliteCopy:
    """Copy of a catalogue in an SQLite file, changed atomically by one process at a time.

    Products are in the table `products(id, body)`; the cursor and other values of the mirror are in `mirror(name, value)`.
    """

    def __init__(self, path: Path) -> None:
        self._db = sqlite3.connect(path, isolation_level=None)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = NORMAL")
        self._db.execute("CREATE TABLE IF NOT EXISTS products (id TEXT PRIMARY KEY, body TEXT NOT NULL)")
        self._db.execute("CREATE TABLE IF NOT EXISTS mirror (name TEXT PRIMARY KEY, value TEXT NOT NULL)")

    def get_value(self, name: str) -> str | None:
        """Return the mirror's value with the name, such as the cursor, or None."""
        row = self._db.execute("SELECT value FROM mirror WHERE name = ?", (name,)).fetchone()
        return str(row[0]) if row else None

    def set_value(self, name: str, value: str | None) -> None:
        """Store a value of the mirror under a name; None deletes the value."""
        if value is None:
            self._db.execute("DELETE FROM mirror WHERE name = ?", (name,))
        else:
            self._db.execute("INSERT OR REPLACE INTO mirror VALUES (?, ?)", (name, value))

    def get_product(self, id: str) -> bytes | None:
        """Return the JSON of the stored product, or None."""
        row = self._db.execute("SELECT body FROM products WHERE id = ?", (id,)).fetchone()
        return row[0].encode() if row else None

    def count_products(self) -> int:
        """Return the number of stored products."""
        return int(self._db.execute("SELECT count(*) FROM products").fetchone()[0])

    def apply_changes(self, changed: ChangedProducts, cursor: str) -> None:
        """Store the changed products, delete the removed ones, and set the cursor, in one transaction."""
        with self._transaction():
            self.put_products((id, body) for id, body in changed.items() if body is not None)
            removed_ids = [(id,) for id, body in changed.items() if body is None]
            self._db.executemany("DELETE FROM products WHERE id = ?", removed_ids)
            self.set_value(CURSOR_NAME, cursor)

    def put_products(self, products: Iterable[tuple[str, bytes]]) -> None:
        """Store products: pairs of ID and JSON."""
        rows = ((id, body.decode()) for id, body in products)
        self._db.executemany("INSERT OR REPLACE INTO products VALUES (?, ?)", rows)

    @contextmanager
    def replace_all(self, cursor: str) -> Iterator[Self]:
        """Replace all products by those that are stored within the context, and set the cursor at the end.

        The context is one transaction, so concurrent readers see the previous products until the end.
        """
        with self._transaction():
            self._db.execute("DELETE FROM products")
            yield self
            self.set_value(CURSOR_NAME, cursor)

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
    """Copy of a catalogue in a folder, whose files are replaced atomically.

    Products are in `products/<id>.json`; the cursor and other values of the mirror are files in the folder.
    """

    def __init__(self, path: Path) -> None:
        self._folder, self._products = path, path / "products"
        self._products.mkdir(parents=True, exist_ok=True)
        self._loaded_ids: set[str] = set()
        for leftover in self._products.glob(".fresh*"):
            leftover.unlink()

    def get_value(self, name: str) -> str | None:
        """Return the mirror's value with the name, such as the cursor, or None."""
        with suppress(FileNotFoundError):
            return (self._folder / name).read_text("utf-8")
        return None

    def set_value(self, name: str, value: str | None) -> None:
        """Store a value of the mirror under a name; None deletes the value."""
        if value is None:
            (self._folder / name).unlink(missing_ok=True)
        else:
            _write_atomically(self._folder / name, value.encode())

    def get_product(self, id: str) -> bytes | None:
        """Return the JSON of the stored product, or None."""
        with suppress(FileNotFoundError):
            return self._find_path(id).read_bytes()
        return None

    def count_products(self) -> int:
        """Return the number of stored products."""
        return sum(1 for _ in self._products.glob("*.json"))

    def apply_changes(self, changed: ChangedProducts, cursor: str) -> None:
        """Store the changed products, delete the removed ones, then set the cursor.

        After a crash before the end, the same changes are read and applied again.
        """
        for id, body in changed.items():
            if body is None:
                self._find_path(id).unlink(missing_ok=True)
            else:
                _write_atomically(self._find_path(id), body)
        self.set_value(CURSOR_NAME, cursor)

    def put_products(self, products: Iterable[tuple[str, bytes]]) -> None:
        """Store products: pairs of ID and JSON."""
        for id, body in products:
            _write_atomically(self._find_path(id), body)
            self._loaded_ids.add(id)

    @contextmanager
    def replace_all(self, cursor: str) -> Iterator[Self]:
        """Replace all products by those that are stored within the context.

        At the end, products that were not stored within the context are deleted, then the cursor is set.
        """
        self._loaded_ids = set()
        yield self
        for path in self._products.glob("*.json"):
            if path.stem not in self._loaded_ids:
                path.unlink()
        self.set_value(CURSOR_NAME, cursor)

    def _find_path(self, id: str) -> Path:
        """Return the file of the product. Raises MirrorError if the ID is not a valid file name."""
        if not id.replace("_", "").isalnum() or not id.isascii():
            raise MirrorError(f"The service returned a product ID that is not a valid file name: {id!r}")
        return self._products / f"{id}.json"


def _write_atomically(path: Path, content: bytes) -> None:
    temporary_path = path.with_name(f".fresh-{path.name}")
    temporary_path.write_bytes(content)
    temporary_path.replace(path)


CatalogueCopy = SqliteCopy | FolderCopy
"""Copy of a catalogue. After a crash at any time, the products are at least as new as the cursor."""


@contextmanager
def open_copy(path: Path) -> Iterator[CatalogueCopy]:
    """Open or create the copy at the path.

    The copy is an SQLite file if the path has one of SQLITE_SUFFIXES or is an existing file, else a folder.

    Raises:
        MirrorError: Another mirror uses the copy, or the copy is not writable.
    """
    is_file = path.suffix in SQLITE_SUFFIXES or path.is_file()
    try:
        (path.parent if is_file else path).mkdir(parents=True, exist_ok=True)
        with (path.with_name(path.name + ".lock") if is_file else path / ".lock").open("ab") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise MirrorError(
                    f"Another mirror uses this copy ({lock.name} is locked). Stop that mirror, or choose another copy with --to."
                ) from None
            if is_file:
                with closing(SqliteCopy(path)) as copy:
                    yield copy
            else:
                yield FolderCopy(path)
    except (OSError, sqlite3.Error) as error:
        raise MirrorError(f"Cannot write the mirror's copy of the catalogue at {path}: {error}") from error
