"""API client over the network with methods for sources, files, records, runs and complete lists."""

import http.client
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any
from urllib.parse import urlencode, urlsplit

from tests.http.client import Response

_KEYS = count(1)
_OPEN = ("queued", "running", "waiting")


@dataclass(frozen=True)
class ApiClient:
    """Client of the API on a local port, with one credential."""

    port: int
    secret: str | None

    def is_ready(self) -> bool:
        """Return whether /readyz responds 200."""
        try:
            return self.send("GET", "/readyz").status == 200
        except OSError:
            return False

    def send(self, method: str, target: str, body: bytes | None = None, **headers: str) -> Response:
        """Send a request on a new connection; header names have underscores for hyphens."""
        named = {"Authorization": f"Bearer {self.secret}"} if self.secret else {}
        named |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request(method, target, body, named)
            answer = connection.getresponse()
            content = answer.read()
        finally:
            connection.close()
        return Response(answer.status, {name.lower(): value for name, value in answer.getheaders()}, content)

    def call(self, method: str, target: str, value: Any = None, **headers: str) -> Response:
        """Send JSON; a POST gets a new Idempotency-Key."""
        if method == "POST":
            headers = {"Idempotency_Key": f"k{time.time_ns()}-{next(_KEYS)}"} | headers
        if value is None:
            return self.send(method, target, None, **headers)
        return self.send(method, target, json.dumps(value).encode(), **{"Content_Type": "application/json"} | headers)

    def get(self, target: str, **query: Any) -> Any:
        """Return the response of a GET, which must succeed."""
        answer = self.call("GET", target + ("?" + urlencode(query) if query else ""))
        assert answer.status == 200, answer.body
        return answer.json()

    def post(self, target: str, value: Any = None, expect: int | None = None) -> Any:
        """Return the response of a POST, which must succeed (or have the expected status)."""
        answer = self.call("POST", target, value)
        assert answer.status == expect if expect else answer.status in (200, 201, 202), answer.body
        return answer.json()

    def create_source(self, kind: str, **fields: Any) -> str:
        """Create a source and return its ID."""
        body = {"name": f"A {kind} source", "kind": kind, **fields}
        return str(self.post("/v1/sources", body)["id"])

    def patch_source(self, source: str, **changes: Any) -> Any:
        """Change a source with `If-Match: *`."""
        answer = self.call("PATCH", f"/v1/sources/{source}", changes, If_Match="*")
        assert answer.status == 200, answer.body
        return answer.json()

    def upload_file(
        self, source: str, content: bytes, filename: str = "feed.csv", content_type: str = "text/csv"
    ) -> str:
        """Announce, PUT and complete an upload; return the run's ID."""
        announcement = {"filename": filename, "content_type": content_type, "bytes": len(content)}
        upload = self.post(f"/v1/sources/{source}/uploads", announcement)
        put = self.put_file(upload["target"], content)
        assert put.status in (200, 201, 204), put.body
        return str(self.post(f"/v1/uploads/{upload['id']}/complete")["run"])

    def put_file(self, target: Any, content: bytes) -> Response:
        """PUT bytes to the target of an upload, with exactly its headers and without credential."""
        parts = urlsplit(target["url"])
        connection = http.client.HTTPConnection(parts.netloc, timeout=20)
        try:
            connection.request("PUT", f"{parts.path}?{parts.query}", content, target["headers"])
            answer = connection.getresponse()
            return Response(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def import_file(self, source: str, content: bytes, filename: str = "feed.csv") -> Any:
        """Upload a file and wait for the end of its run."""
        return self.wait_for_end(self.upload_file(source, content, filename))

    def pull(self, source: str, **options: Any) -> Any:
        """Start a run and wait for its end."""
        return self.wait_for_end(self.post(f"/v1/sources/{source}/runs", options or None)["id"])

    def push(self, source: str, records: Sequence[Any], **options: Any) -> Any:
        """Push records; return the queued run."""
        return self.post(f"/v1/sources/{source}/records", {"records": records, **options})

    def wait_for_end(self, run: str, within: float = 30.0) -> Any:
        """Wait until the run has ended; return the run."""
        return self.wait_for_run(run, lambda found: found["status"] not in _OPEN, within)

    def wait_for_run(self, run: str, look: Any, within: float = 30.0) -> Any:
        """Wait until `look` is true for the run; return the run."""
        until = time.monotonic() + within
        while True:
            found = self.get(f"/v1/runs/{run}")
            if look(found):
                return found
            assert time.monotonic() < until, found
            time.sleep(0.03)

    def list_all(self, path: str, limit: int = 100, **query: Any) -> list[Any]:
        """Return every item of a list, page by page."""
        items: list[Any] = []
        cursor: dict[str, str] = {}
        while True:
            page = self.get(path, limit=limit, **query, **cursor)
            assert page["object"] == "list" and len(page["data"]) <= limit
            items += page["data"]
            if not page["has_more"]:
                assert page["next_cursor"] is None
                return items
            cursor = {"starting_after": page["next_cursor"]}
