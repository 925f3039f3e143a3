"""The checks of a request in their order, one function or class each (docs/conventions.md#order-of-checks)."""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from math import ceil
from time import perf_counter
from typing import Any, Final, TypeVar

from adapters.wire.cursors import Cursors, context_of
from adapters.wire.resource import Body
from domain.access.model import Principal
from domain.access.usecases import AccessService
from domain.kernel.errors import (
    FieldError,
    InvalidRequest,
    MethodNotAllowed,
    NotFound,
    Overloaded,
    PayloadTooLarge,
    PreconditionRequired,
    RateLimited,
    Unavailable,
    UnsupportedMediaType,
)
from domain.kernel.ids import is_id, new_id
from domain.kernel.paging import PageRequest
from domain.kernel.tenancy import Tenant
from domain.kernel.versions import Versions
from entrypoints.http.body import SMALL, BodyThreads, HeldBodies, check, decode, is_dense, too_large, understood
from entrypoints.http.exchange import HeaderList, Request
from entrypoints.http.pressure import Pressure
from entrypoints.http.representations import tags_of
from entrypoints.operations.event_stream import EventStream
from entrypoints.operations.operation import Operation, Reply, permit
from entrypoints.operations.table import Match, Route
from entrypoints.operations.validation import Validator, summary_of
from ports.limits import Budget, Limits
from ports.parsing import ParserEnded, ParserFailed, ParserRunner

FIRST_PAGE = PageRequest()


@dataclass(slots=True)
class RequestState:
    """State of one request, filled in by the steps in their order; each step relies on fields that earlier ones set."""

    request: Request
    match: Match
    now: datetime
    started: float = field(default_factory=perf_counter)
    request_id: str = ""
    address: str = ""
    """The client's own address, behind trusted proxies."""
    credential: bytes = b""
    """The digest under which the credential is stored."""
    principal: Principal | None = None
    """The caller; None before authentication."""
    caller: Principal = field(init=False)
    """The same principal, not None, for steps after authentication."""
    route: Route = field(init=False)
    operation: Operation = field(init=False)
    """Set together with the route by `check_permission`."""
    via: str | None = None
    """The channel of the request, where it differs from the credential's own."""
    place: str = ""
    """The path of a request that is not an operation but shares the pipeline's entry and exit."""
    relayed: bool = False
    """Whether an operation was executed on behalf of this request and is logged by itself."""
    version: str = ""
    budget: HeaderList = field(default_factory=list)
    """The RateLimit headers, once the request has been charged."""
    query: Mapping[str, Any] = field(default_factory=dict)
    held: int = 0
    """Bytes of the body that count against the limit until the response is sent."""
    body: Any = None
    """JSON values; numbers that are not whole are Decimal."""
    command: Any = None
    """The body as the operation's command."""
    page_request: PageRequest = FIRST_PAGE
    cursor_context: bytes = b""
    idempotency_key: str | None = None
    dry_run: str | None = None
    """None, `true` or `explain`."""
    expected_versions: tuple[int, ...] | None = None
    """The versions that If-Match names, the newest first; None for `*` or no condition."""
    error_code: str | None = None
    stream: EventStream | None = None
    """Event stream that is sent instead of a body."""

    later: Callable[[], Awaitable[Reply]] | None = None
    """Awaited after the change is committed, to complete the response."""


Step = Callable[[RequestState], Awaitable[None] | None]
"""A function that sets fields of the state or raises a DomainError; it returns an awaitable only if it must wait."""


LONGEST_LINE = 8192
"""Characters of path and query together (RFC 9110 §4.1 asks for at least 8,000)."""


