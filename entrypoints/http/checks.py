"""The steps that check an API request, in their order (docs/conventions.md#order-of-checks)."""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from math import ceil
from time import perf_counter
from typing import Any, Final, TypeVar

from adapters.api_json.cursors import CursorSigner, build_cursor_context
from adapters.api_json.resource import Body
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
from entrypoints.http.body import (
    SMALL_BODY_BYTES,
    BodyLimits,
    OrganisationThreadPool,
    decode_and_validate,
    decode_body,
    describe_size_limit,
    has_many_values,
    validate_body,
)
from entrypoints.http.exchange import HeaderList, Request
from entrypoints.http.pressure import Pressure
from entrypoints.http.representations import parse_entity_tags
from entrypoints.operations.event_stream import ResponseStream
from entrypoints.operations.operation import Operation, Reply, check_caller
from entrypoints.operations.table import Route, RouteMatch
from entrypoints.operations.validation import Validator, summarise_field_errors
from ports.limits import RateLimitBucket, RateLimits
from ports.parsing import ParserFailed, ParserRunner, ParserTerminated

FIRST_PAGE = PageRequest()


@dataclass(slots=True)
class RequestState:
    """State of one request. Each step of the pipeline sets attributes, which later steps read."""

    request: Request
    match: RouteMatch
    now: datetime
    started: float = field(default_factory=perf_counter)
    request_id: str = ""
    address: str = ""
    """The client's IP address, which trusted proxies may report."""
    credential_digest: bytes = b""
    """The digest under which the credential is stored."""
    principal: Principal | None = None
    """The caller; None before authentication."""
    find_caller: Callable[[], Awaitable[Principal | None]] | None = None
    """Function that returns the caller as of now, if another part of the service authenticated the request; None if it ended."""
    caller: Principal = field(init=False)
    """The caller, for steps after authentication."""
    route: Route = field(init=False)
    operation: Operation = field(init=False)
    """The operation of the route."""
    channel: str | None = None
    """The channel of the request, such as `mcp`, if the credential does not determine it."""
    route_label: str = ""
    """The path under which a request that is not an operation (such as an MCP message) is logged and counted."""
    is_forwarded: bool = False
    """True if the request (an MCP message) was executed by sending an API request, which is logged instead of this request."""
    version: str = ""
    """The API version of the request; empty before it is selected."""
    rate_headers: HeaderList = field(default_factory=list)
    """The RateLimit headers of the response; empty before the request is counted."""
    query: Mapping[str, Any] = field(default_factory=dict)
    counted_bytes: int = 0
    """Bytes of the body that count against the memory limit of all bodies (`BodyLimits.body_bytes`) until the response is complete."""
    body: Any = None
    """The decoded JSON body; numbers that are not whole are Decimal."""
    command: Any = None
    """The body, converted to the operation's command class."""
    page_request: PageRequest = FIRST_PAGE
    cursor_context: bytes = b""
    """Encoded operation, tenant, IDs and filters. A cursor is valid only in the same context."""
    idempotency_key: str | None = None
    dry_run: str | None = None
    """The header Service-Dry-Run: None, `true` or `explain`."""
    expected_versions: tuple[int, ...] | None = None
    """The versions that If-Match names, the newest first; None for `*` or no condition."""
    error_code: str | None = None
    stream: ResponseStream | None = None
    """Event stream that is sent instead of a body."""
    complete_later: Callable[[], Awaitable[Reply]] | None = None
    """Function that is awaited after the change is committed, and returns the final reply."""


Step = Callable[[RequestState], Awaitable[None] | None]
"""Function that sets attributes of the state or raises a DomainError; returns an awaitable only if it must wait."""


MAX_REQUEST_LINE_LENGTH = 8192
"""Characters of path and query together (RFC 9110 §4.1 recommends at least 8,000)."""


