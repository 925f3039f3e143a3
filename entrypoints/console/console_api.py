"""The API's own operations, run in this process for the person who is signed in: a page is made of what programs are answered."""

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, Final
from urllib.parse import urlencode

import msgspec

from domain.access.model import Principal
from domain.kernel.ids import new_id
from entrypoints.console.answers import answered
from entrypoints.console.asked import Asked
from entrypoints.console.refusals import Refused
from entrypoints.http.exchange import Request, Response
from entrypoints.http.pipeline import Pipeline

_encode: Final = msgspec.json.Encoder(decimal_format="number").encode
_HANDED_ON: Final = ("user-agent", "x-forwarded-for", "forwarded", "traceparent")


class ConsoleApi:
    """Operations for one visit. Answers are decoded JSON; refusals raise Refused.

    `once` is the token of the form that was sent: a form sent twice has the effect of one, and the same answer.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        caller: Principal,
        asked: Asked,
        once: str,
    ) -> None:
        self._pipeline, self._caller, self._asked, self._once = pipeline, caller, asked, once

    async def get(self, path: str, **query: Any) -> Any:
        """GET; of the parameters, those that are None are left out and lists are joined by commas."""
        return self._decoded(await self._ask("GET", path, query))

    async def body(self, path: str, **query: Any) -> bytes:
        """GET, undecoded: of something large only what a page shows need be read. Raises Refused."""
        response = await self._ask("GET", path, query)
        if response.status >= 400:
            raise _refusal(response)
        return response.body

    async def post(self, path: str, body: Any = None, *, dry_run: str | None = None, version: int | None = None) -> Any:
        """POST under an Idempotency-Key of this form and body; `dry_run` is `true` or `explain`."""
        sent = b"" if body is None else _encode(body)
        headers = {"idempotency-key": self._key(path, sent)} | _conditions(dry_run, version)
        return self._decoded(await self._ask("POST", path, {}, sent, headers))

    async def patch(self, path: str, body: Any, *, version: int | None = None, dry_run: str | None = None) -> Any:
        """PATCH what has that version; any, when none is given. Raises Refused (412) when it has changed since."""
        return self._decoded(await self._ask("PATCH", path, {}, _encode(body), _conditions(dry_run, version)))

    async def put(self, path: str, body: Any, *, version: int | None = None) -> Any:
        """PUT, as PATCH."""
        return self._decoded(await self._ask("PUT", path, {}, _encode(body), _conditions(None, version)))

    async def delete(self, path: str, *, version: int | None = None) -> Any:
        """DELETE."""
        return self._decoded(await self._ask("DELETE", path, {}, b"", _conditions(None, version)))

    async def _ask(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any],
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        given = self._asked.headers
        sent = {name: given[name] for name in _HANDED_ON if name in given} | dict(headers or {})
        if body:
            sent |= {"content-type": "application/json", "content-length": str(len(body))}

        async def read(_limit: int) -> bytes:
            return body

        asked = urlencode({name: _text(value) for name, value in query.items() if value is not None})
        request = Request(method, path, asked, sent, self._asked.client, read)
        return await self._pipeline.answer(request, caller=self._caller)

    def _key(self, path: str, body: bytes) -> str:
        """The same for the same form sent again; another one when it was changed in between."""
        if not self._once:
            return new_id("key")
        digest = blake2b(f"{self._once}\0{path}\0".encode() + body, digest_size=16).hexdigest()
        return f"console-{digest}"

    @staticmethod
    def _decoded(response: Response) -> Any:
        if response.status >= 400:
            raise _refusal(response)
        return answered(msgspec.json.decode(response.body)) if response.body else None


def _conditions(dry_run: str | None, version: int | None) -> dict[str, str]:
    made = {"if-match": "*" if version is None else f'"{version}"'}
    return made if dry_run is None else made | {"service-dry-run": dry_run}


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return ",".join(str(one).replace("\\", "\\\\").replace(",", "\\,") for one in value)
    return str(value)


def _refusal(response: Response) -> Refused:
    return Refused(msgspec.json.decode(response.body), response.header("retry-after"))
