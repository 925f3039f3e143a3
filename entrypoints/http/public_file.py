"""A file that anybody may read: its validator, 304, gzip for those who ask for it, and the headers that go with it."""

from functools import cached_property

from entrypoints.http.content_coding import is_packed, packed, put, tag_of
from entrypoints.http.exchange import HeaderList, Response
from entrypoints.http.steps.respond import hash_of, is_unchanged


class PublicFile:
    """One file. `headers` are those beside the usual ones; one that `packs` is answered in gzip to whoever asks for it."""

    def __init__(self, kind: bytes, body: bytes, headers: HeaderList, *, packs: bool = False) -> None:
        self._kind, self._body, self._packs = kind, body, packs
        self._etag = f'"{hash_of(body)}"'
        self._headers: HeaderList = [
            (b"cache-control", b"public, max-age=300"),
            (b"x-content-type-options", b"nosniff"),
            *headers,
        ]
        if packs:
            self._headers.append((b"vary", b"Accept-Encoding"))

    @cached_property
    def _small(self) -> bytes:
        return packed(self._body)

    def answer(self, if_none_match: str = "", accept_encoding: str | None = None) -> Response:
        """The file; 304 for those who have it."""
        gzip = self._packs and is_packed(accept_encoding, len(self._body))
        if if_none_match and is_unchanged(if_none_match, self._etag):
            return Response(304, [*self._headers, (b"etag", tag_of(self._etag, gzip=gzip).encode())])
        length = str(len(self._small if gzip else self._body)).encode()
        own = [(b"content-type", self._kind), (b"etag", self._etag.encode()), (b"content-length", length)]
        answer = Response(200, [*own, *self._headers], self._body)
        if gzip:
            put(answer, self._small)
        return answer


OPEN: HeaderList = [(b"access-control-allow-origin", b"*")]
"""For files that programs of any website may read."""
