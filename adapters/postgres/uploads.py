"""Uploads in PostgreSQL."""

from dataclasses import asdict

from adapters.postgres.session import Session
from adapters.postgres.sqlfile import statements
from domain.uploads.model import Upload

SQL = statements("uploads")


class PostgresUploadStore:
    """The tenant's uploads."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def get(self, id: str, *, lock: bool = False) -> Upload | None:
        """One upload."""
        row = await self._session.one(SQL["columns"] + (" FOR UPDATE" if lock else ""), id=id)
        return Upload(*row) if row else None

    async def add(self, upload: Upload) -> None:
        """Keep a new upload."""
        await self._session.run(SQL["add"], **asdict(upload))

    async def save(self, upload: Upload) -> None:
        """Keep its new state."""
        await self._session.run(SQL["save"], **asdict(upload))
