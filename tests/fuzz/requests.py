"""Requests to any operation from the OpenAPI document: valid, partly invalid and invalid."""

import http.client
import json
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any
from urllib.parse import quote

from hypothesis import strategies as st

from tests.fuzz.values import HOSTILE, build_values, mutate

Json = dict[str, Any]
DIGITS = "0" * 22
_ODD = tuple(dict.fromkeys(value if isinstance(value, str) else json.dumps(value) for value in HOSTILE))
ODD = tuple(text[:3_000] for text in _ODD)
ODD_BYTES = (
    b"", b"\0", b"\xff\xfe", b"%", b"%zz", b"%00", b"%ff", b"%ed%a0%80", b"+", b"\t", b"\x7f", b"\x1b[0m", "\u00e9".encode(), b"a" * 4_000,
    b"..", b"%2e%2e%2f", b"%2F", b"//", b"&", b"=", b"&&", b"#", b"?", b"limit=1&limit=2", b"limit[]=1", b"limit=%31", b";", b"*", b'"', b'""',
    b'W/"1-x"', b'"1-x", *', b'"' * 90, b"1, 2, 3", b"\\", b"req_" + b"0" * 22, b"true", b"TRUE", b"explain", b"true, explain", b"live", b"test",
    b"2026-10-01", b"1970-01-01", b"99999999999999999999",
)  # fmt: skip
_TYPES = (
    b"text/plain", b"application/json; charset=latin1", b"application/json;charset=utf-8", b"APPLICATION/JSON", b"application/json,", b"",
    b"multipart/form-data; boundary=x", b"application/xml", b"application/problem+json", b"a/b/c", b"\xff", b"application/json; " + b"x" * 3_000,
)  # fmt: skip


PARTS = frozenset({"path", "query", "headers", "body"})
FRESH = b"fresh"
"""Placeholder that is replaced by a new Idempotency-Key."""
_KEYS = count(1)


@dataclass(frozen=True)
class FuzzRequest:
    """Request as bytes; `path` and `query` as in the request line."""

    operation: str
    method: str
    path: bytes
    query: bytes
    headers: Sequence[tuple[bytes, bytes]]
    body: bytes | None
    surplus: int = 0
    """Bytes by which Content-Length exceeds the body."""

    def encode(self, secret: str) -> bytes:
        """Return the request with that credential."""
        target = self.path + (b"?" + self.query if self.query else b"")
        lines = [self.method.encode() + b" " + target + b" HTTP/1.1", b"Host: localhost", b"Connection: close"]
        lines.append(b"Authorization: Bearer " + secret.encode())
        lines += [name + b": " + (b"k%d" % next(_KEYS) if value == FRESH else value) for name, value in self.headers]
        if self.body is not None:
            lines.append(b"Content-Length: %d" % max(0, len(self.body) + self.surplus))
        return (
            b"\r\n".join(line.replace(b"\r", b"").replace(b"\n", b"") for line in lines)
            + b"\r\n\r\n"
            + (self.body or b"")
        )


@dataclass(frozen=True)
class FuzzResponse:
    """Response; of a stream the head and the data that arrives at once."""

    status: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)

    def json(self) -> Any:
        """Return the decoded body."""
        return json.loads(self.body)


def send_request(port: int, request: FuzzRequest, secret: str) -> FuzzResponse | None:
    """Send the request on a new connection; return None if the server closed it without a response."""
    with socket.create_connection(("127.0.0.1", port), timeout=40) as line:
        try:
            line.sendall(request.encode(secret))
            line.shutdown(socket.SHUT_WR) if request.surplus > 0 else None
        except OSError:
            pass  # the server responded and closed before the whole request was sent
        answer = http.client.HTTPResponse(line, method=request.method)
        try:
            answer.begin()
            named = {name.lower(): value for name, value in answer.getheaders()}
            body = b"" if named.get("content-type", "").startswith("text/event-stream") else answer.read()
        except (ConnectionError, http.client.RemoteDisconnected):
            return None
        return FuzzResponse(answer.status, named, body)


