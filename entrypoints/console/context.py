"""What views work with: a page's row, the request and who makes it, the API's operations, and how it is answered."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from hashlib import blake2b
from typing import Any, Final, Literal, TypeAlias, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import msgspec
from markupsafe import Markup

from adapters.s3.address import parse
from domain.access.model import Principal
from domain.kernel.errors import DomainError, PermissionDenied, RateLimited
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Actor, AuditContext, Tenant
from domain.people.model import LIFETIME, SignedIn
from domain.people.usecases.invitations import InvitationService
from domain.people.usecases.sessions import Visitor
from domain.people.usecases.throttling import Devices, Throttle
from domain.runs.usecases.inspection import Excerpting, OriginRows
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
from entrypoints.oauth.endpoints import oauth_services
from entrypoints.operations.codes import CODES
from ports.limits import Budget
from ports.unit_of_work import Tx

SECTIONS: Final = ("Home", "Catalogue", "Sources", "Matching", "Developers", "Organisation")
CONFIRM: Final = "/console/confirm"
encode: Final = msgspec.json.Encoder(decimal_format="number").encode
_FORWARDED: Final = ("user-agent", "x-forwarded-for", "forwarded", "traceparent")
View: TypeAlias = Callable[["PageContext"], Awaitable[Response]]
V = TypeVar("V", bound=View)
RefusedView: TypeAlias = Callable[["PageContext", "Refused"], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Page:
    """One page. `rule` is its path with `<name>` for parts, `scope` the one that is needed to see it.

    `section` is that of the menu, in which it has an entry if it has a `title`. `who`: a `member` has an organisation,
    a `person` is signed in, `anybody` need not be. A form may have `most` bytes, files included.
    Methods other than GET and HEAD are checked for the form's token before `view` is called.
    """

    rule: str
    view: View
    methods: tuple[str, ...]
    scope: str | None = None
    section: str | None = None
    title: str | None = None
    who: Literal["member", "person", "anybody"] = "member"
    most: int = LONGEST


class Pages(list[Page]):
    """The pages of one subject, each registered where its view is defined; `defaults` are fields that they share."""

    def __init__(self, base: str = "", **defaults: Any) -> None:
        super().__init__()
        self._base, self._defaults = base, defaults

    def route(self, rule: str, methods: tuple[str, ...], **fields: Any) -> Callable[[V], V]:
        """Register a view for a rule below the base."""

        def register(view: V) -> V:
            self.append(Page(self._base + rule, view, methods, **self._defaults | fields))
            return view

        return register

    def get(self, rule: str = "", **fields: Any) -> Callable[[V], V]:
        """Register what only shows something."""
        return self.route(rule, ("GET",), **fields)

    def post(self, rule: str = "", *, again: RefusedView | None = None, **fields: Any) -> Callable[[View], View]:
        """Register what a form does; when it is refused, `again` is shown, with what was typed and the refusal."""

        def register(view: View) -> View:
            @wraps(view)
            async def done(page: PageContext) -> Response:
                try:
                    return await view(page)
                except Refused as refused:
                    if again is None:
                        raise
                    return await again(page, refused)

            return self.route(rule, ("POST",), **fields)(done)

        return register

    def form(self, rule: str = "", **fields: Any) -> Callable[[V], V]:
        """Register a view that shows a form and does what it asks for."""
        return self.route(rule, ("GET", "POST"), **fields)


class Refused(Exception):
    """An operation's problem (RFC 9457): `status`, `code`, `title`, `detail`, and `fields` by dotted path."""

    def __init__(self, problem: Mapping[str, Any], retry_after: str | None = None) -> None:
        self.status: int = problem["status"]
        self.code: str = problem["code"]
        self.title: str = problem["title"]
        self.detail: str = problem["detail"]
        self.request_id: str = problem.get("request_id", "")
        self.retry_after = retry_after
        self.fields: dict[str, str] = {}
        for fault in problem.get("errors", ()):
            self.fields.setdefault(fault["field"], fault["detail"])
        super().__init__(self.detail)

    @classmethod
    def of(cls, error: DomainError, request_id: str) -> "Refused":
        """Return a use case's own refusal in the same form."""
        code = CODES[error.code]
        faults = [{"field": fault.field, "detail": fault.detail} for fault in error.fields]
        problem = {"status": code.status, "code": code.name, "title": code.title, "detail": error.detail}
        wait = str(error.retry_after) if error.retry_after is not None else None
        return cls(problem | {"request_id": request_id, "errors": faults}, wait)