def check_request_line(state: RequestState) -> None:
    """Set the request ID, and check the length and the characters of path and query. Raises InvalidRequest.

    The request ID is set first, so that error responses also contain the ID.
    """
    request = state.request
    state.request_id = choose_request_id(request)
    if len(request.path) + len(request.query) > MAX_REQUEST_LINE_LENGTH:
        detail = f"Path and query together have more than {MAX_REQUEST_LINE_LENGTH} characters. Use fewer or shorter parameters."
        raise InvalidRequest.for_field("query", "too_long", detail)
    for name, text in (("path", request.path), ("query", request.query)):
        if not (text.isascii() and text.isprintable()) or (name == "path" and not text.startswith("/")):
            raise InvalidRequest(
                f"The {name} contains characters that are not allowed in a URL. Percent-encode them (RFC 3986)."
            )


def choose_request_id(request: Request) -> str:
    """Return the request ID that the client sent in Request-Id if it is valid (`req_…`), else a new one."""
    requested_id = request.headers.get("request-id")
    return requested_id if requested_id and is_id("req", requested_id) else new_id("req")


_MODE = "header.Service-Mode"


def set_mode(state: RequestState) -> None:
    """Set live or test mode from the header Service-Mode; without the header, the credential's mode remains.

    Raises InvalidRequest for an invalid value, or if the API key is bound to the other mode.
    """
    mode = state.request.headers.get("service-mode")
    if mode is None:
        return
    if mode not in ("live", "test"):
        raise InvalidRequest.for_field(_MODE, "invalid_value", "Service-Mode must be exactly live or test.")
    caller = state.caller
    livemode = mode == "live"
    if caller.tenant.livemode == livemode:
        return
    if caller.has_fixed_mode:
        detail = (
            f"Your key is a {caller.tenant.mode} key, and its mode is fixed. Omit Service-Mode, or use a {mode} key."
        )
        raise InvalidRequest.for_field(_MODE, "invalid_value", detail)
    state.principal = state.caller = replace(caller, tenant=Tenant(caller.tenant.org, livemode))


class VersionSelection:
    """Step that selects the API version: the version in the request, else the organisation's default version.

    If the organisation has no default version, the version in the request becomes the default; without one, the latest.
    """

    def __init__(self, access: AccessService, versions: Versions) -> None:
        self._access = access
        self._versions = versions

    def __call__(self, state: RequestState) -> Awaitable[None] | None:
        """Set the API version in the state. Raises InvalidRequest if the requested version is not supported."""
        requested, default = state.request.headers.get("service-version"), state.caller.organisation.api_version
        dates = self._versions.dates
        if requested is not None and requested not in dates:
            detail = (
                f"This API version does not exist. Set Service-Version to {' or '.join(dates)}, or omit the header."
            )
            raise InvalidRequest.for_field("header.Service-Version", "invalid_value", detail)
        if default is None:
            return self._set_default_version(state, requested)
        state.version = requested or (default if default in dates else dates[-1])
        return None

    async def _set_default_version(self, state: RequestState, requested: str | None) -> None:
        dates = self._versions.dates
        default = await self._access.pin_version(state.caller.tenant.org, requested or dates[-1])
        state.version = requested or (default if default in dates else dates[-1])


TIERS: Final[dict[str, dict[str, tuple[float, int]]]] = {
    "standard": {"read": (100, 200), "write": (20, 40), "expensive": (2, 5), "export": (1 / 60, 2), "stream": (1, 5)},
    "high": {"read": (500, 1000), "write": (100, 200), "expensive": (10, 20), "export": (0.1, 10), "stream": (5, 20)},
    "max": {"read": (2000, 4000), "write": (400, 800), "expensive": (40, 80), "export": (0.5, 60), "stream": (20, 50)},
}
"""Requests per second and burst, by tier and rate class."""
SHARED_RATE_CLASSES = frozenset({"expensive", "export"})
"""Rate classes with one limit for the whole organisation.

In other classes, each signed-in person has a separate limit.
"""
_MAX_RATE_LIMITS = 20_000
"""Maximum number of cached rate limits."""


