"""What views work with: a page's row, the request and who makes it, the API's operations, and how it is answered."""

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

SECTIONS = ("Home", "Catalogue", "Sources", "Matching", "Developers", "Organisation")
CONFIRM = "/console/confirm"
encode = msgspec.json.Encoder(decimal_format="number").encode
_FORWARDED = ("user-agent", "x-forwarded-for", "forwarded", "traceparent")
View: TypeAlias = Callable[["PageContext"], Awaitable[Response]]
V = TypeVar("V", bound=View)
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Page:
    """One page. `rule` is its path with `<name>` for parts, `scope` the one that is needed to see it.

    `section` is that of the menu, in which it has an entry if it has a `title`. `who`: a `member` has an organisation,
    a `person` is signed in, `anybody` need not be. A form may have `most` bytes, files included.
    Methods other than GET and HEAD are checked for the form's token before `view` is called; when `view` refuses, `again`
    shows the form anew, with `page.refused`.
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
    """The pages of one subject, each registered where its view is defined; `defaults` are fields that they share."""

    def __init__(self, base: str = "", **defaults: Any) -> None:
        super().__init__()
        self._base, self._defaults = base, defaults

    def _route(self, rule: str, methods: tuple[str, ...], fields: Mapping[str, Any]) -> Callable[[V], V]:
        def register(view: V) -> V:
            self.append(Page(self._base + rule, view, methods, **{**self._defaults, **fields}))
            return view

        return register

    def get(self, rule: str = "", **fields: Any) -> Callable[[V], V]:
        """Register a view that only shows something."""
        return self._route(rule, ("GET",), fields)

    def post(self, rule: str = "", **fields: Any) -> Callable[[V], V]:
        """Register a view that does what a form asks for."""
        return self._route(rule, ("POST",), fields)

    def form(self, rule: str = "", **fields: Any) -> Callable[[V], V]:
        """Register a view that shows a form and does what it asks for; when refused, it shows the form again."""

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
        """Register and return a view that renders what operations answer.

        Args:
            rule: The page's path below the base.
            template: What it renders; it has the filters that were given as `given`.
            limit: Of `found`, which is a list, the number of rows on a page.
            filters: Parameters of the address that `found` takes.
            read: By the template's name, the path of an operation, with `{name}` for parts of the rule.
            **fields: Those of the page.

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
    """The API's operations, run in this process as one person. Answers are decoded JSON; refusals raise Refused.

    `once` is the token of the form that was sent: a form sent twice has the effect of one, and the same answer.
    """

    def __init__(self, pipeline: Pipeline, caller: Principal, request: ConsoleRequest, once: str) -> None:
        self._pipeline, self._caller, self._request, self._once = pipeline, caller, request, once

    async def get(self, path: str, **query: Any) -> Any:
        """GET; parameters that are None are left out."""
        return msgspec.json.decode(await self.body(path, **query))

    async def body(self, path: str, **query: Any) -> bytes:
        """GET, undecoded: of something large, only what a page shows need be read."""
        named = urlencode({name: value for name, value in query.items() if value is not None})
        return (await self._expect("GET", path, query=named)).body

    async def post(self, path: str, body: Any = None, *, dry_run: str | None = None) -> Any:
        """POST under an Idempotency-Key of this form and body; `dry_run` is `true` or `explain`."""
        sent = b"" if body is None else encode(body)
        digest = blake2b(f"{self._once}\0{path}\0".encode() + sent, digest_size=16).hexdigest()
        headers = {"idempotency-key": f"console-{digest}" if self._once else new_id("key"), "if-match": "*"}
        headers |= {"service-dry-run": dry_run} if dry_run else {}
        return msgspec.json.decode((await self._expect("POST", path, sent, headers)).body or b"null")

    async def change(self, method: str, path: str, body: Any = None, version: int | None = None) -> None:
        """PATCH, PUT or DELETE what has that version; any, when none is given. Raises Refused (412) when it has changed since."""
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
        """Return the answer to any request; without a caller it is authenticated by its own headers."""
        given = self._request.headers
        sent = {name: given[name] for name in _FORWARDED if name in given} | dict(headers)
        if body:
            sent |= {"content-type": "application/json", "content-length": str(len(body))}

        async def read(_limit: int) -> bytes:
            return body

        request = Request(method, path, query, sent, self._request.client, read)
        return await self._pipeline.answer(request, caller=caller)


