"""Representations of resources (RFC 9110 §3.2): entity tags, gzip compression (ADR 35), and public files.

The module also contains OAuth metadata of resources, and SingleThreadExecutor, with which the API builds public pages.
"""

import asyncio
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, lru_cache
from hashlib import sha256
from threading import BoundedSemaphore
from typing import TypeVar

import msgspec
from isal import isal_zlib

from domain.kernel.errors import Overloaded
from entrypoints.http.exchange import HeaderList, Response

MIN_COMPRESSED_BYTES = 1024
"""Minimum size in bytes of a response that is compressed."""
MAX_INLINE_BYTES = 256 << 10
"""Maximum bytes of a body that is compressed on the event loop (in about 0.2 ms) instead of in a thread."""
MAX_ACCEPT_ENCODING_CHARS = 500
"""Maximum characters of an Accept-Encoding header that is parsed; browsers send 30."""
GZIP_SUFFIX = "-gzip"
"""Suffix of the ETag of a compressed response, inside the quotation marks."""
GZIP = (b"content-encoding", b"gzip")
_COMPRESSION_LEVEL = 1
"""Compression level of isal_zlib, from 0 (fastest) to 3 (smallest result)."""
_WINDOW_BITS = 31
"""zlib's window bits for the gzip format and the largest window."""
_ETAG = b"etag"
_GZIP_NAMES = frozenset({"gzip", "x-gzip"})


MAX_IF_NONE_MATCH_CHARS = 4096
"""Maximum characters of an If-None-Match header that is parsed; a longer one matches no ETag."""
_TAG = re.compile(r'\s*(W/)?"([\x21\x23-\x7e\x80-\xff]*)"\s*(?:,|$)')


def compute_etag(body: bytes) -> str:
    """Return a strong ETag of a body, without quotation marks: the first 24 hexadecimal digits of its SHA-256."""
    return sha256(body).hexdigest()[:24]


def contains_etag(if_none_match: str, etag: str) -> bool:
    """Return whether an If-None-Match header (RFC 9110 §13.1.2) contains the ETag, with or without the gzip suffix.

    Args:
        if_none_match: The value of the header; a malformed value contains no ETag.
        etag: The ETag of the uncompressed body, in quotation marks.
    """
    if if_none_match == etag or if_none_match.strip() == "*":
        return True
    if len(if_none_match) > MAX_IF_NONE_MATCH_CHARS:
        return False
    try:
        return etag[1:-1] in {text.removesuffix(GZIP_SUFFIX) for _, text in parse_entity_tags(if_none_match)}
    except ValueError:
        return False


def parse_entity_tags(header: str) -> list[tuple[bool, str]]:
    """Parse a list of entity tags; return a pair for each: whether it is weak, and its text.

    Raises ValueError if the list is malformed.
    """
    tags, position = [], 0
    while position < len(header):
        match = _TAG.match(header, position)
        if match is None:
            raise ValueError(header)
        tags.append((match[1] is not None, match[2]))
        position = match.end()
    return tags


def _parse_weight(parameters: str) -> float:
    """Return the weight `q` in the parameters of a content coding; 1 if there is no `q`, 0 if it is malformed."""
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "q":
            text = value.strip()
            return min(float(text), 1.0) if text.replace(".", "", 1).isdecimal() and text.isascii() else 0.0
    return 1.0


@lru_cache(maxsize=256)  # clients choose the text
def find_compression_threshold(accept_encoding: str) -> int | None:
    """Return the minimum size in bytes of bodies that are compressed with gzip for this Accept-Encoding header.

    Returns 1 if the client accepts compressed bodies only, None if it does not accept gzip.
    """
    weights: dict[str, float] = {}
    for entry in accept_encoding.split(","):
        name, _, parameters = entry.partition(";")
        weights[name.strip().lower()] = _parse_weight(parameters)
    other_weight = weights.get("*")
    gzip_weights = [weights[name] for name in _GZIP_NAMES if name in weights]
    gzip_weight = max(gzip_weights) if gzip_weights else (other_weight or 0.0)
    identity_weight = weights.get("identity", 0.0 if other_weight == 0 else None)
    if gzip_weight == 0 or (identity_weight is not None and identity_weight > gzip_weight):
        return None
    return 1 if identity_weight == 0 else MIN_COMPRESSED_BYTES


def should_compress(accept_encoding: str | None, size: int) -> bool:
    """Return whether a body of `size` bytes is compressed with gzip for this Accept-Encoding header."""
    if accept_encoding is None or len(accept_encoding) > MAX_ACCEPT_ENCODING_CHARS:
        return False
    min_size = find_compression_threshold(accept_encoding)
    return min_size is not None and size >= min_size


def compress(body: bytes) -> bytes:
    """Compress a body with gzip; the result depends only on the body."""
    compressed: bytes = isal_zlib.compress(body, _COMPRESSION_LEVEL, _WINDOW_BITS)
    return compressed


