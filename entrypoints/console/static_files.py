"""The stylesheet, scripts and pictures of the console, under an address that changes with them, so that browsers keep them."""

from functools import cache
from hashlib import blake2b
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

from entrypoints.http.exchange import Response
from entrypoints.http.representations import is_packed, packed, put

PLACE: Final = "/console/static/"
KINDS: Final = {
    "css": b"text/css; charset=utf-8",
    "js": b"text/javascript; charset=utf-8",
    "svg": b"image/svg+xml",
    "txt": b"text/plain; charset=utf-8",
}


def _walk(folder: Traversable, prefix: str = "") -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for entry in folder.iterdir():
        if entry.is_dir():
            found |= _walk(entry, f"{prefix}{entry.name}/")
        elif entry.name.rpartition(".")[2] in KINDS:
            found[prefix + entry.name] = entry.read_bytes()
    return found


class StaticFiles:
    """All files, read once."""

    def __init__(self) -> None:
        self._files = _walk(files("entrypoints.console").joinpath("static"))
        digest = blake2b(digest_size=6)
        for name in sorted(self._files):
            digest.update(name.encode() + b"\0" + self._files[name])
        self.place = f"{PLACE}{digest.hexdigest()}/"
        self._packed: dict[str, bytes] = {}

    def address(self, name: str) -> str:
        """Where a file stands. Raises KeyError for one that there is not."""
        self._files[name]
        return self.place + name

    def find(self, path: str, accept_encoding: str | None) -> Response | None:
        """The file at a path below PLACE; an earlier version's address answers with the file as it is now, kept shortly."""
        digest, _, name = path.removeprefix(PLACE).partition("/")
        body = self._files.get(name)
        if body is None:
            return None
        lasting = self.place == f"{PLACE}{digest}/"
        answer = Response(
            200,
            [
                (b"content-type", KINDS[name.rpartition(".")[2]]),
                (b"cache-control", b"public, max-age=31536000, immutable" if lasting else b"no-cache"),
                (b"x-content-type-options", b"nosniff"),
                (b"cross-origin-resource-policy", b"same-origin"),
                (b"vary", b"Accept-Encoding"),
            ],
            body,
        )
        if is_packed(accept_encoding, len(body)):
            put(answer, self._small(name, body))
        answer.headers.append((b"content-length", str(len(answer.body)).encode()))
        return answer

    def _small(self, name: str, body: bytes) -> bytes:
        if name not in self._packed:
            self._packed[name] = packed(body)
        return self._packed[name]


@cache
def static_files() -> StaticFiles:
    """The files of this process."""
    return StaticFiles()