class ConsoleServices:
    """What the requests of one console share."""

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
        """The servers that links to stored objects lead to, for policies."""


@dataclass
class PageContext:
    """What a view is given.

    Attributes:
        console: What all requests share.
        request: What the browser sent.
        page: The row that was matched.
        ids: The named parts of its rule.
        signed_in: The person with session and organisation.
        form: Empty unless a form was sent.
        files: Those of the form.
        refused: Why the form that was sent is shown again, or a list is empty; templates have its `errors` by field.
        request_id: Stated with every answer.

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
        """Offer what most views use under shorter names."""
        self.dependencies, self.cookies = self.console.dependencies, self.console.cookies
        parts = self.dependencies
        self.accounts, self.sessions, self.people = parts[Accounts], parts[SessionService], parts[People]

    @property
    def sent(self) -> bool:
        """Whether a form was sent, and is not only shown."""
        return self.request.method == "POST"

    @property
    def submitted(self) -> bool:
        """Whether a form was sent that has not been refused."""
        return self.sent and self.refused is None

    @cached_property
    def query(self) -> FormData:
        """The parameters in the address."""
        return parse_query(self.request.query)

    @property
    def cursor(self) -> str | None:
        """The cursor in the address, where a part of a list begins."""
        return self.query.get("cursor") or None

    @property
    def person(self) -> SignedIn:
        """The person who is signed in. Raises LookupError on pages for anybody."""
        if self.signed_in is None:
            raise LookupError("nobody is signed in")
        return self.signed_in

    @cached_property
    def principal(self) -> Principal:
        """As whom operations are run. Raises LookupError on pages that are not for members."""
        principal = self.person.principal
        if principal is None:
            raise LookupError("belongs to no organisation")
        return principal

    @property
    def visitor(self) -> Visitor:
        """The browser, behind the operator's own proxies."""
        headers = self.request.headers
        return Visitor(self.console.proxies.client(self.request.client, headers), headers.get("user-agent", ""))

    def service(self, area: str) -> Any:
        """Return the use cases of an area."""
        return self.console.pipeline.services[area]

    def read(self, *, livemode: bool | None = None) -> AbstractAsyncContextManager[Tx]:
        """Read the tenant's stores, in the session's mode unless another is named."""
        return self.dependencies[UnitOfWork].read(self._tenant(livemode))

    @asynccontextmanager
    async def transaction(self, operation: str, *, livemode: bool | None = None) -> AsyncIterator[Tx]:
        """Begin an audited unit of work of the person, for what has no operation. Raises Refused."""
        context = AuditContext(self.principal.actor, operation, self.request_id)
        try:
            async with self.dependencies[UnitOfWork].begin(self._tenant(livemode), context) as tx:
                yield tx
        except DomainError as error:
            raise self.refusal(error) from error

    async def run(self, operation: str, act: Callable[..., Awaitable[R]], *args: Any) -> R:
        """Run a use case of the organisation, whatever the mode, in such a unit of work. Raises Refused."""
        async with self.transaction(operation, livemode=True) as tx:
            return await act(tx, *args)

    def transaction_of(self, org: str, user: str, operation: str) -> AbstractAsyncContextManager[Tx]:
        """Begin one of a person in an organisation that is not their session's."""
        context = AuditContext(Actor("user", user), operation, self.request_id)
        return self.dependencies[UnitOfWork].begin(Tenant(org, True), context)

    def _tenant(self, livemode: bool | None) -> Tenant:
        tenant = self.principal.tenant
        return tenant if livemode is None else replace(tenant, livemode=livemode)

    @property
    def manages(self) -> bool:
        """Whether the person is an owner or admin of the organisation."""
        return self.principal.role in MANAGERS

    @property
    def layout(self) -> str:
        """The template with the menu, or without one for a person without an organisation."""
        return "layout.html" if self.signed_in and self.signed_in.principal else "plain.html"

    def may(self, scope: str | None) -> bool:
        """Return whether the role lets the person do that; everybody may do what takes no scope."""
        member = self.signed_in is not None and self.signed_in.principal is not None
        return scope is None or (member and scope in self.principal.scopes)

    def needs(self, scope: str | None) -> None:
        """Raise PermissionDenied unless the role lets the person do that."""
        if not self.may(scope):
            raise PermissionDenied(
                f"Your role does not include what this page needs ({scope}). An owner or admin can change it."
            )

    async def take_turn(self, budget: Budget) -> None:
        """Take one from the budget. Raises RateLimited, with the seconds until there is one again."""
        taken = await self.dependencies[Limits].take(budget)
        if not taken.allowed:
            raise RateLimited(retry_after=max(1, int(taken.next_in) + 1))

    @cached_property
    def api(self) -> ConsoleApi:
        """The API's operations, for this person."""
        return ConsoleApi(self.console.pipeline, self.principal, self.request, self.form["once"])

    async def filtered(self, path: str, limit: int, filters: Mapping[str, str]) -> Any:
        """Return a page of a list; an empty one, with the reason in `refused`, when a filter is refused."""
        try:
            return await self.api.get(path, limit=limit, starting_after=self.cursor, **filters)
        except Refused as refused:
            self.refused = refused
            return {"data": [], "has_more": False, "next_cursor": None}

    async def get_or_none(self, path: str) -> Any:
        """Return what an operation answers; None for what is gone, or not for the person to see."""
        try:
            return await self.api.get(path)
        except Refused as refused:
            if refused.status not in (403, 404):
                raise
            return None

    @cached_property
    def csrf_token(self) -> str:
        """The session's token, for the header `X-Csrf`."""
        return self.console.forgery.token(self.signed_in.session.id if self.signed_in else "")

    @cached_property
    def csrf(self) -> Markup:
        """The hidden fields that every form needs: that token, and one that makes sending twice harmless."""
        return Markup('<input type="hidden" name="{}" value="{}"><input type="hidden" name="once" value="{}">').format(
            CSRF, self.csrf_token, new_id("key")
        )

    @property
    def theme(self) -> str:
        """`light`, `dark`, or empty for what the system says."""
        chosen = self.request.cookies.get(THEME, "")
        return chosen if chosen in ("light", "dark") else ""

    @cached_property
    def notice(self) -> Sequence[str]:
        """The tone and sentence that the page before left for this one, if any."""
        cookie = self.request.cookies.get(NOTICE, "") if self.request.partial is None else ""
        return self.console.signatures.read("notice", cookie) or ()

    @property
    def menu(self) -> list[tuple[str, bool, list[tuple[str, str, bool]]]]:
        """The sections with a page that the role may see: title, whether it is shown now, and so for each page."""
        found: dict[str, list[tuple[str, str, bool]]] = {section: [] for section in SECTIONS}
        for page in self.console.pages:
            if page.section and page.title and self.may(page.scope):
                found[page.section].append((page.title, page.rule, page is self.page))
        now = self.page and self.page.section
        return [(section, section == now, items) for section, items in found.items() if items]

    def refusal(self, error: Refused | DomainError) -> Refused:
        """Return a use case's refusal in the form of an operation's."""
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
        """Render a page; when htmx asks for one element, the block of that name alone, if there is one.

        Args:
            template: Its name.
            status: By default that of the refusal, or 200.
            pictures: Foreign origins whose pictures the page's policy allows.
            targets: Foreign origins to which its forms may lead.
            **values: What the template shows.

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
        """Lead on to a page that shows the notice; `target` is the caller's own or has gone through `safe_target`."""
        headers: list[Header] = [(b"cache-control", b"no-store"), *GUARDED, *cookies]
        if notice is not None:
            text = self.console.signatures.write("notice", [tone, notice[:600]])
            headers.append(self.cookies.set(NOTICE, text, 60))
        status, name = (200, b"hx-redirect") if self.request.by_script else (303, b"location")
        return Response(status, [*headers, (name, target.encode("ascii", "ignore"))])

    def json(self, text: str) -> Response:
        """Answer a script."""
        headers = [(b"content-type", b"application/json"), (b"cache-control", b"no-store"), *GUARDED]
        return Response(200, headers, text.encode())

    def refuse(self, error: Refused | DomainError) -> Response:
        """Render a whole page that states a refusal."""
        self.refused = self.refusal(error)
        return self.render("errors/refused.html")

    def session_cookie(self, secret: str) -> Header:
        """Return the header that sets the cookie of a session."""
        return self.cookies.set(self.cookies.session, secret, int(LIFETIME.total_seconds()))


def sudo(back: str, *, own: bool = False) -> Callable[[View], View]:
    """Guard a view that touches security: a person who has not just proved who they are is led to prove it, and back.

    Args:
        back: The page with its form, which one comes back to when a form was sent too late.
        own: A provider's assertion does not count as a proof where the person has another.

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
