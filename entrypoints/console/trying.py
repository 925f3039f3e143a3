"""Trying an operation from a page: fields made from its schemas, a request made from what was typed, and the call to copy."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import Any, Final
from urllib.parse import quote, urlencode

import msgspec
from markupsafe import Markup

from domain.access.model import KEY_PREFIXES, is_secret
from domain.kernel import schema as wire
from domain.kernel.errors import InvalidRequest
from domain.kernel.ids import new_id
from entrypoints.console.asked import Values
from entrypoints.console.visit import Visit
from entrypoints.http.exchange import Request, Response
from entrypoints.operations.openapi import body_example
from entrypoints.operations.operation import Operation
from entrypoints.operations.query_string import parameters_of
from entrypoints.site.markdown import inline

Schema = Mapping[str, Any]
_encode: Final = msgspec.json.Encoder(decimal_format="number").encode
_TEST_KEYS: Final = tuple(prefix for (livemode, _), prefix in KEY_PREFIXES.items() if not livemode)
_SPELLED: Final = {"etag": "ETag", "ratelimit": "RateLimit", "ratelimit-policy": "RateLimit-Policy"}
_LONGEST_SHOWN: Final = 200_000
"""Bytes of an answer that are shown."""


@dataclass(frozen=True, slots=True)
class Input:
    """A field of the form: `kind` is text, number, choice or json; `options` are those of a choice; `note` is the site's own markup."""

    name: str
    label: str
    kind: str
    required: bool
    note: Markup
    example: str
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Tried:
    """What was sent, as a line to copy, and what was answered. `body` is indented where it is JSON."""

    curl: str
    status: int
    headers: tuple[tuple[str, str], ...]
    body: str
    shortened: bool


def inputs_of(operation: Operation) -> dict[str, list[Input]]:
    """The fields of an operation by where they stand: in its path, query and body."""
    path = [
        Input(f"path.{name}", name, "text", True, _id_note(operation, name), "") for name in operation.path_parameters
    ]
    query = [
        _input(f"query.{name}", name, described, bool(described.get("x-required")))
        for name, described in parameters_of(operation).items()
    ]
    body: list[Input] = []
    if operation.body is not None:
        described, example = operation.body.schema, body_example(operation)
        required = described.get("required", ())
        for name, part in described.get("properties", {}).items():
            shown = example.get(name) if isinstance(example, Mapping) else None
            body.append(_input(f"body.{name}", name, part, name in required, shown))
    return {"path": path, "query": query, "body": body}


def _id_note(operation: Operation, name: str) -> Markup:
    return (
        Markup("An id that begins with <code>{}_</code>.").format(operation.ids[name])
        if name in operation.ids
        else Markup("")
    )


def _input(name: str, label: str, described: Schema, required: bool, shown: Any = None) -> Input:
    note = Markup(inline(str(described.get("description", ""))))  # noqa: S704  escaped by the site
    values = described.get("enum", ())
    kind = described.get("type", "object")
    if values:
        return Input(name, label, "choice", required, note, _text(shown), tuple(map(_text, values)))
    if kind == "boolean":
        return Input(name, label, "choice", required, note, _text(shown), ("true", "false"))
    if kind in ("integer", "number"):
        return Input(name, label, "number", required, note, _text(shown))
    if kind == "string" or name.startswith("query."):
        return Input(name, label, "text", required, note, _text(shown))
    return Input(name, label, "json", required, note, _text(shown))


def _text(value: Any) -> str:
    """A value as its field shows it; nothing for none."""
    if value is None:
        return ""
    return value if isinstance(value, str) else msgspec.json.format(_encode(value), indent=2).decode()


@dataclass(frozen=True, slots=True)
class Draft:
    """A request as it was typed."""

    operation: Operation
    path: str
    query: str
    body: bytes
    headers: Mapping[str, str]
    key: str

    def curl(self, base_url: str) -> str:
        """The call; a key is read from the environment."""
        target = f"{base_url}{self.path}{'?' + self.query if self.query else ''}"
        lines = [f"curl {shlex.quote(target)}", '-H "Authorization: Bearer $JOINERY_KEY"']
        if self.operation.method != "GET":
            lines.insert(1, f"-X {self.operation.method}")
        lines += [f"-H {shlex.quote(f'{name}: {value}')}" for name, value in self.headers.items()]
        if self.body:
            lines.append(f"-d {shlex.quote(self.body.decode())}")
        return " \\\n  ".join(lines)


