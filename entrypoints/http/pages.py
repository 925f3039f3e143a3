"""The pages that need no credential: the reference, the error codes, the machine-readable description."""

from entrypoints.http.exchange import HeaderList, Response
from entrypoints.http.table import Table


class Pages:
    """Rendered once, served from memory."""

    def __init__(self, table: Table, base_url: str, docs_url: str) -> None:
        self._pages: dict[str, Response] = {}

    def find(self, path: str, if_none_match: str) -> Response | None:
        """The page at the path."""
        headers: HeaderList = [(b"location", b"/docs")]
        return Response(302, headers) if path == "/" else self._pages.get(path)