@dataclass(frozen=True, slots=True)
class _NamedRateLimit:
    """Rate limit with the name and the RateLimit-Policy header that responses contain."""

    bucket: RateLimitBucket
    name: str
    policy: bytes


def build_named_rate_limit(
    org: str, livemode: bool, tier: str, rate_class: str, user: str | None = None
) -> _NamedRateLimit:
    """Return the rate limit of an organisation, or of a signed-in person, in one mode.

    Args:
        org: The organisation's ID.
        livemode: Whether the rate limit is for live mode.
        tier: The plan's tier, a key of TIERS.
        rate_class: The rate class, such as `read`.
        user: ID of the signed-in person, who has a separate rate limit unless the rate class is shared; None for other
            credentials.
    """
    per_second, burst = TIERS[tier][rate_class]
    user_suffix = f":{user}" if user is not None and rate_class not in SHARED_RATE_CLASSES else ""
    bucket = RateLimitBucket(f"{org}:{'live' if livemode else 'test'}:{rate_class}{user_suffix}", burst, per_second)
    name = f"{tier}.{rate_class}"
    return _NamedRateLimit(bucket, name, f'"{name}";q={burst};w={ceil(round(burst / per_second, 6))}'.encode())


class RateLimit:
    """Step that counts the request against the rate limit and sets the RateLimit headers of the response."""

    def __init__(self, limits: RateLimits) -> None:
        self._limits = limits
        self._rate_limit_by_key: dict[tuple[str, bool, str, str, str | None], _NamedRateLimit] = {}

    async def __call__(self, state: RequestState) -> None:
        """Count the request. Raises RateLimited if the rate limit is exceeded."""
        caller, route = state.caller, state.match.route
        tier = caller.organisation.plan.tier
        rate = route.operation.rate if route else "read"
        user = caller.user if caller.is_console_session else None
        key = (caller.tenant.org, caller.tenant.livemode, tier if tier in TIERS else "standard", rate, user)
        named_limit = self._rate_limit_by_key.get(key)
        if named_limit is None:
            if len(self._rate_limit_by_key) >= _MAX_RATE_LIMITS:
                self._rate_limit_by_key.clear()
            named_limit = self._rate_limit_by_key[key] = build_named_rate_limit(*key)
        result = await self._limits.take_token(named_limit.bucket)
        state.rate_headers = [
            (b"ratelimit-policy", named_limit.policy),
            (
                b"ratelimit",
                b'"%s";r=%d;t=%d' % (named_limit.name.encode(), result.tokens_left, ceil(result.seconds_to_full)),
            ),
        ]
        if not result.allowed:
            wait = max(1, ceil(result.seconds_to_next))
            raise RateLimited(
                f"Too many requests ({named_limit.name}). Retry in {wait} s.",
                retry_after=wait,
                extra={"violated-policies": [named_limit.name]},
            )


SHED_LEVEL_BY_RATE_CLASS = {"export": 1, "expensive": 2, "stream": 2}
"""Load level (1 to 3) from which requests of a rate class are rejected (docs/conventions.md#load-shedding)."""
STANDARD_READ_SHED_LEVEL = 3
"""Load level from which reads of organisations with the tier `standard` are rejected."""
NEVER_SHED_LEVEL = 4
"""Level of requests that are never rejected because of load."""
RETRY_AFTER_BY_LEVEL = {1: 2, 2: 5, 3: 10}
"""Retry-After in seconds, by load level."""


def find_shedding_level(rate_class: str, tier: str) -> int:
    """Return the load level (1 to 3) from which requests of a rate class and tier are rejected; 4 if they never are.

    Args:
        rate_class: The rate class, such as `read`.
        tier: The plan's tier.
    """
    if rate_class == "read" and tier == "standard":
        return STANDARD_READ_SHED_LEVEL
    return SHED_LEVEL_BY_RATE_CLASS.get(rate_class, NEVER_SHED_LEVEL)


