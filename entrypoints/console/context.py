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

from adapters.s3.address import parse
from domain.access.model import Principal
from domain.kernel.errors import DomainError, PermissionDenied, RateLimited
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Actor, AuditContext, Tenant
from domain.orgs.model import MANAGERS
from domain.people.model import LIFETIME, SignedIn
from domain.people.ports import People
from domain.people.usecases.accounts import Accounts
from domain.people.usecases.invitations import InvitationService
from domain.people.usecases.sessions import SessionService, Visitor
from domain.runs.usecases.inspection import Excerpting, OriginRows
from domain.secrets.keys import WorkingKeys
from entrypoints.console.rendering import rendered
from entrypoints.console.request import LONGEST, ConsoleRequest, FormData, Upload, parse_query
from entrypoints.console.security import (
    CSRF,
    GUARDED,
    NOTICE,
    THEME,
    Cookies,
    ForgeryCheck,
    Header,
    Signatures,
    content_policy,
)
from entrypoints.console.translation import N_, gettext
from entrypoints.dependencies import Dependencies
from entrypoints.http.addresses import Proxies
from entrypoints.http.exchange import Request, Response
from entrypoints.http.pipeline import Pipeline
from entrypoints.oauth import OAuthServices
from entrypoints.operations.codes import CODES
from entrypoints.settings import Settings
from ports.clock import Clock
from ports.limits import Budget, Limits
from ports.unit_of_work import Tx, UnitOfWork

SECTIONS = (N_("Home"), N_("Catalogue"), N_("Sources"), N_("Matching"), N_("Developers"), N_("Organisation"))
CONFIRM = "/console/confirm"
encode = msgspec.json.Encoder(decimal_format="number").encode
_FORWARDED = ("user-agent", "x-forwarded-for", "forwarded", "traceparent")
View: TypeAlias = Callable[["PageContext"], Awaitable[Response]]
V = TypeVar("V", bound=View)
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Page:
    """A registered page.

    Attributes:
        rule: The path, with `<name>` for parameters.
        view: Handles the request. Methods other than GET and HEAD require the form's token.
        methods: The allowed methods.
        scope: The scope that is required to see the page.
        section: The section of the menu.
        title: The entry in the menu, as a message to translate; pages without a title have no entry.
        who: A `member` has an organisation, a `person` is signed in, `anybody` need not be.
        most: The maximum size of a form in bytes, including files.
        again: Shows the form again, with `page.refused`, after `view` has refused.

    """

    rule: str
    view: View
    methods: tuple[str, ...]
    scope: str | None = None
    section: str | None = None
    title: str | None = None
    who: Literal["member", "person", "anybody"] = "member"
    most: int = LONGEST
    again: View | None = None


class Pages(list[Page]):
    """The pages of one area, registered by decorators; `defaults` are fields that they share."""

    def __init__(self, base: str = "", **defaults: Any) -> None:
        super().__init__()
        self._base, self._defaults = base, defaults

    def _route(self, rule: str, methods: tuple[str, ...], fields: Mapping[str, Any]) -> Callable[[V], V]:
        def register(view: V) -> V:
            self.append(Page(self._base + rule, view, methods, **{**self._defaults, **fields}))
            return view

        return register

    def get(self, rule: str = "", **fields: Any) -> Callable[[V], V]:
        """Register a view for GET."""
        return self._route(rule, ("GET",), fields)

    def post(self, rule: str = "", **fields: Any) -> Callable[[V], V]:
        """Register a view for POST."""
        return self._route(rule, ("POST",), fields)

    def form(self, rule: str = "", **fields: Any) -> Callable[[V], V]:
        """Register a view that shows and processes a form; it also shows the form again after a refusal."""

        def register(view: V) -> V:
            return self._route(rule, ("GET", "POST"), {"again": view, **fields})(view)

        return register

    def show(
        self,
        rule: str,
        template: str,
        *,
        limit: int = 0,
        filters: Sequence[str] = (),
        read: Mapping[str, str] = {},
        **fields: Any,
    ) -> View:
        """Register and return a view that renders responses of operations.

        Args:
            rule: The page's path below the base.
            template: The template's name; the template gets the active filters as `given`.
            limit: The page size of the list `found`.
            filters: Query parameters that are passed to `found`.
            read: Paths of operations by template variable, with `{name}` for parameters of the rule.
            **fields: Fields of the page.

        """

        async def view(page: PageContext) -> Response:
            given, values = page.query.given(*filters), dict[str, Any]()
            for name, path in read.items():
                query = {"limit": limit, "starting_after": page.cursor, **given} if name == "found" else {}
                values[name] = await page.api.get(path.format_map(page.ids), **query)
            return page.render(template, given=given, **values)

        return self.get(rule, **fields)(view)


