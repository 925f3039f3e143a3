"""A client over the network, with the short ways of a client library: sources, files, records, runs, whole lists."""

import http.client
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any
from urllib.parse import urlencode, urlsplit

from tests.http.client import Answer

_KEYS = count(1)
_OPEN = ("queued", "running", "waiting")


@dataclass(frozen=True)
class ApiClient:
    """One credential's view of the API on a loopback port."""

    port: int
    secret: str | None

    def is_ready(self) -> bool:
        """Whether /readyz answers 200."""
        try:
            return self.send("GET", "/readyz").status == 200
        except OSError:
            return False

    def send(self, method: str, target: str, body: bytes | None = None, **headers: str) -> Answer:
        """One request on a connection of its own; header names have underscores for hyphens."""
        named = {"Authorization": f"Bearer {self.secret}"} if self.secret else {}
        named |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request(method, target, body, named)
            answer = connection.getresponse()
            content = answer.read()
        finally:
            connection.close()
        return Answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, content)

    def call(self, method: str, target: str, value: Any = None, **headers: str) -> Answer:
        """Send JSON; a POST gets an Idempotency-Key of its own."""
        if method == "POST":
            headers = {"Idempotency_Key": f"k{time.time_ns()}-{next(_KEYS)}"} | headers
        if value is None:
            return self.send(method, target, None, **headers)
        return self.send(method, target, json.dumps(value).encode(), **{"Content_Type": "application/json"} | headers)

    def get(self, target: str, **query: Any) -> Any:
        """What a GET answers, which must be well."""
        answer = self.call("GET", target + ("?" + urlencode(query) if query else ""))
        assert answer.status == 200, answer.body
        return answer.json()

    def post(self, target: str, value: Any = None, expect: int | None = None) -> Any:
        """What a POST answers, which must be well (or of the status expected)."""
        answer = self.call("POST", target, value)
        assert answer.status == expect if expect else answer.status in (200, 201, 202), answer.body
        return answer.json()

    def create_source(self, kind: str, **fields: Any) -> str:
        """A new source's id."""
        body = {"name": f"A {kind} source", "kind": kind, **fields}
        return str(self.post("/v1/sources", body)["id"])

    def patch_source(self, source: str, **changes: Any) -> Any:
        """Change a source, whatever its version."""
        answer = self.call("PATCH", f"/v1/sources/{source}", changes, If_Match="*")
        assert answer.status == 200, answer.body
        return answer.json()

    def upload_file(
        self, source: str, content: bytes, filename: str = "feed.csv", content_type: str = "text/csv"
    ) -> str:
        """Announce, PUT, complete; answers the run's id."""
        announcement = {"filename": filename, "content_type": content_type, "bytes": len(content)}
        upload = self.post(f"/v1/sources/{source}/uploads", announcement)
        put = self.put_file(upload["target"], content)
        assert put.status in (200, 201, 204), put.body
        return str(self.post(f"/v1/uploads/{upload['id']}/complete")["run"])

    def put_file(self, target: Any, content: bytes) -> Answer:
        """PUT bytes to an upload's target, with exactly its headers and no credential."""
        parts = urlsplit(target["url"])
        connection = http.client.HTTPConnection(parts.netloc, timeout=20)
        try:
            connection.request("PUT", f"{parts.path}?{parts.query}", content, target["headers"])
            answer = connection.getresponse()
            return Answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def import_file(self, source: str, content: bytes, filename: str = "feed.csv") -> Any:
        """Hand a file in and wait for its run's end."""
        return self.wait_for_end(self.upload_file(source, content, filename))

    def pull(self, source: str, **options: Any) -> Any:
        """Start a run and wait for its end."""
        return self.wait_for_end(self.post(f"/v1/sources/{source}/runs", options or None)["id"])

    def push(self, source: str, records: Sequence[Any], **options: Any) -> Any:
        """Push records; answers the run as it is queued."""
        return self.post(f"/v1/sources/{source}/records", {"records": records, **options})

    def wait_for_end(self, run: str, within: float = 30.0) -> Any:
        """The run, once it has ended."""
        return self.wait_for_run(run, lambda found: found["status"] not in _OPEN, within)

    def wait_for_run(self, run: str, look: Any, within: float = 30.0) -> Any:
        """The run, once `look` says so."""
        until = time.monotonic() + within
        while True:
            found = self.get(f"/v1/runs/{run}")
            if look(found):
                return found
            assert time.monotonic() < until, found
            time.sleep(0.03)

    def list_all(self, path: str, limit: int = 100, **query: Any) -> list[Any]:
        """Every item of a list, page by page."""
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