class RequestGenerator:
    """Generator of requests from the OpenAPI document."""

    def __init__(self, document: Json, ids: Mapping[str, Sequence[str]]) -> None:
        """`ids` are existing IDs by prefix, of the caller and of others."""
        self.document, self._ids = document, ids
        self._others = [one for known in ids.values() for one in known]

    def list_operations(self) -> list[tuple[str, str, str]]:
        """Return ID, method and path of every operation."""
        paths = self.document["paths"]
        return [
            (row["operationId"], method.upper(), path) for path, item in paths.items() for method, row in item.items()
        ]

    def build_requests(self, method: str, path: str) -> st.SearchStrategy[FuzzRequest]:
        """Return requests that are valid, have one arbitrary part, or have arbitrary parts only."""
        wild = [frozenset[str](), *(frozenset({part}) for part in sorted(PARTS)), PARTS]
        return st.one_of([self._build_request(method, path, parts) for parts in wild])

    def _build_request(self, method: str, path: str, wild: frozenset[str]) -> st.SearchStrategy[FuzzRequest]:
        row = self.document["paths"][path][method.lower()]
        parameters = [self._resolve(parameter) for parameter in row["parameters"]]
        of = {where: [one for one in parameters if one["in"] == where] for where in ("path", "query", "header")}
        return st.builds(
            lambda made, query, headers, content, surplus: FuzzRequest(
                row["operationId"], method, made, query, [*headers, *content[0]], content[1], surplus
            ),
            self._build_path(path, of["path"], "path" in wild),
            self._build_query(of["query"]) if "query" in wild else self._build_valid_query(of["query"]),
            self._build_headers(of["header"]) if "headers" in wild else self._build_valid_headers(of["header"]),
            self._build_body(row, "body" in wild),
            st.sampled_from([0] * 30 + [1, -1]) if "body" in wild and "requestBody" in row else st.just(0),
        )

    def _build_valid_query(self, parameters: list[Json]) -> st.SearchStrategy[bytes]:
        known = {
            one["name"]: self._build_known_values(one["schema"]).map(_quote)
            for one in parameters
            if one["name"] != "wait" and one["schema"].get("format") != "cursor"
        }
        return st.fixed_dictionaries({}, optional=known).map(
            lambda values: b"&".join(name.encode() + b"=" + value for name, value in list(values.items())[:3])
        )

    def _build_valid_headers(self, parameters: list[Json]) -> st.SearchStrategy[list[tuple[bytes, bytes]]]:
        made: list[tuple[bytes, bytes]] = []
        for parameter in parameters:
            if parameter["name"] == "If-Match":
                made.append((b"If-Match", b"*"))
            elif parameter["name"] == "Idempotency-Key":
                made.append((b"Idempotency-Key", FRESH))
        dry = any(parameter["name"] == "Service-Dry-Run" for parameter in parameters)
        tried = [[], [], [(b"Service-Dry-Run", b"true")], [(b"Service-Dry-Run", b"explain")]] if dry else [[]]
        return st.sampled_from(tried).map(lambda more: made + more)

    def _resolve(self, parameter: Json) -> Json:
        if "$ref" in parameter:
            found: Json = self.document["components"]["parameters"][parameter["$ref"].rpartition("/")[2]]
            return found
        return parameter

    def _build_known_values(self, schema: Json) -> st.SearchStrategy[str]:
        """Return IDs of the kind that the schema requires, or another value that it allows."""
        prefix = str(schema.get("pattern", "")).lstrip("^").partition("_")[0]
        known = self._ids.get(prefix)
        return st.sampled_from([*known, *known, f"{prefix}_{DIGITS}"]) if known else build_values(schema).map(_format)

    def _build_path(self, path: str, parameters: list[Json], wild: bool) -> st.SearchStrategy[bytes]:
        anything = st.one_of(
            st.sampled_from(ODD).map(_quote),
            st.sampled_from(ODD_BYTES),
            st.sampled_from(self._others).map(str.encode),
        )
        parts = [
            anything if wild else self._build_known_values(parameter["schema"]).map(str.encode)
            for parameter in parameters
        ]
        names = [parameter["name"] for parameter in parameters]

        def fill_path(values: tuple[bytes, ...]) -> bytes:
            filled = path.encode()
            for name, value in zip(names, values, strict=True):
                filled = filled.replace(b"{" + name.encode() + b"}", value)
            return filled.replace(b" ", b"%20").replace(b"?", b"%3F")

        return st.tuples(*parts).map(fill_path)

    def _build_query(self, parameters: list[Json]) -> st.SearchStrategy[bytes]:
        if not parameters:
            return st.sampled_from([b""] * 8 + [b"a=1", b"limit=1", b"&", b"\xff"])
        named = {parameter["name"]: parameter["schema"] for parameter in parameters}
        pairs = []
        for name, schema in named.items():
            known = st.sampled_from(["0", "1", "x"]) if name == "wait" else self._build_known_values(schema)
            odd = st.sampled_from(ODD).map(_quote) if name != "wait" else st.just(b"-1")
            value = st.one_of(known.map(_quote), known.map(_quote), odd, st.sampled_from(ODD_BYTES[:20]))
            pairs.append(value.map(lambda text, name=name: name.encode() + b"=" + text))  # type: ignore[misc]
        wild = st.sampled_from(ODD_BYTES).map(lambda text: text.replace(b" ", b"+"))
        return (
            st.lists(st.one_of(*pairs, *pairs, wild), max_size=4)
            .map(b"&".join)
            .map(lambda text: text.replace(b" ", b"%20"))
        )

    def _build_headers(self, parameters: list[Json]) -> st.SearchStrategy[list[tuple[bytes, bytes]]]:
        made = []
        for parameter in parameters:
            name, schema = parameter["name"].encode(), parameter["schema"]
            good = build_values(schema).map(lambda value: str(value).encode("ascii", "ignore"))
            if name == b"If-Match":
                good = st.sampled_from([b"*", b'"1-x"', b'"2-y"'])
            if name == b"Idempotency-Key":
                good = st.sampled_from([FRESH, FRESH, b"k-again"])
            value = st.one_of(good, good, good, st.sampled_from(ODD_BYTES)).map(lambda text, name=name: [(name, text)])  # type: ignore[misc]
            often = parameter["required"] or name in (b"If-Match", b"Idempotency-Key")
            absent = st.just(list[tuple[bytes, bytes]]())
            made.append(st.one_of(value, value, value, value, absent) if often else st.one_of(absent, absent, value))
        odd = st.sampled_from(
            [
                b"X-Odd",
                b"Accept",
                b"User-Agent",
                b"Expect",
                b"Upgrade",
                b"Service-Nothing",
                b"Cookie",
                b"Accept-Encoding",
            ]
        )
        extra = st.lists(st.tuples(odd, st.sampled_from(ODD_BYTES)), max_size=1)
        return st.tuples(*made, extra).map(lambda lists: [pair for pairs in lists for pair in pairs])

    def _build_body(self, row: Json, wild: bool) -> st.SearchStrategy[tuple[list[tuple[bytes, bytes]], bytes | None]]:
        typed = st.just([(b"Content-Type", b"application/json")])
        media = row.get("requestBody", {}).get("content", {}).get("application/json")
        if media is None:
            junk = st.sampled_from([b"{}", b"[]", b"\xff", b"null", b" ", b"[" * 40_000])
            return st.tuples(typed, junk if wild else st.none())
        good = st.one_of(build_values(media["schema"]), st.just(media["examples"]["usual"]["value"]))
        if not wild:
            return st.tuples(typed, good.map(_encode))
        broken = st.tuples(good.map(_encode), st.floats(0, 1), st.sampled_from(_BROKEN))
        types = st.sampled_from(_TYPES).map(lambda value: [(b"Content-Type", value)])
        return st.one_of(
            st.tuples(typed, good.flatmap(mutate).map(_encode)),
            st.tuples(typed, good.flatmap(mutate).map(_encode)),
            st.tuples(typed, broken.map(lambda given: given[2](*given[:2]))),
            st.tuples(types, good.map(_encode)),
        )


