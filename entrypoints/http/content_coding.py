"""Answers in gzip for those who ask for it (RFC 9110 §8.4, §12.5.3), with a validator of their own (ADR 35)."""

from functools import lru_cache
from typing import Final

from isal import isal_zlib

from entrypoints.http.exchange import Response

LEAST: Final = 1024
"""Bytes from which on an answer is worth packing."""
INLINE: Final = 256 << 10
"""Bytes up to which an answer is packed at once: some 0.2 ms. Larger ones are packed beside the event loop."""
LONGEST: Final = 500
"""Characters of an Accept-Encoding that is looked at; browsers send 30."""
SUFFIX: Final = "-gzip"
"""What the ETag of a packed answer has inside its quotes, behind that of the plain one."""
GZIP: Final = (b"content-encoding", b"gzip")
_LEVEL: Final = 1
_FORMAT: Final = 31
"""zlib's number for a gzip header around the largest window."""
_ETAG: Final = b"etag"
_NAMES: Final = frozenset({"gzip", "x-gzip"})


def _quality(parameters: str) -> float:
    """The weight among a coding's parameters; 1 when there is none, 0 when it cannot be read."""
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "q":
            text = value.strip()
            return min(float(text), 1.0) if text.replace(".", "", 1).isdecimal() and text.isascii() else 0.0
    return 1.0


def least_size(accept_encoding: str) -> int | None:
    """From how many bytes on an answer is packed by that Accept-Encoding: 1 when it may not go plain, None for never."""
    return None if len(accept_encoding) > LONGEST else _least_size(accept_encoding)


@lru_cache(maxsize=256)  # clients choose the text
def _least_size(accept_encoding: str) -> int | None:
    weights: dict[str, float] = {}
    for entry in accept_encoding.split(","):
        name, _, parameters = entry.partition(";")
        weights[name.strip().lower()] = _quality(parameters)
    others = weights.get("*")
    given = [weights[name] for name in _NAMES if name in weights]
    packed = max(given) if given else (others or 0.0)
    plain = weights.get("identity", 0.0 if others == 0 else None)
    if packed == 0 or (plain is not None and plain > packed):
        return None
    return 1 if plain == 0 else LEAST


def is_packed(accept_encoding: str | None, size: int) -> bool:
    """Whether a body of that many bytes is answered in gzip."""
    if accept_encoding is None:
        return False
    least = least_size(accept_encoding)
    return least is not None and size >= least


def packed(body: bytes) -> bytes:
    """The body in gzip; the same bytes for the same body."""
    made: bytes = isal_zlib.compress(body, _LEVEL, _FORMAT)
    return made


def tag_of(etag: str, *, gzip: bool) -> str:
    """The ETag of that form of the representation."""
    return f'{etag[:-1]}{SUFFIX}"' if gzip else etag


def put(response: Response, body: bytes) -> None:
    """Answer the packed body in place of the plain one."""
    response.body = body
    response.headers = [
        (name, tag_of(value.decode(), gzip=True).encode()) if name == _ETAG else (name, value)
        for name, value in response.headers
    ]
    response.headers.append(GZIP)