class LoadShedding:
    """Step that rejects requests of low priority while the load of the process is high."""

    def __init__(self, pressure: Pressure) -> None:
        self._pressure = pressure

    def __call__(self, state: RequestState) -> None:
        """Raise Overloaded if requests of this rate class and tier are rejected at the present load level."""
        level = self._pressure.level
        if level == 0:
            return
        route = state.match.route
        rate = route.operation.rate if route else "read"
        if level >= find_shedding_level(rate, state.caller.organisation.plan.tier):
            raise Overloaded(retry_after=RETRY_AFTER_BY_LEVEL[level])


METHODS = frozenset({"GET", "HEAD", "POST", "PATCH", "PUT", "DELETE", "OPTIONS", "TRACE"})


def check_permission(state: RequestState) -> None:
    """Set the route, and check that the caller may execute the operation.

    Raises:
        NotFound: The path does not exist.
        MethodNotAllowed: The path does not support the method; `allow` contains the supported methods.
        PermissionDenied: The credential does not permit the operation.
        FeatureUnavailable: The plan does not include the operation.
    """
    # No resource is looked up before, so that nobody can find out which IDs exist.
    match = state.match
    if match.route is not None:
        state.route, state.operation = match.route, match.route.operation
        check_caller(state.operation, state.caller)
    elif match.allowed_methods:
        method, allowed = state.request.method, ", ".join(match.allowed_methods)
        raise MethodNotAllowed(
            f"This path does not support {method if method in METHODS else 'this method'}. Use one of {allowed}.",
            extra={"allow": allowed},
        )
    else:
        raise NotFound


T = TypeVar("T")
_MAX_CONTENT_LENGTH_DIGITS = 20
"""Maximum digits of a Content-Length that are parsed; h11 rejects longer ones."""


@lru_cache(maxsize=64)
def is_json_content_type(content_type: str) -> bool:
    """Return whether the Content-Type is application/json without a charset, or with the charset UTF-8."""
    media_type, *parameters = (text.strip().lower() for text in content_type.split(";"))
    return media_type == "application/json" and all(
        parameter in ("", "charset=utf-8", 'charset="utf-8"') for parameter in parameters
    )


_REQUIRED = "This operation needs a body: a JSON object, sent with Content-Type: application/json."


