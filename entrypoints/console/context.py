"""Page registration and the context of views: the request, the person, the API's operations and responses."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from hashlib import blake2b
from typing import Any, Literal, TypeAlias, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import msgspec
from markupsafe import Markup

from adapters.s3.address import parse_bucket_address
from domain.access.model import ROLES, Principal
from domain.kernel.errors import DomainError, PermissionDenied, RateLimited
from domain.kernel.ids import find_noun, new_id
from domain.kernel.tenancy import Actor, AuditContext, Tenant
from domain.orgs.model import MANAGERS
from domain.people.model import SESSION_LIFETIME, SignedIn
from domain.people.ports import People
from domain.people.usecases.auth_services import AuthServices
from domain.people.usecases.invitations import InvitationService
from domain.people.usecases.sessions import ClientInfo, SessionService
from domain.runs.usecases.snapshot_views import ExcerptReader, ItemRowFinder
from domain.secrets.keys import ActiveKeys
from entrypoints.console.rendering import find_label, format_alternatives, render_template
from entrypoints.console.request import MAX_FORM_BYTES, ConsoleRequest, FormData, FormFile, parse_query
from entrypoints.console.security import (
    CSRF_FIELD,
    NOTICE_COOKIE,
    SECURITY_HEADERS,
    STRIPE_ORIGINS,
    THEME_COOKIE,
    CookieBuilder,
    ForgeryCheck,
    Header,
    ValueSigner,
    build_content_policy,
)
from entrypoints.console.translation import N_, gettext
from entrypoints.dependencies import Dependencies
from entrypoints.http.addresses import TrustedProxies
from entrypoints.http.exchange import Request, Response
from entrypoints.http.pipeline import Pipeline
from entrypoints.http.problems import HINT_BY_LIVEMODE
from entrypoints.oauth_endpoints import OAuthServices
from entrypoints.operations.codes import CODES
from entrypoints.operations.operation import ConsoleAction
from entrypoints.settings import Settings
from ports.clock import Clock
from ports.limits import RateLimitBucket, RateLimits
from ports.unit_of_work import Tx, UnitOfWork

encode_json = msgspec.json.Encoder(decimal_format="number").encode
SECTIONS = (N_("Home"), N_("Catalogue"), N_("Sources"), N_("Matching"), N_("Developers"), N_("Organisation"))
"""Sections of the menu, in order."""
CONFIRM_PATH = "/console/confirm"
"""Path of the page that confirms the person's identity."""
_FORWARDED_HEADERS = ("user-agent", "x-forwarded-for", "forwarded", "traceparent")
"""Headers of the browser's request that are passed on to API operations."""
View: TypeAlias = Callable[["PageContext"], Awaitable[Response]]
"""Function that returns the response of a page."""
V = TypeVar("V", bound=View)
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class ConsolePage:
    """Page with its path, view and required permission.

    Attributes:
        path_pattern: The path, with `<name>` for parameters.
        view: Function that handles requests. Methods other than GET and HEAD require a valid CSRF token in the form.
        methods: The allowed HTTP methods.
        scope: The scope that the person's role must include.
        organisation_kind: The kind of organisations that have the page, `retailer` or `vendor`; None for both.
        section: The section of the menu.
        title: The entry in the menu, as a message to translate; pages without a title have no entry.
        audience: Who can see the page: a `member` of an organisation, any signed-in `person`, or `anybody`.
        max_bytes: The maximum size of a form in bytes, including files.
        error_view: The view that shows the form again after `view` raised an error, which the context contains as `refused`.
        has_signed_path: Whether a signature in the path permits the request, so that it needs neither an origin nor a CSRF token.
    """

    path_pattern: str
    view: View
    methods: tuple[str, ...]
    scope: str | None = None
    section: str | None = None
    title: str | None = None
    organisation_kind: str | None = None
    audience: Literal["member", "person", "anybody"] = "member"
    max_bytes: int = MAX_FORM_BYTES
    error_view: View | None = None
    has_signed_path: bool = False


