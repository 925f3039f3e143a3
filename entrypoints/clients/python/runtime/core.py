"""Makes requests of calls, and answers of responses: all that is the same with and without asyncio."""

import json
import os
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from .errors import UnreadableAnswer, object_of, unreadable
from .retrying import RetryPolicy, call
from .steps import Answer, Request, Sleep, Steps
from .tables import FEED_PAGE_FIELDS

Query = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Core:
    """Where requests go, and with what."""

    base_url: str
    headers: Mapping[str, str] = field(repr=False)  # the key is in it
    policy: RetryPolicy

    def call(
        self,
        method: str,
        path: str,
        ids: Sequence[str] = (),
        *,
        query: Query | None = None,
        body: Any = None,
        keyed: bool = False,
        idempotency_key: str | None = None,
        if_match: int | str | None = None,
        dry_run: bool = False,
        explain: bool = False,
        needs: Sequence[str] = (),
    ) -> Steps[Any]:
        """One operation: its answer's JSON object, which has what it `needs`, or None where it has none. Raises JoineryError."""
        headers = dict(self.headers)
        if body is not None:
            headers["Content-Type"] = "application/json"
        if keyed:
            headers["Idempotency-Key"] = idempotency_key or str(uuid.uuid4())
        if if_match is not None:
            headers["If-Match"] = f'"{if_match}"' if isinstance(if_match, int) else if_match
        if dry_run or explain:
            headers["Service-Dry-Run"] = "explain" if explain else "true"
        content = None if body is None else json.dumps(body, allow_nan=False).encode()
        wait = float((query or {}).get("wait") or 0)  # the server may hold the request so long
        request = Request(method, self.url(path, ids, query), headers, content, wait=wait)
        answer = yield from call(request, self.policy)
        try:
            return value_of(answer, needs)
        except UnreadableAnswer as error:
            error.maybe_done = request.writes
            raise

    def follow(self, path: str, query: Query) -> Steps[Any]:
        """A GET that is repeated for ever, and that the server may hold for `wait` seconds."""
        request = Request("GET", self.url(path, (), query), self.headers, wait=float(query.get("wait") or 0))
        policy = patient(self.policy)
        for tries in count(1):
            answer = yield from call(request, policy)
            try:
                return value_of(answer, FEED_PAGE_FIELDS)
            except UnreadableAnswer as error:
                yield Sleep(policy.pause(tries, 0.0, error.retry_after) or 0.0, str(error), tries)
        raise AssertionError  # count() has no end

    def put(self, url: str, headers: Mapping[str, str], file: Path, size: int) -> Steps[Answer]:
        """Send a file of `size` bytes to an address of its own, without our credential. Raises OSError when it has changed."""
        sized = {**headers, "Content-Length": str(size)}
        return (yield from call(Request("PUT", url, sized, file=file, size=size), self.policy))

    def url(self, path: str, ids: Sequence[str], query: Query | None) -> str:
        """The address; every `{}` of the path is the next id. Raises ValueError for an id that is not valid."""
        if any(not id or id.strip(".") == "" for id in ids):
            raise ValueError(f"An id for {path} is empty.")
        filled = self.base_url + path.format(*(quote(id, safe="") for id in ids))
        written = {name: _written(value) for name, value in (query or {}).items() if value is not None}
        return f"{filled}?{urlencode(written)}" if written else filled


def listed(value: Any) -> Any:
    """A list for a parameter that takes many: a single text is a list of one, whose commas are its own."""
    return [value] if isinstance(value, str) else value


def _written(value: Any) -> str:
    """A query parameter's text: lists with commas, those inside a value escaped; times in UTC."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError(f"{value!r} has no time zone: give it one, as in datetime.now(timezone.utc).")
        return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, (list, tuple, set, frozenset)):
        return ",".join(str(one).replace("\\", "\\\\").replace(",", "\\,") for one in value)
    return str(value)


def value_of(answer: Answer, needs: Sequence[str] = ()) -> Any:
    """The JSON object of an answer, or None for a 204 that needs no more. Raises UnreadableAnswer."""
    if answer.status == 204 and not needs:
        return None
    found = object_of(answer)
    if found is None or any(found.get(name) is None for name in needs):
        raise unreadable(answer)
    if "data" in needs and not isinstance(found["data"], list):
        raise unreadable(answer)
    return found


def core_of(
    base_url: str | None, key: str | None, version: str, agent: str, retries: int, environment: Mapping[str, str]
) -> Core:
    """The core of a new client. Raises ValueError when address or key are missing or not valid."""
    address = (base_url or environment.get("JOINERY_URL") or "").strip().rstrip("/")
    secret = (key or environment.get("JOINERY_KEY") or "").strip()  # files end with a line break
    if not address.startswith(("http://", "https://")):
        raise ValueError("Say where the service is, as base_url= or in JOINERY_URL: https://… or http://127.0.0.1:8080")
    if not secret:
        raise ValueError("Give an API key as key= or in JOINERY_KEY.")
    if "@" in address:
        raise ValueError(
            "The service's address names a user or a password. Leave them out: the key is all that is sent."
        )
    if not all("!" <= sign <= "~" for sign in secret):
        raise ValueError(
            "The API key has blanks, line breaks or letters in it that no key has. Give it as it was shown."
        )
    headers = {
        "Authorization": f"Bearer {secret}",
        "Service-Version": version,
        "User-Agent": agent,
        "Accept": "application/json",
    }
    return Core(address, headers, RetryPolicy(retries=retries))


def environment() -> Mapping[str, str]:
    """The process's environment."""
    return os.environ


def patient(policy: RetryPolicy) -> RetryPolicy:
    """The same, but for ever: a follower outlives any outage."""
    return replace(policy, retries=None, max_delay=30.0)
