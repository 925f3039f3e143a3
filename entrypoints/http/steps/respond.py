"""From a handler's reply to a response: version's shape, ETag, 304, previews, replays, and the headers they share."""

from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final

import msgspec

from domain.kernel.plain import plain
from domain.kernel.versions import Versions
from entrypoints.http.content_coding import SUFFIX, is_packed, tag_of
from entrypoints.http.exchange import HeaderList, Response
from entrypoints.http.reply import Reply
from entrypoints.http.request_state import RequestState
from entrypoints.http.steps.preconditions import tags_of
from ports.idempotency import StoredAnswer
from ports.unit_of_work import Recorded

PREVIEW_TYPE: Final = b"application/vnd.furniops.preview+json"
LONGEST_TAGS: Final = 4096
"""Characters of an If-None-Match that is looked through; a longer one matches nothing, which costs its sender a body."""
encode: Final = msgspec.json.Encoder(decimal_format="number").encode


def hash_of(body: bytes) -> str:
    """The strong validator of a body: 96 bits of SHA-256, which processors compute faster than any other."""
    return sha256(body).hexdigest()[:24]


def is_unchanged(if_none_match: str, etag: str) -> bool:
    """Whether the client's If-None-Match (RFC 9110 §13.1.2, weak comparison) names the ETag, plain or packed.

    Nonsense matches nothing.
    """
    if if_none_match == etag or if_none_match.strip() == "*":
        return True
    if len(if_none_match) > LONGEST_TAGS:
        return False
    try:
        return etag[1:-1] in {text.removesuffix(SUFFIX) for _, text in tags_of(if_none_match)}
    except ValueError:
        return False


class ResponseBuilder:
    """Makes the answers of operations that did what was asked."""

    def __init__(self, versions: Versions) -> None:
        self._versions = versions
        self._names = {date: (b"service-version", date.encode()) for date in versions.dates}

    def success(self, state: RequestState, reply: Reply) -> Response:
        """The reply as a response; 304 when the client holds the representation already."""
        if reply.stream is not None:
            return self._streamed(state, reply)
        body, rewritten = self._body(reply.body, state.version)
        status = reply.status or state.operation.status
        if reply.body is None:
            return Response(status, self._headers(state, reply, state.route.not_modified))
        headers = self._headers(state, reply, state.route.headers)
        if state.route.reads or reply.version is not None:
            etag = self._etag(reply, body, state.version if rewritten else "")
            headers.append((b"etag", etag.encode()))
            held = state.request.headers.get("if-none-match") if state.route.reads else None
            if held is not None and is_unchanged(held, etag):
                accepted = state.request.headers.get("accept-encoding")
                return self._not_modified(state, tag_of(etag, gzip=is_packed(accepted, len(body))))
        return Response(status, headers, body)

    def _streamed(self, state: RequestState, reply: Reply) -> Response:
        """The head of a stream; its pieces are made by whoever keeps the open ones."""
        state.stream = None if state.request.method == "HEAD" else reply.stream
        return Response(state.operation.status, self._headers(state, reply, state.route.headers))

    def _body(self, value: Any, version: str) -> tuple[bytes, bool]:
        """The body's bytes in the version's shape, and whether it had to be rewritten."""
        made: bytes = value if isinstance(value, bytes) else encode(value)
        if value is None or self._versions.unchanged(version):
            return made, False
        return encode(self._versions.shape(msgspec.json.decode(made), version)), True

    @staticmethod
    def _etag(reply: Reply, body: bytes, shape: str) -> str:
        text = f"{reply.etag}{shape}" if reply.etag is not None else hash_of(body)
        if reply.etag_source is not None:
            text = hash_of(encode(reply.etag_source)) + shape
        return f'"{text}"' if reply.version is None else f'"{reply.version}-{text}"'

    def _headers(self, state: RequestState, reply: Reply, shared: HeaderList) -> HeaderList:
        headers = [*shared, self._names[state.version]]
        for name, value in reply.headers.items():
            headers.append((name.lower().encode(), value.encode("latin-1")))
        if state.dry_run is not None:
            headers.append((b"service-dry-run", state.dry_run.encode()))
        return headers

    def _not_modified(self, state: RequestState, etag: str) -> Response:
        headers = [*state.route.not_modified, self._names[state.version], (b"etag", etag.encode())]
        return Response(304, headers)

    def preview(self, state: RequestState, recorded: Recorded) -> Response:
        """What the operation would do (docs/conventions.md#dry-run-and-explain)."""
        headers = self._headers(state, Reply(), state.route.not_modified)
        headers.append((b"content-type", PREVIEW_TYPE))
        return Response(200, headers, encode(preview_of(state.operation.id, recorded)))

    def replay(self, state: RequestState, stored: StoredAnswer) -> Response:
        """The stored answer once more."""
        kept = [(name.encode(), value.encode("latin-1")) for name, value in stored.headers]
        headers = [*state.route.not_modified, *kept, (b"idempotent-replayed", b"true")]
        if stored.status >= 400:
            state.error_code = msgspec.json.decode(stored.body).get("code")
        return Response(stored.status, headers, stored.body)


def preview_of(operation: str, recorded: Recorded) -> Mapping[str, Any]:
    """The preview's JSON."""
    return {
        "object": "preview",
        "operation": operation,
        "allowed": True,
        "changes": [
            {"object": change.object, "id": change.id, "action": change.action, "fields": change.fields()}
            for change in recorded.changes
        ],
        "events": [{"type": event.type, "subject": event.subject} for event in recorded.events],
        "jobs": [{"kind": job.kind, "subject": job.lane.partition(":")[2] or job.lane} for job in recorded.jobs],
        "warnings": list(recorded.warnings),
        **plain(recorded.forecasts),
    }