class Pages(list[ConsolePage]):
    """Pages of one part of the console. The methods of this class register views as pages.

    Args:
        base_path: The path with which the paths of all pages begin.
        **defaults: Fields of ConsolePage that are the same for all pages.
    """

    def __init__(self, base_path: str = "", **defaults: Any) -> None:
        super().__init__()
        self._base, self._defaults = base_path, defaults

    def _build_decorator(self, rule: str, methods: tuple[str, ...], fields: Mapping[str, Any]) -> Callable[[V], V]:
        """Return a decorator that registers a view as a page with the methods and fields, at the path `rule` below the base path."""

        def register(view: V) -> V:
            self.append(ConsolePage(self._base + rule, view, methods, **{**self._defaults, **fields}))
            return view

        return register

    def register_get(self, rule: str = "", **fields: Any) -> Callable[[V], V]:
        """Return a decorator that registers a view for GET at the path `rule` below the base path. `fields` are fields of ConsolePage."""
        return self._build_decorator(rule, ("GET",), fields)

    def register_post(self, rule: str = "", **fields: Any) -> Callable[[V], V]:
        """Return a decorator that registers a view for POST at the path `rule` below the base path. `fields` are fields of ConsolePage."""
        return self._build_decorator(rule, ("POST",), fields)

    def register_form(self, rule: str = "", **fields: Any) -> Callable[[V], V]:
        """Return a decorator that registers a view which shows a form (GET) and processes the submitted form (POST).

        If processing fails, the view is called again to show the form with the error.
        `rule` is the path below the base path; `fields` are fields of ConsolePage.
        """

        def register(view: V) -> V:
            return self._build_decorator(rule, ("GET", "POST"), {"error_view": view, **fields})(view)

        return register

    def register_template(
        self,
        rule: str,
        template: str,
        *,
        page_size: int = 0,
        filter_names: Sequence[str] = (),
        operation_paths: Mapping[str, str] = {},
        **fields: Any,
    ) -> View:
        """Register a view that renders a template with responses of API operations, and return the view.

        Args:
            rule: The page's path below the base.
            template: The template's name. The template variable `filters` contains the active filters.
            page_size: The page size of the list in the template variable `results`.
            filter_names: Query parameters of the page that filter the list `results`.
            operation_paths: Paths of GET operations by the template variable for the response, such as `results`. A path
                contains `{name}` for a parameter of the rule.
            **fields: Fields of ConsolePage.
        """

        async def view(page: PageContext) -> Response:
            filters, values = page.query.select(*filter_names), dict[str, Any]()
            for name, path in operation_paths.items():
                query = {"limit": page_size, "starting_after": page.cursor, **filters} if name == "results" else {}
                values[name] = await page.api.get(path.format_map(page.path_parameters), **query)
            return page.render(template, filters=filters, **values)

        return self.register_get(rule, **fields)(view)


class OperationRefused(Exception):
    """Failure of an API operation, with the contents of its problem response (RFC 9457).

    `fields` contains the error message of each invalid field, by dotted path; `code` is the error code.
    """

    def __init__(self, problem: Mapping[str, Any], retry_after: str | None = None) -> None:
        self.status: int = problem["status"]
        self.code: str = problem.get("code", "")
        self.title: str = problem["title"]
        self.detail: str = problem["detail"]
        for hint in HINT_BY_LIVEMODE.values():  # people select the mode in the menu, not by a key
            self.detail = self.detail.removesuffix(f" {hint}")
        self.request_id: str = problem.get("request_id", "")
        self.retry_after = retry_after
        self.fields: dict[str, str] = {}
        for field_error in problem.get("errors", ()):
            self.fields.setdefault(field_error["field"], field_error["detail"])
        super().__init__(self.detail)