class ParameterReader:
    """Step that reads the query, the body, and the headers of a write into the state."""

    def __init__(self, cursors: CursorSigner, bodies: BodyLimits, pressure: Pressure, parsers: ParserRunner) -> None:
        self._cursors, self._bodies, self._pressure, self._parsers = cursors, bodies, pressure, parsers
        self._threads = OrganisationThreadPool()

    def __call__(self, state: RequestState) -> Awaitable[None] | None:
        """Read query, body and headers. Raises InvalidRequest, UnsupportedMediaType or PayloadTooLarge."""
        if state.route.is_read:
            self._read_query(state, ())
            return None
        return self._read_body(state)

    async def _read_body(self, state: RequestState) -> None:
        body = state.operation.body
        raw = await self.receive_body(state, body.max_bytes if body is not None else Body.DEFAULT_MAX_BYTES)
        field_errors: tuple[FieldError, ...] = ()
        if raw:
            if not is_json_content_type(state.request.headers.get("content-type", "")):
                raise UnsupportedMediaType
            max_values = body.max_values if body is not None else Body.MAX_VALUES_PER_MIB
            state.body, field_errors = await self.decode_body(state, raw, max_values, state.route.body_validator)
        elif body is not None and body.is_required:
            field_errors = (FieldError("body", "required", _REQUIRED),)
        self._read_query(state, field_errors)
        if body is not None:
            state.command = body.decode(state.body)
        parse_write_request_headers(state)

    async def decode_body(
        self, state: RequestState, raw: bytes, max_values: int, validator: Validator | None
    ) -> tuple[Any, tuple[FieldError, ...]]:
        """Decode and validate a body; return its value and the field errors.

        A body with unusually many values (`has_many_values`) is validated in a subprocess first.

        Args:
            state: The request's state.
            raw: The body as received.
            max_values: Maximum number of values in a large body.
            validator: Validator of the operation's body; None if the operation takes no body.

        Raises:
            InvalidRequest: The body is not JSON, or has too many values.
            Unavailable: The subprocess failed.
        """
        if not has_many_values(raw):
            return await self.run_off_loop(state, raw, lambda: decode_and_validate(raw, max_values, validator))
        field_errors: tuple[FieldError, ...] = ()

        async def validate() -> None:
            nonlocal field_errors
            field_errors = await self._validate_in_subprocess(raw, max_values, validator.schema if validator else None)

        value = await self.run_off_loop(
            state, raw, lambda: None if field_errors else decode_body(raw, max_values), validate
        )
        return value, field_errors

    async def _validate_in_subprocess(
        self, raw: bytes, max_values: int, schema: Mapping[str, Any] | None
    ) -> tuple[FieldError, ...]:
        try:
            rejection, field_errors = await self._parsers(validate_body, raw, max_values, schema)
        except ParserTerminated as error:
            raise InvalidRequest("The body takes too much time or memory to read. Send the data in parts.") from error
        except ParserFailed as error:
            raise Unavailable(
                "The body could not be read. Nothing was changed. Try again later.", retry_after=5
            ) from error
        if rejection is not None:
            raise InvalidRequest(rejection, fields=field_errors)
        return field_errors

    async def run_off_loop(
        self,
        state: RequestState,
        raw: bytes,
        work: Callable[[], T],
        prepare: Callable[[], Awaitable[None]] | None = None,
    ) -> T:
        """Run `work` in a thread if the body `raw` is large, else directly; return its result.

        `prepare` is awaited before `work` in a thread, and ignored for a small body.
        """
        if len(raw) > SMALL_BODY_BYTES:
            return await self._threads.run(state.caller.tenant.org, work, prepare)
        return work()

    async def receive_body(self, state: RequestState, limit: int) -> bytes:
        """Receive and return the body of the request.

        Meanwhile, the request counts as waiting instead of in flight. The bytes count against the memory limit of all bodies.
        Raises PayloadTooLarge if the body has more than `limit` bytes.
        """
        request, org = state.request, state.caller.tenant.org
        if not request.has_body:
            return await request.read_body(limit)
        length = request.headers.get("content-length", "")
        expected_bytes = int(length[:_MAX_CONTENT_LENGTH_DIGITS]) if length.isdigit() else limit
        if expected_bytes > limit:
            raise PayloadTooLarge(describe_size_limit(limit))
        self._bodies.body_bytes.acquire(org, expected_bytes)
        state.counted_bytes = expected_bytes
        with self._bodies.incoming_bodies.immediate_slot(org), self._pressure.count_as_waiting():
            raw = await request.read_body(limit)
        self._bodies.body_bytes.release(org, expected_bytes - len(raw))
        state.counted_bytes = len(raw)
        return raw

    def _read_query(self, state: RequestState, body_errors: tuple[FieldError, ...]) -> None:
        reader = state.route.query_parser
        values, field_errors = reader.parse(state.request.query)
        if field_errors or body_errors:
            raise InvalidRequest(summarise_field_errors(field_errors + body_errors), fields=field_errors + body_errors)
        operation = state.operation
        if values:
            state.query = reader.exclude_paging(values)
        if operation.paging in ("both", "forward"):
            filters = reader.select_bound(state.query)
            state.cursor_context = build_cursor_context(operation.id, state.caller.tenant, state.match.ids, filters)
            state.page_request = (
                self._cursors.parse_page_request(state.cursor_context, values) if values else FIRST_PAGE
            )


MAX_KEY_CHARS = 257
_KEY = "header.Idempotency-Key"
_QUOTED = re.compile(r'"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"')
_BARE = re.compile(r"[\x20-\x7e]*")