def build_representation_etag(etag: str, *, is_compressed: bool) -> str:
    """Return the ETag of the compressed body if `is_compressed`, else `etag`, which is the ETag of the uncompressed body."""
    return f'{etag[:-1]}{GZIP_SUFFIX}"' if is_compressed else etag


def apply_compression(response: Response, body: bytes) -> None:
    """Replace the body of the response by the compressed `body`, and adjust ETag and Content-Encoding."""
    response.body = body
    response.headers = [
        (name, build_representation_etag(value.decode(), is_compressed=True).encode())
        if name == _ETAG
        else (name, value)
        for name, value in response.headers
    ]
    response.headers.append(GZIP)


class PublicFile:
    """File that is served without a credential, with its response headers.

    Args:
        media_type: The Content-Type.
        body: The uncompressed contents.
        headers: Headers in addition to those of every public file.
        allows_gzip: Whether the file is sent compressed to clients that accept gzip.
    """

    def __init__(self, media_type: bytes, body: bytes, headers: HeaderList, *, allows_gzip: bool = False) -> None:
        self._media_type, self._body, self._allows_gzip = media_type, body, allows_gzip
        self._etag = f'"{compute_etag(body)}"'
        self._headers: HeaderList = [
            (b"cache-control", b"public, max-age=300"),
            (b"x-content-type-options", b"nosniff"),
            *headers,
        ]
        if allows_gzip:
            self._headers.append((b"vary", b"Accept-Encoding"))

    @cached_property
    def _compressed_body(self) -> bytes:
        return compress(self._body)

    def respond(self, if_none_match: str = "", accept_encoding: str | None = None) -> Response:
        """Return the response with the file, or with status 304 if the client's copy is current."""
        is_compressed = self._allows_gzip and should_compress(accept_encoding, len(self._body))
        if if_none_match and contains_etag(if_none_match, self._etag):
            return Response(
                304,
                [
                    *self._headers,
                    (b"etag", build_representation_etag(self._etag, is_compressed=is_compressed).encode()),
                ],
            )
        length = str(len(self._compressed_body if is_compressed else self._body)).encode()
        own_headers = [(b"content-type", self._media_type), (b"etag", self._etag.encode()), (b"content-length", length)]
        response = Response(200, [*own_headers, *self._headers], self._body)
        if is_compressed:
            apply_compression(response, self._compressed_body)
        return response


OPEN_CORS_HEADERS: HeaderList = [(b"access-control-allow-origin", b"*")]
"""Header for files that scripts of any website may read."""


GUIDE_PATH = "/docs/guides/oauth"
"""Path of the OAuth guide in the documentation."""
METADATA_PATH = "/.well-known/oauth-protected-resource"
"""Path of the OAuth metadata of a protected resource (RFC 9728)."""


def build_metadata_url(base_url: str, path: str = "") -> str:
    """Return the URL of the OAuth metadata of the resource at `path`, such as `/mcp` (RFC 9728 §3.1)."""
    return base_url.rstrip("/") + METADATA_PATH + path


def build_resource_metadata(
    base_url: str, path: str = "", scopes: Sequence[str] = (), guide: str = GUIDE_PATH
) -> PublicFile:
    """Return the file with the OAuth metadata of the resource at `path` (RFC 9728 §2).

    Args:
        base_url: The service's URL.
        path: The resource's path.
        scopes: The scopes that apps should request for the resource.
        guide: The path of the resource's documentation.
    """
    base = base_url.rstrip("/")
    document: dict[str, object] = {
        "resource": base + path,
        "authorization_servers": [base],
        "resource_name": "Joinery",
        "bearer_methods_supported": ["header"],
        "resource_documentation": f"{base}{guide}",
    }
    if scopes:
        document["scopes_supported"] = list(scopes)
    return PublicFile(b"application/json", msgspec.json.encode(document), OPEN_CORS_HEADERS)


T = TypeVar("T")

MAX_QUEUED_TASKS = 16
"""Default of the maximum number of tasks of a SingleThreadExecutor that run or wait."""


class SingleThreadExecutor:
    """Executor that runs tasks one after the other in one thread. Tasks beyond `max_tasks` are rejected."""

    def __init__(self, name: str, max_tasks: int = MAX_QUEUED_TASKS) -> None:
        self._executor = ThreadPoolExecutor(1, name)
        self._slots = BoundedSemaphore(max_tasks)

    async def run(self, work: Callable[..., T], *args: object) -> T:
        """Run `work(*args)` in the thread; return its result, or raise its error.

        Raises Overloaded if `max_tasks` tasks already run or wait.
        """
        if not self._slots.acquire(blocking=False):
            raise Overloaded(retry_after=1)
        try:
            future = self._executor.submit(work, *args)
        except BaseException:
            self._slots.release()
            raise
        future.add_done_callback(lambda _: self._slots.release())
        return await asyncio.wrap_future(future)