class ConsoleApi:
    """Client that runs API operations in this process as one person. An operation that fails raises OperationRefused.

    Args:
        pipeline: The pipeline that processes the requests.
        caller: The person in the organisation.
        request: The browser's request, whose address and user agent the operations receive.
        submission_id: Identifies the submitted form; operations of a form that is submitted twice are executed once.
        find_caller: Returns the person as of now; None if the session has ended.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        caller: Principal,
        request: ConsoleRequest,
        submission_id: str,
        find_caller: Callable[[], Awaitable[Principal | None]],
    ) -> None:
        self._pipeline, self._caller, self._request, self._submission_id = pipeline, caller, request, submission_id
        self._find_caller = find_caller

    async def get(self, path: str, **query: Any) -> Any:
        """Send a GET request and return the decoded response. Query parameters that are None are omitted."""
        return msgspec.json.decode(await self.get_bytes(path, **query))

    async def get_bytes(self, path: str, **query: Any) -> bytes:
        """Send a GET request and return the response as bytes, for large objects of which a page decodes only parts."""
        return (await self._send_or_raise("GET", path, query=_encode_query(query))).body

    async def post(self, path: str, body: Any = None, *, dry_run: str | None = None) -> Any:
        """Send a POST request and return the decoded response.

        The Idempotency-Key is derived from the submitted form and the body. `dry_run` is the value of the header
        Service-Dry-Run (`true` or `explain`), or None for a request that takes effect.
        """
        response = await self.post_bytes(path, b"" if body is None else encode_json(body), dry_run=dry_run)
        return msgspec.json.decode(response.body or b"null")

    async def post_bytes(self, path: str, content: bytes, *, dry_run: str | None = None) -> Response:
        """Send a POST request with an encoded JSON body as `post` does, and return the response, which may be a stream."""
        digest = blake2b(f"{self._submission_id}\0{path}\0".encode() + content, digest_size=16).hexdigest()
        headers = {"idempotency-key": f"console-{digest}" if self._submission_id else new_id("key"), "if-match": "*"}
        headers |= {"service-dry-run": dry_run} if dry_run else {}
        return await self._send_or_raise("POST", path, content, headers)

    async def send_change(
        self, method: str, path: str, body: Any = None, version: int | None = None, **query: Any
    ) -> None:
        """Change or delete an object by a PATCH, PUT or DELETE request.

        If `version` is not None and the object has another version, OperationRefused is raised with status 412.
        """
        content = b"" if body is None else encode_json(body)
        headers = {"if-match": f'"{version}"' if version else "*"}
        await self._send_or_raise(method, path, content, headers, query=_encode_query(query))

    async def _send_or_raise(self, *arguments: Any, **options: Any) -> Response:
        """Send a request as the person and return the response. Raises OperationRefused for an error response."""
        response = await self.send(*arguments, caller=self._caller, **options)
        if response.status >= 400:
            raise OperationRefused(msgspec.json.decode(response.body), response.find_header("retry-after"))
        return response

    async def send(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        headers: Mapping[str, str] = {},
        *,
        query: str = "",
        caller: Principal | None,
    ) -> Response:
        """Send a request as `caller` and return the response. If `caller` is None, the headers must contain a credential."""
        browser_headers = self._request.headers
        request_headers = {
            name: browser_headers[name] for name in _FORWARDED_HEADERS if name in browser_headers
        } | dict(headers)
        if body:
            request_headers |= {"content-type": "application/json", "content-length": str(len(body))}

        async def read(_limit: int) -> bytes:
            return body

        request = Request(method, path, query, request_headers, self._request.client, read)
        return await self._pipeline.process_request(request, caller=caller, find_caller=self._find_caller)


def _encode_query(query: Mapping[str, Any]) -> str:
    """Return the query string of the parameters that are not None."""
    return urlencode({name: value for name, value in query.items() if value is not None})


class ConsoleServices:
    """Dependencies, pages, signatures, cookies and CSRF protection that all requests to the console share."""

    def __init__(self, dependencies: Dependencies, pipeline: Pipeline, pages: Sequence[ConsolePage]) -> None:
        self.dependencies, self.pipeline, self.pages = dependencies, pipeline, tuple(pages)
        settings = dependencies[Settings]
        self.signatures, self.cookies = (
            ValueSigner(dependencies[ActiveKeys].link_keys),
            CookieBuilder(settings.base_url),
        )
        self.forgery = ForgeryCheck(self.signatures, settings.base_url)
        self.proxies = dependencies[TrustedProxies]
        self.excerpt_reader = dependencies[ExcerptReader]
        self.origin_finder = dependencies[ItemRowFinder]
        self.invitations = dependencies[InvitationService]
        self.oauth = dependencies[OAuthServices]
        object_urls = (
            [parse_bucket_address(settings.objects_url).endpoint] if settings.objects_url.startswith("s3://") else []
        )
        parts = map(urlsplit, (settings.base_url, *object_urls))
        self.object_origins = tuple(f"{url.scheme}://{url.netloc}" for url in parts if url.netloc)
        """Origins of links to stored objects, for Content-Security-Policy."""


@dataclass
class PageContext:
    """Context in which a view handles one request: the browser's request, the person and the operations of the API.

    Attributes:
        console: Services that all requests share.
        request: The browser's request.
        page: The requested page; None until the path is matched.
        path_parameters: The parameters in the requested path, by name.
        signed_in: The signed-in person with session and organisation; None if nobody is signed in.
        form: The submitted form; empty for GET.
        files: The files of the form by field name.
        refused: The error that a form or list shows; templates get the messages of its invalid fields as `errors`.
        request_id: The ID of the request, a header of every response.
    """

    console: ConsoleServices
    request: ConsoleRequest
    page: ConsolePage | None = None
    path_parameters: Mapping[str, str] = field(default_factory=dict)
    signed_in: SignedIn | None = None
    form: FormData = field(default_factory=lambda: FormData([]))
    files: Mapping[str, FormFile] = field(default_factory=dict)
    refused: OperationRefused | None = None
    request_id: str = field(default_factory=lambda: new_id("req"))

    def __post_init__(self) -> None:
        """Set `dependencies`, `cookies`, `accounts`, `sessions` and `people` as shortcuts to services of the console."""
        self.dependencies, self.cookies = self.console.dependencies, self.console.cookies
        parts = self.dependencies
        self.accounts, self.sessions, self.people = parts[AuthServices], parts[SessionService], parts[People]

    @property
    def is_post(self) -> bool:
        """True if the request is a POST, that is, submits a form."""
        return self.request.method == "POST"

    @property
    def must_process(self) -> bool:
        """True if the view must process the submitted form; False if it must show the form, at first or after an error."""
        return self.is_post and self.refused is None

    @cached_property
    def query(self) -> FormData:
        """The parameters of the query string."""
        return parse_query(self.request.query)

    @property
    def cursor(self) -> str | None:
        """The cursor in the query string, which selects a page of a list; None for the first page."""
        return self.query.get("cursor") or None

    @property
    def person(self) -> SignedIn:
        """The signed-in person. Raises LookupError if nobody is signed in."""
        if self.signed_in is None:
            raise LookupError("nobody is signed in")
        return self.signed_in

    @cached_property
    def principal(self) -> Principal:
        """The person's principal in the session's organisation. Raises LookupError if the session has no organisation."""
        principal = self.person.principal
        if principal is None:
            raise LookupError("the person belongs to no organisation")
        return principal

    @property
    def client_info(self) -> ClientInfo:
        """The browser's user agent and IP address. The address is read from headers of the operator's proxies, if any."""
        headers = self.request.headers
        return ClientInfo(self.console.proxies.find_client(self.request.client, headers), headers.get("user-agent", ""))

    async def find_person_names(self, ids: Iterable[str | None]) -> dict[str, str]:
        """Return the display names of people by ID, except for None; `former member` if a person was deleted."""
        wanted = {id: gettext("former member") for id in ids if id is not None}
        people = await self.people.get_many(wanted) if wanted else {}
        return wanted | {id: user.display_name for id, user in people.items()}

    def get_service(self, area: str) -> Any:
        """Return the use cases of an area, such as `catalogue`."""
        return self.console.pipeline.services[area]

    def open_read_transaction(self, *, livemode: bool | None = None) -> AbstractAsyncContextManager[Tx]:
        """Open a read transaction of the organisation. `livemode` selects live or test mode; None is the session's mode."""
        return self.dependencies[UnitOfWork].begin_reading(self._choose_tenant(livemode))

    @asynccontextmanager
    async def open_transaction(self, operation: str, *, livemode: bool | None = None) -> AsyncIterator[Tx]:
        """Open a transaction in which the person acts, for actions without an API operation.

        Args:
            operation: The operation that the audit log records.
            livemode: Selects live or test mode; None is the session's mode.

        Raises:
            OperationRefused: The body of the context raised a DomainError.
        """
        action = self.get_service("audit").operations.get(operation)
        is_reversible = isinstance(action, ConsoleAction) and action.is_reversible
        context = AuditContext(self.principal.actor, operation, self.request_id, is_reversible)
        try:
            async with self.dependencies[UnitOfWork].begin(self._choose_tenant(livemode), context) as tx:
                yield tx
        except DomainError as error:
            raise self.to_refused(error) from error

    async def run_use_case(self, operation: str, use_case: Callable[..., Awaitable[R]], *args: Any) -> R:
        """Call a use case with a transaction in live mode, in which the person acts, and return the result.

        Args:
            operation: The operation that the audit log records.
            use_case: The use case.
            *args: Arguments of the use case after the transaction.

        Raises:
            OperationRefused: The use case raised a DomainError.
        """
        async with self.open_transaction(operation, livemode=True) as tx:
            return await use_case(tx, *args)

    def open_transaction_as(self, org: str, user: str, operation: str) -> AbstractAsyncContextManager[Tx]:
        """Open a transaction in live mode in which `user` acts in `org`, for example before a session has an organisation."""
        context = AuditContext(Actor("user", user), operation, self.request_id)
        return self.dependencies[UnitOfWork].begin(Tenant(org, True), context)

    def _choose_tenant(self, livemode: bool | None) -> Tenant:
        """Return the organisation in live or test mode; None means the session's mode."""
        tenant = self.principal.tenant
        return tenant if livemode is None else replace(tenant, livemode=livemode)

    @property
    def is_manager(self) -> bool:
        """True if the person is an owner or admin of the organisation."""
        return self.principal.role in MANAGERS

    @property
    def layout(self) -> str:
        """The name of the layout template: with a menu for members, without one for everybody else."""
        return "layout.html" if self.signed_in and self.signed_in.principal else "plain.html"

    def may(self, scope: str | None) -> bool:
        """Return whether the person's role includes the scope; None, for pages that require no scope, is always included."""
        is_member = self.signed_in is not None and self.signed_in.principal is not None
        return scope is None or (is_member and scope in self.principal.scopes)

    def has_page(self, page: ConsolePage) -> bool:
        """Return whether the person's organisation is of the kind that the page is for."""
        return page.organisation_kind is None or page.organisation_kind == self.principal.organisation.kind

    def require_scope(self, scope: str | None) -> None:
        """Raise PermissionDenied unless the person's role includes the scope."""
        if not self.may(scope):
            raise PermissionDenied(
                gettext(
                    "Only members with the role %(roles)s can do this. Ask an owner or admin to change your role.",
                    roles=format_alternatives(
                        find_label(role, "role_names") for role, scopes in ROLES.items() if scope in scopes
                    ),
                )
            )

    async def take_token(self, bucket: RateLimitBucket) -> None:
        """Take a token from a rate limit's bucket. Raises RateLimited, with the seconds to wait, if the bucket is empty."""
        result = await self.dependencies[RateLimits].take_token(bucket)
        if not result.allowed:
            raise RateLimited(retry_after=max(1, int(result.seconds_to_next) + 1))

    @cached_property
    def api(self) -> ConsoleApi:
        """The client that runs API operations as the signed-in person."""
        submission_id = self.form["submission_id"]
        return ConsoleApi(
            self.console.pipeline, self.principal, self.request, submission_id, self.find_current_principal
        )

    async def find_current_principal(self) -> Principal | None:
        """Return the principal of the session as of now; None if the session has ended or gives no access."""
        session = await self.sessions.find(self.request.cookies.get(self.cookies.session_cookie_name, ""))
        return session.principal if session is not None else None

    async def get_filtered_page(self, path: str, limit: int, filters: Mapping[str, str]) -> Any:
        """Return the page of an API list at the cursor in the query string.

        If the operation fails, set the attribute `refused` to the error and return an empty page.

        Args:
            path: The path of the GET operation.
            limit: The maximum number of objects in the page.
            filters: Query parameters of the operation that filter the list.
        """
        try:
            return await self.api.get(path, limit=limit, starting_after=self.cursor, **filters)
        except OperationRefused as refused:
            self.refused = refused
            return {"data": [], "has_more": False, "next_cursor": None}

    async def get_visible(self, path: str) -> Any:
        """Send a GET request and return the response; None if the object does not exist or the person may not see it."""
        try:
            return await self.api.get(path)
        except OperationRefused as refused:
            if refused.status not in (403, 404):
                raise
            return None

    @cached_property
    def csrf_token(self) -> str:
        """The session's CSRF token, for the header `X-Csrf`."""
        return self.console.forgery.create_token(self.signed_in.session.id if self.signed_in else "")

    @cached_property
    def hidden_fields(self) -> Markup:
        """The hidden fields of every form as HTML: the CSRF token, and an ID by which a repeated submission is recognised."""
        return Markup(
            '<input type="hidden" name="{}" value="{}"><input type="hidden" name="submission_id" value="{}">'
        ).format(CSRF_FIELD, self.csrf_token, new_id("key"))

    @property
    def object_id(self) -> str:
        """The ID of the object that the page shows: the last ID in the requested path; empty if there is none."""
        return next((value for value in [*self.path_parameters.values()][::-1] if find_noun(value)), "")

    @property
    def theme(self) -> str:
        """The colour theme: `light` or `dark`; empty for the theme of the operating system."""
        theme = self.request.cookies.get(THEME_COOKIE, "")
        return theme if theme in ("light", "dark") else ""

    @cached_property
    def notice(self) -> Sequence[str]:
        """Tone and text of the notice that the previous request stored in a cookie; empty if there is none."""
        cookie = self.request.cookies.get(NOTICE_COOKIE, "") if self.request.element_id is None else ""
        return self.console.signatures.read_signed_value("notice", cookie) or ()

    @property
    def menu(self) -> list[tuple[str, bool, list[tuple[str, str, bool]]]]:
        """The menu as tuples: title of a section (not translated), whether the section is current, and its entries.

        An entry is a tuple: title of a page, its path, and whether the page, or a page below it without an entry, is current.
        """
        items_by_section: dict[str, list[tuple[str, str, bool]]] = {section: [] for section in SECTIONS}
        for page in self.console.pages:
            if page.section and page.title and self.may(page.scope) and self.has_page(page):
                items_by_section[page.section].append((gettext(page.title), page.path_pattern, self._is_current(page)))
        current_section = self.page and self.page.section
        return [(section, section == current_section, items) for section, items in items_by_section.items() if items]

    def _is_current(self, entry: ConsolePage) -> bool:
        """Return whether the requested page is the entry, or has no entry and the entry's path is the longest above its own."""
        current = self.page
        if current is None or current.title or current.section != entry.section:
            return current is entry
        return entry is max(
            (
                page
                for page in self.console.pages
                if page.section == current.section
                and page.title
                and current.path_pattern.startswith(f"{page.path_pattern}/")
            ),
            key=lambda page: len(page.path_pattern),
            default=None,
        )

    def to_refused(self, error: OperationRefused | DomainError) -> OperationRefused:
        """Convert an error to OperationRefused, with the status and texts that the API would return."""
        if isinstance(error, OperationRefused):
            return error
        error = self.console.pipeline.problems.to_domain_error(error, self.request_id)
        code = CODES[error.code]
        field_errors = [{"field": field_error.field, "detail": field_error.detail} for field_error in error.fields]
        problem = {"status": code.status, "title": code.title, "code": code.name, "detail": error.detail}
        problem |= {"request_id": self.request_id}
        return OperationRefused(
            problem | {"errors": field_errors}, None if error.retry_after is None else str(error.retry_after)
        )

    def render(
        self,
        template: str,
        *,
        status: int | None = None,
        image_origins: Iterable[str] = (),
        form_origins: Iterable[str] = (),
        has_card_form: bool = False,
        **values: Any,
    ) -> Response:
        """Render a page. If htmx requests an element, render only the block whose name is the element's ID.

        Args:
            template: The template's name.
            status: The HTTP status; None for the status of `refused`, or 200 without an error.
            image_origins: Origins on other sites from which the page may load images.
            form_origins: Origins on other sites to which forms of the page may redirect.
            has_card_form: Whether the page contains the payment provider's form for a card.
            **values: Variables of the template.
        """
        refused = self.refused
        common_values = {
            "page": self,
            "csrf": self.hidden_fields,
            "refused": refused,
            "errors": refused.fields if refused else {},
        }
        body = render_template(template, self.request.element_id, common_values | values).encode("utf-8", "replace")
        policy = build_content_policy(image_origins, form_origins, **(STRIPE_ORIGINS if has_card_form else {}))
        headers = [
            (b"content-type", b"text/html; charset=utf-8"),
            (b"cache-control", b"no-store"),
            (b"vary", b"Accept-Encoding, Accept-Language, Cookie, HX-Request"),
            (b"content-security-policy", policy),
            *SECURITY_HEADERS,
        ]
        if self.notice:
            headers.append(self.cookies.build_header(NOTICE_COOKIE, "", 0))
        if refused and refused.retry_after:
            headers.append((b"retry-after", refused.retry_after.encode("ascii", "ignore")))
        return Response(status or (refused.status if refused else 200), headers, body)

    def redirect(
        self, target: str, notice: str | None = None, *, tone: str = "good", cookies: Iterable[Header] = ()
    ) -> Response:
        """Redirect to a page, which shows the notice.

        Args:
            target: The URL, which must be trusted or a result of `choose_safe_target`.
            notice: The text of the notice.
            tone: The appearance of the notice: `good`, `bad` or `info`.
            cookies: Headers that set cookies.
        """
        headers: list[Header] = [(b"cache-control", b"no-store"), *SECURITY_HEADERS, *cookies]
        if notice is not None:
            text = self.console.signatures.sign_value("notice", [tone, notice[:600]])
            headers.append(self.cookies.build_header(NOTICE_COOKIE, text, 60))
        status, location_header = (200, b"hx-redirect") if self.request.is_htmx else (303, b"location")
        return Response(status, [*headers, (location_header, target.encode("ascii", "ignore"))])

    def respond_json(self, text: str) -> Response:
        """Return a response whose body is the JSON text."""
        headers = [(b"content-type", b"application/json"), (b"cache-control", b"no-store"), *SECURITY_HEADERS]
        return Response(200, headers, text.encode())

    def render_refused(self, error: OperationRefused | DomainError) -> Response:
        """Render the error page for an error."""
        self.refused = self.to_refused(error)
        return self.render("errors/refused.html")

    def build_session_cookie(self, secret: str) -> Header:
        """Return the header that sets the session cookie to the secret."""
        return self.cookies.build_header(
            self.cookies.session_cookie_name, secret, int(SESSION_LIFETIME.total_seconds())
        )


def require_recent_confirmation(return_page: str, *, excludes_sso: bool = False) -> Callable[[View], View]:
    """Return a decorator for sensitive views: a person whose session is not in sudo mode must first confirm their identity.

    Args:
        return_page: The page to show after the confirmation if the request was a POST; a GET request is repeated instead.
        excludes_sso: Whether people who authenticated only by single sign-on must confirm with another method, if they have one.
    """

    def decorate(view: View) -> View:
        @wraps(view)
        async def check_session(page: PageContext) -> Response:
            session, accounts, user = page.person.session, page.accounts, page.person.user.id
            if session.is_sudo(page.dependencies[Clock].now()) and not (
                excludes_sso
                and session.is_sso_only
                and (
                    await accounts.passwords.has_password(user)
                    or await accounts.factors.has_authenticator(user)
                    or await accounts.passkeys.list_by_user(user)
                )
            ):
                return await view(page)
            target = return_page if page.is_post else page.request.target
            return page.redirect(f"{CONFIRM_PATH}?next={quote(target, safe='/')}")

        return check_session

    return decorate