def _encode(value: Any) -> bytes:
    return json.dumps(value).encode()


def _quote(text: str) -> bytes:
    return quote(text.encode("utf-8", "surrogatepass"), safe="").encode()


def _format(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _build_insertion(piece: bytes) -> Any:
    return lambda body, place: body[: int(place * len(body))] + piece + body[int(place * len(body)) :]


_BROKEN = (
    lambda body, place: body[: int(place * len(body))],
    lambda body, place: body.replace(b'":', b'": 1, "a":', 1),
    lambda body, place: b"\xef\xbb\xbf" + body,
    lambda body, place: body.decode().encode("utf-16"),
    lambda body, place: body * 2,
    lambda body, place: b"[" * 40_000 + body,
    lambda body, place: b'{"a":' * 100 + body + b"}" * 100,
    lambda body, place: body[:-1] + b',"name":1,"name":2}',
    lambda body, place: b'{"a":[' + b"0," * 200_000 + b"0]}",
    lambda body, place: b"{" + b",".join(b'"%d":{}' % number for number in range(30_000)) + b"}",
    lambda body, place: b'{"records":[' + b",".join([b"{}"] * 60_000) + b"]}",
    *(_build_insertion(piece) for piece in (b"\0", b"\xff", b'"', b"\\u0000", b"\\ud800", b"NaN", b"1e999999", b"9" * 6_000, b"//", b",", b"{", b"}", b"\x1e")),
)  # fmt: skip