class Refused(Exception):
    """An operation's problem (RFC 9457): `status`, `code`, `title`, `detail`, and `fields` by dotted path."""

    def __init__(self, problem: Mapping[str, Any], retry_after: str | None = None) -> None:
        self.status: int = problem["status"]
        self.title: str = problem["title"]
        self.detail: str = problem["detail"]
        self.request_id: str = problem.get("request_id", "")
        self.retry_after = retry_after
        self.fields: dict[str, str] = {}
        for fault in problem.get("errors", ()):
            self.fields.setdefault(fault["field"], fault["detail"])
        super().__init__(self.detail)


class ConsoleApi:
    """A client of the API's operations, which run in this process as one person. Refusals raise Refused.

    `once` is the token of the submitted form: submitting a form twice has the effect and the response of one request.
    """

    def __init__(self, pipeline: Pipeline, caller: Principal, request: ConsoleRequest, once: str) -> None:
        self._pipeline, self._caller, self._request, self._once = pipeline, caller, request, once

    async def get(self, path: str, **query: Any) -> Any:
        """Send a GET request and return the decoded response; parameters that are None are left out."""
        return msgspec.json.decode(await self.body(path, **query))

    async def body(self, path: str, **query: Any) -> bytes:
        """Send a GET request and return the raw response, for large objects of which a page decodes a part."""
        named = urlencode({name: value for name, value in query.items() if value is not None})
        return (await self._expect("GET", path, query=named)).body

    async def post(self, path: str, body: Any = None, *, dry_run: str | None = None) -> Any:
        """Send a POST request with an Idempotency-Key derived from form and body; `dry_run` is `true` or `explain`."""
        sent = b"" if body is None else encode(body)
        digest = blake2b(f"{self._once}\0{path}\0".encode() + sent, digest_size=16).hexdigest()
        headers = {"idempotency-key": f"console-{digest}" if self._once else new_id("key"), "if-match": "*"}
        headers |= {"service-dry-run": dry_run} if dry_run else {}
        return msgspec.json.decode((await self._expect("POST", path, sent, headers)).body or b"null")

    async def change(self, method: str, path: str, body: Any = None, version: int | None = None) -> None:
        """Send a PATCH, PUT or DELETE request for a version of the object, or any. Raises Refused (412) on a conflict."""
        sent = b"" if body is None else encode(body)
        await self._expect(method, path, sent, {"if-match": f'"{version}"' if version else "*"})

    async def _expect(self, *call: Any, **named: Any) -> Response:
        response = await self.send(*call, caller=self._caller, **named)
        if response.status >= 400:
            raise Refused(msgspec.json.decode(response.body), response.header("retry-after"))
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
        """Send any request; without a caller, its headers authenticate it."""
        given = self._request.headers
        sent = {name: given[name] for name in _FORWARDED if name in given} | dict(headers)
        if body:
            sent |= {"content-type": "application/json", "content-length": str(len(body))}

        async def read(_limit: int) -> bytes:
            return body

        request = Request(method, path, query, sent, self._request.client, read)
        return await self._pipeline.answer(request, caller=caller)