def draft_of(operation: Operation, values: Values) -> Draft:
    """The request that was typed. Raises InvalidRequest for JSON and numbers that cannot be read, and for a key of live mode."""
    names = {name: quote(values.get(f"path.{name}"), safe="") or "-" for name in operation.path_parameters}
    query = {name: text for name in parameters_of(operation) if (text := values.get(f"query.{name}"))}
    body = _body(operation, values)
    headers: dict[str, str] = {}
    if operation.idempotent:
        headers["Idempotency-Key"] = new_id("key")
    if operation.if_match:
        headers["If-Match"] = values.get("if_match") or "*"
    if operation.writes and values["dry_run"] in ("true", "explain"):
        headers["Service-Dry-Run"] = values["dry_run"]
    if body:
        headers["Content-Type"] = "application/json"
    key = values.get("key")
    if key and not is_secret(key, _TEST_KEYS):
        told = f"Only keys of test mode are tried here; they begin with {' or '.join(_TEST_KEYS)}."
        raise InvalidRequest.of("key", "invalid_format", told)
    return Draft(operation, operation.path.format_map(names), urlencode(query), body, headers, key)


def _body(operation: Operation, values: Values) -> bytes:
    if operation.body is None:
        return b""
    made = {}
    for name, described in operation.body.schema.get("properties", {}).items():
        if text := values.get(f"body.{name}"):
            made[name] = _value(f"body.{name}", text, described)
    return _encode(made) if made or operation.body.required else b""


def _value(name: str, text: str, described: Schema) -> Any:
    """What was typed, as JSON has it; a number that is none goes on as text, for the operation to refuse."""
    kind = described.get("type", "object")
    if kind == "boolean":
        return {"true": True, "false": False}.get(text, text)
    if kind in ("integer", "number"):
        try:
            return int(text) if kind == "integer" else Decimal(text)
        except (ValueError, InvalidOperation):
            return text
    if kind == "string" or "enum" in described:
        return text
    if kind == ["string", "null"]:
        return None if text == "null" else text
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, ValueError, RecursionError):
        raise InvalidRequest.of(
            name, "invalid_format", "This is no JSON; it takes an object, a list or null."
        ) from None


async def send(visit: Visit, draft: Draft) -> Tried:
    """Have it answered in this process, in test mode: as the visitor, or by the key that was typed."""
    pipeline = visit.console.pipeline

    async def read(_limit: int) -> bytes:
        return draft.body

    headers = {name.lower(): value for name, value in draft.headers.items()}
    if draft.body:
        headers["content-length"] = str(len(draft.body))
    if draft.key:
        headers["authorization"] = f"Bearer {draft.key}"
    client = visit.asked.headers
    headers |= {name: client[name] for name in ("user-agent", "x-forwarded-for", "forwarded") if name in client}
    request = Request(draft.operation.method, draft.path, draft.query, headers, visit.asked.client, read)
    tenant = replace(visit.principal.tenant, livemode=False)
    response = await (
        pipeline.answer(request)
        if draft.key
        else pipeline.answer(request, caller=replace(visit.principal, tenant=tenant))
    )
    return _tried(draft, response, visit.dependencies.settings.base_url.rstrip("/"))


def _tried(draft: Draft, response: Response, base_url: str) -> Tried:
    headers = tuple((_spelled(name.decode()), value.decode("latin-1")) for name, value in response.headers)
    body = response.body[:_LONGEST_SHOWN]
    shortened = len(body) < len(response.body)
    kind = response.header("content-type") or ""
    if "json" in kind and not shortened:
        body = msgspec.json.format(body, indent=2)
    return Tried(draft.curl(base_url), response.status, headers, body.decode("utf-8", "replace"), shortened)


def _spelled(name: str) -> str:
    return _SPELLED.get(name, name.title())


def example_of(operation: Operation) -> str:
    """An answer as it may look."""
    if operation.reply is None or operation.streams:
        return ""
    found = operation.example if operation.example is not None else wire.example(dict(operation.reply))
    return msgspec.json.format(msgspec.json.Encoder(decimal_format="number").encode(found), indent=2).decode()