class ConsoleApi:
    """The API's operations, run in this process as one person. Answers are decoded JSON; refusals raise Refused.

    `once` is the token of the form that was sent: a form sent twice has the effect of one, and the same answer.
    """

    def __init__(self, pipeline: Pipeline, caller: Principal, request: ConsoleRequest, once: str) -> None:
        self._pipeline, self._caller, self._request, self._once = pipeline, caller, request, once

    async def get(self, path: str, **query: Any) -> Any:
        """GET; parameters that are None are left out, lists are joined by commas."""
        return msgspec.json.decode(await self.body(path, **query))

    async def body(self, path: str, **query: Any) -> bytes:
        """GET, undecoded: of something large, only what a page shows need be read."""
        return await self._send("GET", path, query=query)

    async def post(self, path: str, body: Any = None, *, dry_run: str | None = None) -> Any:
        """POST under an Idempotency-Key of this form and body; `dry_run` is `true` or `explain`."""
        sent = b"" if body is None else encode(body)
        digest = blake2b(f"{self._once}\0{path}\0".encode() + sent, digest_size=16).hexdigest()
        headers = {"idempotency-key": f"console-{digest}" if self._once else new_id("key")}
        return await self._change("POST", path, sent, headers | ({"service-dry-run": dry_run} if dry_run else {}))

    async def patch(self, path: str, body: Any, version: int | None = None) -> Any:
        """PATCH what has that version; any, when none is given. Raises Refused (412) when it has changed since."""
        return await self._change("PATCH", path, encode(body), {"if-match": f'"{version}"'} if version else {})

    async def put(self, path: str, body: Any) -> Any:
        """PUT, whatever the version."""
        return await self._change("PUT", path, encode(body))

    async def delete(self, path: str) -> Any:
        """DELETE, whatever the version."""
        return await self._change("DELETE", path)

    async def _change(self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None) -> Any:
        answered = await self._send(method, path, body, {"if-match": "*", **(headers or {})})
        return msgspec.json.decode(answered) if answered else None

    async def _send(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, Any] | None = None,
    ) -> bytes:
        given = self._request.headers
        sent = {name: given[name] for name in _FORWARDED if name in given} | dict(headers or {})
        if body:
            sent |= {"content-type": "application/json", "content-length": str(len(body))}

        async def read(_limit: int) -> bytes:
            return body

        named = {name: _joined(value) for name, value in (query or {}).items() if value is not None}
        request = Request(method, path, urlencode(named), sent, self._request.client, read)
        response = await self._pipeline.answer(request, caller=self._caller)
        if response.status >= 400:
            raise Refused(msgspec.json.decode(response.body), response.header("retry-after"))
        return response.body