class ConsoleServices:
    """Services shared by all requests of a console."""

    def __init__(self, dependencies: Dependencies, pipeline: Pipeline, pages: Sequence[Page]) -> None:
        self.dependencies, self.pipeline, self.pages = dependencies, pipeline, tuple(pages)
        settings = dependencies[Settings]
        self.signatures, self.cookies = Signatures(dependencies[WorkingKeys].links), Cookies(settings.base_url)
        self.forgery = ForgeryCheck(self.signatures, settings.base_url)
        self.proxies = dependencies[Proxies]
        self.excerpting = dependencies[Excerpting]
        self.origins = dependencies[OriginRows]
        self.invitations = dependencies[InvitationService]
        self.oauth = dependencies[OAuthServices]
        stored = [parse(settings.objects_url).endpoint] if settings.objects_url.startswith("s3://") else []
        parts = map(urlsplit, (settings.base_url, *stored))
        self.object_origins = tuple(f"{one.scheme}://{one.netloc}" for one in parts if one.netloc)
        """Origins of links to stored objects, for Content-Security-Policy."""


@dataclass
class PageContext:
    """The context of a view.

    Attributes:
        console: Services shared by all requests.
        request: The browser's request.
        page: The matched page.
        ids: The parameters of its rule.
        signed_in: The person with session and organisation.
        form: The submitted form, empty otherwise.
        files: The files of the form.
        refused: Why a form is shown again or a list is empty; templates get its field errors as `errors`.
        request_id: The ID that every response states.

    """

    console: ConsoleServices
    request: ConsoleRequest
    page: Page | None = None
    ids: Mapping[str, str] = field(default_factory=dict)
    signed_in: SignedIn | None = None
    form: FormData = field(default_factory=lambda: FormData([]))
    files: Mapping[str, Upload] = field(default_factory=dict)
    refused: Refused | None = None
    request_id: str = field(default_factory=lambda: new_id("req"))

    def __post_init__(self) -> None:
        """Set shorter names for common dependencies."""
        self.dependencies, self.cookies = self.console.dependencies, self.console.cookies
        parts = self.dependencies
        self.accounts, self.sessions, self.people = parts[Accounts], parts[SessionService], parts[People]

    @property
    def sent(self) -> bool:
        """True if a form was submitted."""
        return self.request.method == "POST"

    @property
    def submitted(self) -> bool:
        """True if a form was submitted and not refused."""
        return self.sent and self.refused is None

    @cached_property
    def query(self) -> FormData:
        """The query parameters."""
        return parse_query(self.request.query)

    @property
    def cursor(self) -> str | None:
        """The cursor in the query, where a page of a list starts."""
        return self.query.get("cursor") or None

    @property
    def person(self) -> SignedIn:
        """The signed-in person. Raises LookupError if nobody is signed in."""
        if self.signed_in is None:
            raise LookupError("nobody is signed in")
        return self.signed_in

    @cached_property
    def principal(self) -> Principal:
        """The principal that runs operations. Raises LookupError without an organisation."""
        principal = self.person.principal
        if principal is None:
            raise LookupError("belongs to no organisation")
        return principal

    @property
    def visitor(self) -> Visitor:
        """The browser's address, seen through the operator's proxies, and user agent."""
        headers = self.request.headers
        return Visitor(self.console.proxies.client(self.request.client, headers), headers.get("user-agent", ""))

    def service(self, area: str) -> Any:
        """Return the use cases of an area."""
        return self.console.pipeline.services[area]

    def read(self, *, livemode: bool | None = None) -> AbstractAsyncContextManager[Tx]:
        """Open a read transaction of the tenant, by default in the session's mode."""
        return self.dependencies[UnitOfWork].read(self._tenant(livemode))

    @asynccontextmanager
    async def transaction(self, operation: str, *, livemode: bool | None = None) -> AsyncIterator[Tx]:
        """Begin an audited transaction of the person, for actions without an API operation. Raises Refused."""
        context = AuditContext(self.principal.actor, operation, self.request_id)
        try:
            async with self.dependencies[UnitOfWork].begin(self._tenant(livemode), context) as tx:
                yield tx
        except DomainError as error:
            raise self.refusal(error) from error

    async def run(self, operation: str, act: Callable[..., Awaitable[R]], *args: Any) -> R:
        """Run a use case of the organisation in an audited transaction in live mode. Raises Refused."""
        async with self.transaction(operation, livemode=True) as tx:
            return await act(tx, *args)

    def transaction_of(self, org: str, user: str, operation: str) -> AbstractAsyncContextManager[Tx]:
        """Begin an audited transaction of a person in an organisation other than the session's."""
        context = AuditContext(Actor("user", user), operation, self.request_id)
        return self.dependencies[UnitOfWork].begin(Tenant(org, True), context)

    def _tenant(self, livemode: bool | None) -> Tenant:
        tenant = self.principal.tenant
        return tenant if livemode is None else replace(tenant, livemode=livemode)

    @property
    def manages(self) -> bool:
        """True if the person is an owner or admin of the organisation."""
        return self.principal.role in MANAGERS

    @property
    def layout(self) -> str:
        """The layout template: with the menu for members, plain otherwise."""
        return "layout.html" if self.signed_in and self.signed_in.principal else "plain.html"

    def may(self, scope: str | None) -> bool:
        """Return whether the person's role includes the scope; None is always allowed."""
        member = self.signed_in is not None and self.signed_in.principal is not None
        return scope is None or (member and scope in self.principal.scopes)

    def needs(self, scope: str | None) -> None:
        """Raise PermissionDenied unless the person's role includes the scope."""
        if not self.may(scope):
            raise PermissionDenied(
                gettext(
                    "Your role doesn't include the scope %(scope)s. Ask an owner or admin to change your role.",
                    scope=scope,
                )
            )

    async def take_turn(self, budget: Budget) -> None:
        """Take one request from the budget. Raises RateLimited with the seconds to wait."""
        taken = await self.dependencies[Limits].take(budget)
        if not taken.allowed:
            raise RateLimited(retry_after=max(1, int(taken.next_in) + 1))

    @cached_property
    def api(self) -> ConsoleApi:
        """The API client of this person."""
        return ConsoleApi(self.console.pipeline, self.principal, self.request, self.form["once"])

    async def filtered(self, path: str, limit: int, filters: Mapping[str, str]) -> Any:
        """Return a page of a list; if a filter is refused, an empty page with the reason in `refused`."""
        try:
            return await self.api.get(path, limit=limit, starting_after=self.cursor, **filters)
        except Refused as refused:
            self.refused = refused
            return {"data": [], "has_more": False, "next_cursor": None}

    async def get_or_none(self, path: str) -> Any:
        """Return the response of an operation; None if the object doesn't exist or the person may not see it."""
        try:
            return await self.api.get(path)
        except Refused as refused:
            if refused.status not in (403, 404):
                raise
            return None

    @cached_property
    def csrf_token(self) -> str:
        """The session's CSRF token, for the header `X-Csrf`."""
        return self.console.forgery.token(self.signed_in.session.id if self.signed_in else "")

    @cached_property
    def csrf(self) -> Markup:
        """The hidden fields of every form: the CSRF token, and a token that makes resubmission harmless."""
        return Markup('<input type="hidden" name="{}" value="{}"><input type="hidden" name="once" value="{}">').format(
            CSRF, self.csrf_token, new_id("key")
        )

    @property
    def theme(self) -> str:
        """The theme: `light`, `dark`, or empty for that of the system."""
        chosen = self.request.cookies.get(THEME, "")
        return chosen if chosen in ("light", "dark") else ""

    @cached_property
    def notice(self) -> Sequence[str]:
        """The tone and text of the notice from the previous page, if any."""
        cookie = self.request.cookies.get(NOTICE, "") if self.request.partial is None else ""
        return self.console.signatures.read("notice", cookie) or ()

    @property
    def menu(self) -> list[tuple[str, bool, list[tuple[str, str, bool]]]]:
        """The menu's sections with their pages, each as title, address and whether it is shown; section titles are untranslated keys."""
        found: dict[str, list[tuple[str, str, bool]]] = {section: [] for section in SECTIONS}
        for page in self.console.pages:
            if page.section and page.title and self.may(page.scope):
                found[page.section].append((gettext(page.title), page.rule, page is self.page))
        now = self.page and self.page.section
        return [(section, section == now, items) for section, items in found.items() if items]

    def refusal(self, error: Refused | DomainError) -> Refused:
        """Return the refusal of a use case as that of an operation."""
        if isinstance(error, Refused):
            return error
        error = self.console.pipeline.problems.known(error, self.request_id)
        code, faults = CODES[error.code], [{"field": one.field, "detail": one.detail} for one in error.fields]
        problem = {"status": code.status, "title": code.title, "detail": error.detail, "request_id": self.request_id}
        return Refused(problem | {"errors": faults}, None if error.retry_after is None else str(error.retry_after))

    def render(
        self,
        template: str,
        *,
        status: int | None = None,
        pictures: Iterable[str] = (),
        targets: Iterable[str] = (),
        **values: Any,
    ) -> Response:
        """Render a page; if htmx requests one element, render only the block of that name.

        Args:
            template: The template's name.
            status: The status, by default that of the refusal, or 200.
            pictures: Other origins from which the page may load pictures.
            targets: Other origins to which forms may lead.
            **values: Variables of the template.

        """
        refused = self.refused
        shared = {"page": self, "csrf": self.csrf, "refused": refused, "errors": refused.fields if refused else {}}
        body = rendered(template, self.request.partial, shared | values).encode("utf-8", "replace")
        headers = [
            (b"content-type", b"text/html; charset=utf-8"),
            (b"cache-control", b"no-store"),
            (b"vary", b"Accept-Encoding, Accept-Language, Cookie, HX-Request"),
            (b"content-security-policy", content_policy(pictures, targets)),
            *GUARDED,
        ]
        if self.notice:
            headers.append(self.cookies.set(NOTICE, "", 0))
        if refused and refused.retry_after:
            headers.append((b"retry-after", refused.retry_after.encode("ascii", "ignore")))
        return Response(status or (refused.status if refused else 200), headers, body)

    def redirect(
        self, target: str, notice: str | None = None, *, tone: str = "good", cookies: Iterable[Header] = ()
    ) -> Response:
        """Redirect to a page that shows the notice; `target` is trusted or a result of `safe_target`."""
        headers: list[Header] = [(b"cache-control", b"no-store"), *GUARDED, *cookies]
        if notice is not None:
            text = self.console.signatures.write("notice", [tone, notice[:600]])
            headers.append(self.cookies.set(NOTICE, text, 60))
        status, name = (200, b"hx-redirect") if self.request.by_script else (303, b"location")
        return Response(status, [*headers, (name, target.encode("ascii", "ignore"))])

    def json(self, text: str) -> Response:
        """Return a JSON response."""
        headers = [(b"content-type", b"application/json"), (b"cache-control", b"no-store"), *GUARDED]
        return Response(200, headers, text.encode())

    def refuse(self, error: Refused | DomainError) -> Response:
        """Render the error page of a refusal."""
        self.refused = self.refusal(error)
        return self.render("errors/refused.html")

    def session_cookie(self, secret: str) -> Header:
        """Return the header that sets the cookie of a session."""
        return self.cookies.set(self.cookies.session, secret, int(LIFETIME.total_seconds()))


def sudo(back: str, *, own: bool = False) -> Callable[[View], View]:
    """Guard a sensitive view: a person without a recent confirmation of identity is sent to the confirmation page first.

    Args:
        back: The page to return to after a form was submitted too late.
        own: Whether single sign-on doesn't count as confirmation for people with another sign-in method.

    """

    def guard(view: View) -> View:
        @wraps(view)
        async def proved(page: PageContext) -> Response:
            session, accounts, user = page.person.session, page.accounts, page.person.user.id
            if session.is_sudo(page.dependencies[Clock].now()) and not (
                own
                and session.only_vouched_for
                and (
                    await accounts.passwords.has_one(user)
                    or await accounts.factors.asks_for_code(user)
                    or await accounts.passkeys.of_user(user)
                )
            ):
                return await view(page)
            target = back if page.sent else page.request.target
            return page.redirect(f"{CONFIRM}?next={quote(target, safe='/')}")

        return proved

    return guard
