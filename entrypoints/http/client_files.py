"""Serves the clients of the API at /docs/clients/: a wheel, an npm package and a collection of requests."""

from collections.abc import Mapping
from threading import Lock
from typing import Final

from entrypoints.clients.shipped import NAMES, shipped
from entrypoints.http.exchange import Response
from entrypoints.http.openapi import document
from entrypoints.http.public_file import OPEN, PublicFile
from entrypoints.http.table import Table

PLACE: Final = "/docs/clients/"
_KINDS: Final[Mapping[str, bytes]] = {
    "whl": b"application/zip",
    "tgz": b"application/gzip",
    "json": b"application/json",
}


class ClientFiles:
    """All of them are made when the first is asked for, which takes a tenth of a second; from then on they come from memory."""

    def __init__(self, table: Table, base_url: str, docs_url: str) -> None:
        self._described = (table, base_url.rstrip("/"), docs_url.rstrip("/"))
        self._files: Mapping[str, PublicFile] = {}
        self._making = Lock()

    @property
    def is_ready(self) -> bool:
        """Whether the files are in memory, so that finding one costs nothing."""
        return bool(self._files)

    def find(self, path: str, if_none_match: str) -> Response | None:
        """The file at the path, or None; 304 for those who have it."""
        name = path.removeprefix(PLACE)
        if name not in NAMES:
            return None
        if not self._files:
            with self._making:
                self._make()
        return self._files[name].answer(if_none_match)

    def _make(self) -> None:
        """All files, once; called by one thread at a time."""
        if not self._files:
            made = shipped(document(*self._described))
            self._files = {each: PublicFile(_KINDS[each.rpartition(".")[2]], made[each], OPEN) for each in NAMES}