def read_request_line(state: RequestState) -> None:
    """Set the request ID; reject a request line over LONGEST_LINE or with characters that are not allowed in one."""
    request = state.request
    state.request_id = request_id_of(request)
    if len(request.path) + len(request.query) > LONGEST_LINE:
        detail = f"Path and query together have more than {LONGEST_LINE} characters. Request less at once."
        raise InvalidRequest.of("query", "too_long", detail)
    for name, text in (("path", request.path), ("query", request.query)):
        if not (text.isascii() and text.isprintable()) or (name == "path" and not text.startswith("/")):
            raise InvalidRequest(
                f"The {name} contains characters that are not allowed in a URL. Percent-encode them (RFC 3986)."
            )


def request_id_of(request: Request) -> str:
    """Return the client's `req_…` when it is well formed, else a new id."""
    given = request.headers.get("request-id")
    return given if given and is_id("req", given) else new_id("req")


_MODE = "header.Service-Mode"


def choose_mode(state: RequestState) -> None:
    """Set the mode that Service-Mode names; a key's mode is fixed, other tokens are live by default."""
    named = state.request.headers.get("service-mode")
    if named is None:
        return
    if named not in ("live", "test"):
        raise InvalidRequest.of(_MODE, "invalid_value", "Service-Mode must be exactly live or test.")
    caller = state.caller
    livemode = named == "live"
    if caller.tenant.livemode == livemode:
        return
    if caller.mode_fixed:
        detail = (
            f"Your key is a {caller.tenant.mode} key, and its mode is fixed. Omit Service-Mode, or use a {named} key."
        )
        raise InvalidRequest.of(_MODE, "invalid_value", detail)
    state.principal = state.caller = replace(caller, tenant=Tenant(caller.tenant.org, livemode))


class ChooseVersion:
    """Chooses the API version: the one the request names, else the organisation's; the first request pins it."""

    def __init__(self, access: AccessService, versions: Versions) -> None:
        self._access = access
        self._versions = versions

    def __call__(self, state: RequestState) -> Awaitable[None] | None:
        """Set the version. Raises InvalidRequest for one that is not supported."""
        named, pinned = state.request.headers.get("service-version"), state.caller.organisation.api_version
        dates = self._versions.dates
        if named is not None and named not in dates:
            detail = f"This version does not exist. Use {' or '.join(dates)}, or omit the header."
            raise InvalidRequest.of("header.Service-Version", "invalid_value", detail)
        if pinned is None:
            return self._pin(state, named)
        state.version = named or (pinned if pinned in dates else dates[-1])
        return None

    async def _pin(self, state: RequestState, named: str | None) -> None:
        dates = self._versions.dates
        pinned = await self._access.pin_version(state.caller.tenant.org, named or dates[-1])
        state.version = named or (pinned if pinned in dates else dates[-1])


TIERS: Final[dict[str, dict[str, tuple[float, int]]]] = {
    "standard": {"read": (100, 200), "write": (20, 40), "expensive": (2, 5), "export": (1 / 60, 2), "stream": (1, 5)},
    "high": {"read": (500, 1000), "write": (100, 200), "expensive": (10, 20), "export": (0.1, 10), "stream": (5, 20)},
    "max": {"read": (2000, 4000), "write": (400, 800), "expensive": (40, 80), "export": (0.5, 60), "stream": (20, 50)},
}
"""Tier to rate class to (requests per second, burst)."""
SHARED = frozenset({"expensive", "export"})
"""Rate classes with one budget for the whole organisation, as their load is large; the others have one per signed-in person."""
_MOST_BUDGETS = 20_000


@dataclass(frozen=True, slots=True)
class _Charge:
    """A rate budget with its name and policy header."""

    budget: Budget
    name: str
    policy: bytes


def charge_of(org: str, livemode: bool, tier: str, rate: str, user: str | None = None) -> _Charge:
    """Return the budget of an organisation, mode and rate class; a person has their own, except in SHARED classes."""
    per_second, burst = TIERS[tier][rate]
    whose = f":{user}" if user is not None and rate not in SHARED else ""
    budget = Budget(f"{org}:{'live' if livemode else 'test'}:{rate}{whose}", burst, per_second)
    name = f"{tier}.{rate}"
    return _Charge(budget, name, f'"{name}";q={burst};w={ceil(round(burst / per_second, 6))}'.encode())