def _joined(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return ",".join(str(one).replace("\\", "\\\\").replace(",", "\\,") for one in value)
    return value


class ConsoleServices:
    """What the requests of one console share."""

    def __init__(self, dependencies: Dependencies, pipeline: Pipeline, pages: Sequence[Page]) -> None:
        self.dependencies, self.pipeline, self.pages = dependencies, pipeline, tuple(pages)
        settings = dependencies.settings
        self.signatures, self.cookies = Signatures(dependencies.keys.links), Cookies(settings.base_url)
        self.forgery = ForgeryCheck(self.signatures, settings.base_url)
        self.proxies = Proxies(settings.trusted_proxies)
        self.excerpting = Excerpting(dependencies.objects, dependencies.feed_readers, dependencies.workspaces)
        self.origins = OriginRows(
            dependencies.uow, dependencies.objects, dependencies.feed_readers, dependencies.workspaces
        )
        self.invitations = InvitationService(
            dependencies.memberships,
            dependencies.people,
            dependencies.access,
            dependencies.outgoing_mail,
            Throttle(dependencies.limits, Devices(dependencies.access)),
            dependencies.clock,
            settings.base_url,
        )
        self.oauth = oauth_services(dependencies)

    @cached_property
    def object_origins(self) -> tuple[str, ...]:
        """The servers that links to stored objects lead to, for policies."""
        settings = self.dependencies.settings
        urls = [settings.base_url]
        if settings.objects_url.startswith("s3://"):
            urls.append(parse(settings.objects_url).endpoint)
        return tuple(f"{parts.scheme}://{parts.netloc}" for url in urls if (parts := urlsplit(url)).netloc)


@dataclass
class PageContext:
    """What a view is given. `ids` are the named parts of the page's rule; `form` is empty unless a form was sent."""

    console: ConsoleServices
    request: ConsoleRequest
    page: Page | None = None
    ids: Mapping[str, str] = field(default_factory=dict)
    signed_in: SignedIn | None = None
    form: FormData = field(default_factory=lambda: FormData([]))
    files: Mapping[str, Upload] = field(default_factory=dict)
    request_id: str = field(default_factory=lambda: new_id("req"))

    @property
    def dependencies(self) -> Dependencies:
        """For use cases that have no operation."""
        return self.console.dependencies

    @property
    def cookies(self) -> Cookies:
        """What sets cookies."""
        return self.console.cookies

    @property
    def sent(self) -> bool:
        """Whether a form was sent, and is not only shown."""
        return self.request.method == "POST"

    @cached_property
    def query(self) -> FormData:
        """The parameters in the address."""
        return parse_query(self.request.query)

    @property
    def cursor(self) -> str | None:
        """Where the part of a list begins that is asked for."""
        return self.query.get("cursor") or None

    @property
    def person(self) -> SignedIn:
        """The person who is signed in. Raises LookupError on pages for anybody."""
        if self.signed_in is None:
            raise LookupError("nobody is signed in")
        return self.signed_in

    @property
    def principal(self) -> Principal:
        """As whom operations are run. Raises LookupError on pages that are not for members."""
        principal = self.person.principal
        if principal is None:
            raise LookupError("belongs to no organisation")
        return principal

    @property
    def visitor(self) -> Visitor:
        """The browser, behind the operator's own proxies."""
        request = self.request
        address = self.console.proxies.client(request.client, request.headers)
        return Visitor(address, request.headers.get("user-agent", ""))

    def service(self, area: str) -> Any:
        """Return the use cases of an area."""
        return self.console.pipeline.services[area]

    def read(self, *, livemode: bool | None = None) -> AbstractAsyncContextManager[Tx]:
        """Read the tenant's stores, in the mode that is looked at unless another is named."""
        return self.dependencies.uow.read(self._tenant(livemode))

    @asynccontextmanager
    async def transaction(self, operation: str, *, livemode: bool | None = None) -> AsyncIterator[Tx]:
        """Begin an audited unit of work of the person, for what has no operation. Raises Refused."""
        context = AuditContext(self.principal.actor, operation, self.request_id)
        try:
            async with self.dependencies.uow.begin(self._tenant(livemode), context) as tx:
                yield tx
        except DomainError as error:
            raise Refused.of(self.console.pipeline.problems.known(error, self.request_id), self.request_id) from error

    def transaction_of(self, org: str, user: str, operation: str) -> AbstractAsyncContextManager[Tx]:
        """Begin one of a person in an organisation which they may not look at, or not yet belong to."""
        context = AuditContext(Actor("user", user), operation, self.request_id)
        return self.dependencies.uow.begin(Tenant(org, True), context)

    def _tenant(self, livemode: bool | None) -> Tenant:
        tenant = self.principal.tenant
        return tenant if livemode is None else replace(tenant, livemode=livemode)

    def may(self, scope: str) -> bool:
        """Return whether the role lets the person do that."""
        return self.signed_in is not None and self.signed_in.principal is not None and scope in self.principal.scopes

    def needs(self, scope: str) -> None:
        """Raise PermissionDenied unless the role lets the person do that."""
        if not self.may(scope):
            raise PermissionDenied(
                f"Your role does not include what this page needs ({scope}). An owner or admin can change it."
            )

    async def take_turn(self, budget: Budget) -> None:
        """Take one from the budget. Raises RateLimited, with the seconds until there is one again."""
        taken = await self.dependencies.limits.take(budget)
        if not taken.allowed:
            raise RateLimited(retry_after=max(1, int(taken.next_in) + 1))

    @cached_property
    def api(self) -> ConsoleApi:
        """The API's operations, for this person."""
        return ConsoleApi(self.console.pipeline, self.principal, self.request, self.form["once"])

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
        found = []
        for section in SECTIONS:
            items = [
                (page.title, page.rule, page is self.page)
                for page in self.console.pages
                if page.section == section and page.title and (page.scope is None or self.may(page.scope))
            ]
            if items:
                found.append((section, self.page is not None and self.page.section == section, items))
        return found

    def render(
        self,
        template: str,
        *,
        refused: Refused | DomainError | None = None,
        status: int | None = None,
        pictures: Iterable[str] = (),
        targets: Iterable[str] = (),
        **values: Any,
    ) -> Response:
        """Render a page; when htmx asks for one element, the block of that name alone, if there is one.

        Args:
            template: Its name.
            refused: What was refused; templates have its `errors` by field, too.
            status: By default that of the refusal, or 200.
            pictures: Foreign origins whose pictures the page's policy allows.
            targets: Foreign origins to which its forms may lead.
            **values: What the template shows.

        """
        if isinstance(refused, DomainError):
            refused = Refused.of(refused, self.request_id)
        shared = {"page": self, "csrf": self.csrf, "refused": refused, "errors": refused.fields if refused else {}}
        body = rendered(template, self.request.partial, shared | values).encode("utf-8", "replace")
        headers = [
            (b"content-type", b"text/html; charset=utf-8"),
            (b"cache-control", b"no-store"),
            (b"vary", b"Accept-Encoding, Cookie, HX-Request"),
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
        led = target.encode("ascii", "ignore")
        if self.request.by_script:
            return Response(200, [*headers, (b"hx-redirect", led)])
        return Response(303, [*headers, (b"location", led)])

    def json(self, text: str) -> Response:
        """Answer a script."""
        headers = [(b"content-type", b"application/json"), (b"cache-control", b"no-store"), *GUARDED]
        return Response(200, headers, text.encode())

    def refuse(self, refused: Refused | DomainError) -> Response:
        """Render a whole page that states a refusal."""
        known = self.signed_in is not None and self.signed_in.principal is not None
        return self.render(f"errors/{'signed_in' if known else 'stranger'}.html", refused=refused)

    def session_cookie(self, secret: str) -> Header:
        """Return the header that sets the cookie of a session."""
        return self.cookies.set(self.cookies.session, secret, int(LIFETIME.total_seconds()))


def sudo(back: str, *, own: bool = False) -> Callable[[View], View]:
    """Guard a view that touches security: whoever has not proved who they are just now is led to prove it, and back.

    Args:
        back: The page with its form, which one comes back to when a form was sent too late.
        own: A provider's word does not count as a proof where the person has another.

    """

    def guard(view: View) -> View:
        @wraps(view)
        async def proved(page: PageContext) -> Response:
            if page.person.session.is_sudo(page.dependencies.clock.now()) and not (own and await _only_vouched(page)):
                return await view(page)
            target = back if page.sent else page.request.target
            return page.redirect(f"{CONFIRM}?next={quote(target, safe='/')}")

        return proved

    return guard


async def _only_vouched(page: PageContext) -> bool:
    """Return whether only a provider speaks for the person, who has something of their own that signs in everywhere."""
    accounts, user = page.dependencies.accounts, page.person.user.id
    return page.person.session.only_vouched_for and bool(
        await accounts.passwords.has_one(user)
        or await accounts.factors.asks_for_code(user)
        or await accounts.passkeys.of_user(user)
    )