def parse_idempotency_key(header: str) -> str:
    """Return the idempotency key in a header, without quotation marks.

    Raises InvalidRequest unless it is printable ASCII.
    """
    if (quoted := _QUOTED.fullmatch(header)) is not None:
        return re.sub(r"\\(.)", r"\1", quoted[1])
    if not _BARE.fullmatch(header):
        raise InvalidRequest.for_field(
            _KEY,
            "invalid_format",
            "The Idempotency-Key must have printable ASCII characters only. Use a UUID, for example.",
        )
    return header


def parse_write_request_headers(state: RequestState) -> None:
    """Parse Service-Dry-Run and, if the operation requires it, Idempotency-Key, and store them. Raises InvalidRequest.

    Writes of the assistant have a key in any case, because a turn that was interrupted repeats them.
    """
    headers = state.request.headers
    dry_run = state.dry_run = headers.get("service-dry-run")
    if dry_run not in (None, "true", "explain"):
        detail = "Service-Dry-Run must be true (respond without changing anything) or explain (preview the changes). Otherwise omit the header."
        raise InvalidRequest.for_field("header.Service-Dry-Run", "invalid_value", detail)
    if not state.operation.requires_idempotency_key and state.channel != "assistant":
        return
    text = headers.get("idempotency-key")
    if text is None:
        detail = "Send an Idempotency-Key header: a unique value for each new request, such as a UUID, and the same value for a retry."
        raise InvalidRequest.for_field(_KEY, "required", detail)
    if "idempotency-key" in state.request.repeated_headers:
        raise InvalidRequest.for_field(
            _KEY, "duplicate", "The Idempotency-Key header was sent more than once. Send it once."
        )
    key = parse_idempotency_key(text.strip())
    if not key:
        raise InvalidRequest.for_field(
            _KEY, "too_short", "The Idempotency-Key must not be empty. Send 1 to 257 characters."
        )
    if len(key) > MAX_KEY_CHARS:
        raise InvalidRequest.for_field(
            _KEY,
            "too_long",
            f"The Idempotency-Key must have at most {MAX_KEY_CHARS} characters; this one has {len(key)}.",
        )
    state.idempotency_key = key


MAX_IF_MATCH_TAGS = 8
"""Maximum number of entity tags in If-Match."""
_IF_MATCH = "header.If-Match"
UNMATCHABLE_VERSIONS = (0,)
"""Expected versions that match no resource, because versions start at 1."""


def parse_if_match(header: str) -> tuple[int, ...] | None:
    """Return the resource versions in an If-Match header, newest first; None for `*`.

    Weak tags and tags without a version are ignored, because they match no resource. If there are no others, the result
    is `UNMATCHABLE_VERSIONS`. Raises InvalidRequest if the header is not a list of entity tags or has more than `MAX_IF_MATCH_TAGS`.
    """
    if header.strip() == "*":
        return None
    try:
        tags = parse_entity_tags(header)
    except ValueError:
        raise InvalidRequest.for_field(
            _IF_MATCH,
            "invalid_format",
            'If-Match must be `*` or the ETag of a response, with quotation marks, such as "7-1f0c…".',
        ) from None
    if len(tags) > MAX_IF_MATCH_TAGS:
        raise InvalidRequest.for_field(
            _IF_MATCH, "too_many", f"If-Match must have at most {MAX_IF_MATCH_TAGS} ETags; this one has {len(tags)}."
        )
    numbers = {text.partition("-")[0] for weak, text in tags if not weak}
    versions = {int(number) for number in numbers if number.isascii() and number.isdigit() and len(number) < 19}
    return tuple(sorted(versions, reverse=True)) or UNMATCHABLE_VERSIONS


def read_preconditions(state: RequestState) -> None:
    """Set the expected versions from If-Match. Raises PreconditionRequired if a required If-Match is missing."""
    header = state.request.headers.get("if-match")
    if not state.operation.requires_if_match:
        return
    if header is None:
        raise PreconditionRequired
    state.expected_versions = parse_if_match(header)