class RateLimit:
    """Step that takes one token of the rate budget and sets the RateLimit headers of every response."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._charges: dict[tuple[str, bool, str, str, str | None], _Charge] = {}

    async def __call__(self, state: RequestState) -> None:
        """Take a token. Raises RateLimited if the budget is spent."""
        caller, route = state.caller, state.match.route
        tier = caller.organisation.plan.tier
        rate = route.operation.rate if route else "read"
        user = caller.user if caller.session else None
        key = (caller.tenant.org, caller.tenant.livemode, tier if tier in TIERS else "standard", rate, user)
        charge = self._charges.get(key)
        if charge is None:
            if len(self._charges) >= _MOST_BUDGETS:
                self._charges.clear()
            charge = self._charges[key] = charge_of(*key)
        take = await self._limits.take(charge.budget)
        state.budget = [
            (b"ratelimit-policy", charge.policy),
            (b"ratelimit", b'"%s";r=%d;t=%d' % (charge.name.encode(), take.left, ceil(take.full_in))),
        ]
        if not take.allowed:
            wait = max(1, ceil(take.next_in))
            raise RateLimited(
                f"The rate budget {charge.name} is used up. Retry in {wait} s.",
                retry_after=wait,
                extra={"violated-policies": [charge.name]},
            )


FIRST = {"export": 1, "expensive": 2, "stream": 2}
"""Pressure level from which requests of a class are shed (docs/conventions.md#load-shedding)."""
STANDARD_READS = 3
NEVER = 4
RETRY = {1: 2, 2: 5, 3: 10}
"""Retry-After in seconds by pressure level."""


def shed_from(rate: str, tier: str) -> int:
    """Return the pressure level from which a request of the class and tier is shed."""
    if rate == "read" and tier == "standard":
        return STANDARD_READS
    return FIRST.get(rate, NEVER)


class ShedLoad:
    """Step that sheds a request when the pressure exceeds its priority."""

    def __init__(self, pressure: Pressure) -> None:
        self._pressure = pressure

    def __call__(self, state: RequestState) -> None:
        """Shed the request with Overloaded if the pressure exceeds its priority."""
        level = self._pressure.level
        if level == 0:
            return
        route = state.match.route
        rate = route.operation.rate if route else "read"
        if level >= shed_from(rate, state.caller.organisation.plan.tier):
            raise Overloaded(retry_after=RETRY[level])


METHODS = frozenset({"GET", "HEAD", "POST", "PATCH", "PUT", "DELETE", "OPTIONS", "TRACE"})


def check_permission(state: RequestState) -> None:
    """Set the route and check the caller's permission before any resource is looked up, so that IDs cannot be probed.

    Raises:
            NotFound: The path does not exist.
            MethodNotAllowed: The path does not support the method; `allow` names those it supports.
            PermissionDenied: The credential does not permit the operation.
            FeatureUnavailable: The plan does not include the operation.

    """
    match = state.match
    if match.route is not None:
        state.route, state.operation = match.route, match.route.operation
        permit(state.operation, state.caller)
    elif match.allowed:
        method, allowed = state.request.method, ", ".join(match.allowed)
        raise MethodNotAllowed(
            f"This path does not support {method if method in METHODS else 'this method'}. Use one of {allowed}.",
            extra={"allow": allowed},
        )
    else:
        raise NotFound


T = TypeVar("T")
_DIGITS = 20
"""Digits of a Content-Length that are parsed; h11 rejects longer ones."""


@lru_cache(maxsize=64)
def is_json(content_type: str) -> bool:
    """Return whether the media type is application/json, in UTF-8 if it names an encoding."""
    kind, *parameters = (part.strip().lower() for part in content_type.split(";"))
    return kind == "application/json" and all(part in ("", "charset=utf-8", 'charset="utf-8"') for part in parameters)


_REQUIRED = "This operation needs a body: a JSON object, sent with Content-Type: application/json."


class ReadParameters:
    """Step that sets the query, page request, body, and the headers of a write."""

    def __init__(self, cursors: Cursors, bodies: HeldBodies, pressure: Pressure, parsers: ParserRunner) -> None:
        self._cursors, self._bodies, self._pressure, self._parsers = cursors, bodies, pressure, parsers
        self._threads = BodyThreads()

    def __call__(self, state: RequestState) -> Awaitable[None] | None:
        """Read the parameters. Raises InvalidRequest, UnsupportedMediaType or PayloadTooLarge."""
        if state.route.reads:
            self._read_query(state, ())
            return None
        return self._read_body(state)

    async def _read_body(self, state: RequestState) -> None:
        body = state.operation.body
        raw = await self.received(state, body.limit if body is not None else Body.LIMIT)
        faults: tuple[FieldError, ...] = ()
        if raw:
            if not is_json(state.request.headers.get("content-type", "")):
                raise UnsupportedMediaType
            most = body.values if body is not None else Body.VALUES
            state.body, faults = await self.parsed(state, raw, most, state.route.body)
        elif body is not None and body.required:
            faults = (FieldError("body", "required", _REQUIRED),)
        self._read_query(state, faults)
        if body is not None:
            state.command = body.decode(state.body)
        read_write_headers(state)

    async def parsed(
        self, state: RequestState, raw: bytes, most: int, validator: Validator | None
    ) -> tuple[Any, tuple[FieldError, ...]]:
        """Decode and validate a body; a dense one is validated in a subprocess first.

        Raises InvalidRequest if it is not JSON, and Unavailable if the subprocess failed.
        """
        if not is_dense(raw):
            return await self.read(state, raw, lambda: understood(raw, most, validator))
        faults: tuple[FieldError, ...] = ()

        async def search() -> None:
            nonlocal faults
            faults = await self._checked(raw, most, validator.schema if validator else None)

        value = await self.read(state, raw, lambda: None if faults else decode(raw, most), search)
        return value, faults

    async def _checked(self, raw: bytes, most: int, schema: Mapping[str, Any] | None) -> tuple[FieldError, ...]:
        try:
            refusal, faults = await self._parsers(check, raw, most, schema)
        except ParserEnded as error:
            raise InvalidRequest("The body takes too much time or memory to read. Send it in parts.") from error
        except ParserFailed as error:
            raise Unavailable("The body could not be read. Nothing was changed. Retry later.", retry_after=5) from error
        if refusal is not None:
            raise InvalidRequest(refusal, fields=faults)
        return faults

    async def read(
        self,
        state: RequestState,
        raw: bytes,
        reading: Callable[[], T],
        before: Callable[[], Awaitable[None]] | None = None,
    ) -> T:
        """Return the result of `reading`, called after `before`; a large body is read outside the event loop."""
        if len(raw) > SMALL:
            return await self._threads.run(state.caller.tenant.org, reading, before)
        return reading()

    async def received(self, state: RequestState, limit: int) -> bytes:
        """Receive the body of at most `limit` bytes; meanwhile the request counts towards body bytes, not pressure."""
        request, org = state.request, state.caller.tenant.org
        if not request.has_body:
            return await request.read_body(limit)
        length = request.headers.get("content-length", "")
        announced = int(length[:_DIGITS]) if length.isdigit() else limit
        if announced > limit:
            raise PayloadTooLarge(too_large(limit))
        self._bodies.bytes.take(org, announced)
        state.held = announced
        with self._bodies.arriving.holding(org), self._pressure.idle():
            raw = await request.read_body(limit)
        self._bodies.bytes.release(org, announced - len(raw))
        state.held = len(raw)
        return raw

    def _read_query(self, state: RequestState, body_faults: tuple[FieldError, ...]) -> None:
        reader = state.route.query
        values, faults = reader.read(state.request.query)
        if faults or body_faults:
            raise InvalidRequest(summary_of(faults + body_faults), fields=faults + body_faults)
        operation = state.operation
        if values:
            state.query = reader.filters(values)
        if operation.paging in ("both", "forward"):
            state.cursor_context = context_of(operation.id, state.caller.tenant, state.match.ids, state.query)
            state.page_request = self._cursors.page_request(state.cursor_context, values) if values else FIRST_PAGE


LONGEST_KEY = 257
_KEY = "header.Idempotency-Key"
_QUOTED = re.compile(r'"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"')
_BARE = re.compile(r"[\x20-\x7e]*")


def unquoted(text: str) -> str:
    """Return the idempotency key of a header value, without quotation marks. Raises InvalidRequest for non-ASCII."""
    if (quoted := _QUOTED.fullmatch(text)) is not None:
        return re.sub(r"\\(.)", r"\1", quoted[1])
    if not _BARE.fullmatch(text):
        raise InvalidRequest.of(_KEY, "invalid_format", "Use printable ASCII characters only, for example a UUID.")
    return text


def read_write_headers(state: RequestState) -> None:
    """Set the dry-run mode of a write, and its Idempotency-Key where one is required."""
    headers = state.request.headers
    given = state.dry_run = headers.get("service-dry-run")
    if given not in (None, "true", "explain"):
        detail = "Must be true (respond without changing anything) or explain (preview the changes). Otherwise omit the header."
        raise InvalidRequest.of("header.Service-Dry-Run", "invalid_value", detail)
    if not state.operation.idempotent:
        return
    text = headers.get("idempotency-key")
    if text is None:
        detail = "Send an Idempotency-Key header: a unique value for each new request, such as a UUID, and the same value for a retry."
        raise InvalidRequest.of(_KEY, "required", detail)
    if "idempotency-key" in state.request.repeated:
        raise InvalidRequest.of(_KEY, "duplicate", "The header was sent more than once. Send one Idempotency-Key.")
    key = unquoted(text.strip())
    if not key:
        raise InvalidRequest.of(_KEY, "too_short", "Must not be empty. Send 1 to 257 characters.")
    if len(key) > LONGEST_KEY:
        raise InvalidRequest.of(
            _KEY, "too_long", f"Must have at most {LONGEST_KEY} characters; this one has {len(key)}."
        )
    state.idempotency_key = key


MOST_TAGS = 8
_IF_MATCH = "header.If-Match"
NONE_MATCHES = (0,)
"""Matches no resource, because versions start at 1."""


def versions_of(header: str) -> tuple[int, ...] | None:
    """Return the versions of an If-Match header, newest first; None for `*`. Weak and foreign tags match nothing.

    Raises InvalidRequest if it is not a list of entity tags or has more than MOST_TAGS.
    """
    if header.strip() == "*":
        return None
    try:
        tags = tags_of(header)
    except ValueError:
        raise InvalidRequest.of(
            _IF_MATCH,
            "invalid_format",
            'Must be `*` or an ETag of a response, with its quotation marks, such as "7-1f0c…".',
        ) from None
    if len(tags) > MOST_TAGS:
        raise InvalidRequest.of(
            _IF_MATCH, "too_many", f"Must have at most {MOST_TAGS} ETags; this one has {len(tags)}."
        )
    numbers = {text.partition("-")[0] for weak, text in tags if not weak}
    versions = {int(number) for number in numbers if number.isascii() and number.isdigit() and len(number) < 19}
    return tuple(sorted(versions, reverse=True)) or NONE_MATCHES


def read_preconditions(state: RequestState) -> None:
    """Set the expected versions. Raises PreconditionRequired if a required If-Match is missing."""
    header = state.request.headers.get("if-match")
    if not state.operation.if_match:
        return
    if header is None:
        raise PreconditionRequired
    state.expected_versions = versions_of(header)
