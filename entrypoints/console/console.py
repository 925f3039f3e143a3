"""Handling of page requests: routing, authentication, permissions, the call of the view, and error pages."""

import logging
from collections.abc import Sequence
from contextlib import nullcontext
from functools import lru_cache
from hashlib import blake2b

from werkzeug.exceptions import HTTPException, MethodNotAllowed
from werkzeug.routing import Map, MapAdapter, Rule

from domain.access.model import SESSION_PREFIX, is_secret
from domain.kernel.concurrency import ConcurrencyLimit
from domain.kernel.errors import DomainError, NotFound
from domain.people.model import SignedIn
from domain.people.usecases.sessions import SessionService
from entrypoints.console.context import ConsoleServices, Page, PageContext, Refused
from entrypoints.console.rendering import STATIC, static_files
from entrypoints.console.request import ANONYMOUS, LONGEST, ConsoleRequest
from entrypoints.console.security import MOST_FILES, MOST_FILES_OF_ONE, SAFE, VIEW, sign_in_target
from entrypoints.console.translation import N_, choose_language, gettext, use_language
from entrypoints.dependencies import Dependencies
from entrypoints.http.credentials import TtlCache
from entrypoints.http.exchange import Response
from entrypoints.http.pipeline import Pipeline
from entrypoints.http.representations import is_packed, packed, put
from entrypoints.operations.codes import CODES
from entrypoints.settings import Settings

log = logging.getLogger("joinery.console")
_NO_PAGE = N_("Page not found")
_FAILED = N_(
    "Something went wrong on our side. Try again, or send the request ID below to the operator of this service."
)


@lru_cache(maxsize=4)  # compiling the routes is the slowest part of creating an application
def _routes_of(pages: tuple[Page, ...]) -> MapAdapter:
    rules = [Rule(page.rule, endpoint=page, methods=page.methods) for page in pages]
    return Map(rules, strict_slashes=False, merge_slashes=False).bind("console")


class Console:
    """Handler of page requests."""

    def __init__(self, dependencies: Dependencies, pipeline: Pipeline, pages: Sequence[Page]) -> None:
        self.services = ConsoleServices(dependencies, pipeline, pages)
        self._routes, self._static = _routes_of(self.services.pages), static_files()
        self._file_forms = ConcurrencyLimit(
            MOST_FILES, MOST_FILES_OF_ONE, noun="forms with files in hand", retry_after=5
        )
        self._sessions = TtlCache[SignedIn]()
        self._spool = dependencies[Settings].work_dir
        if self._spool is not None:
            self._spool.mkdir(parents=True, exist_ok=True)

    @property
    def rules(self) -> tuple[str, ...]:
        """The routes that a server must send here: everything below /console, and pages elsewhere."""
        elsewhere = {page.rule for page in self.services.pages if not page.rule.startswith("/console")}
        return ("/console", "/console/", "/console/<path:rest>", *sorted(elsewhere))

    def methods_of(self, rule: str) -> list[str]:
        """Return the methods of a page outside /console; other methods of its address may belong to the API."""
        return sorted({method for page in self.services.pages if page.rule == rule for method in page.methods})

    async def answer(self, request: ConsoleRequest) -> Response:
        """Respond to a request, with an error page if it fails; HEAD gets the headers only and starts no stream."""
        found = request.path.startswith(STATIC) and request.method in SAFE and self._static.find(request.path)
        response = found or await self._page(request)
        if response.stream is None:
            if is_packed(request.headers.get("accept-encoding"), len(response.body)):
                put(response, packed(response.body))
            response.headers.append((b"content-length", str(len(response.body)).encode()))
        if request.method == "HEAD":
            response.body, response.stream = b"", None
        return response

    async def _page(self, request: ConsoleRequest) -> Response:
        use_language(choose_language(request.headers.get("accept-language", "")))
        page = PageContext(self.services, request)
        try:
            page.signed_in = await self._signed_in(request)
            row = page.page = self._route(page)
            response = await self._view(page, row)
        except (Refused, DomainError) as error:
            response = page.refuse(error)
        except Exception:
            log.exception("a page failed", extra={"request_id": page.request_id})
            failed = {"status": 500, "title": CODES[DomainError.code].title, "detail": gettext(_FAILED)}
            response = page.refuse(Refused(failed | {"request_id": page.request_id}))
        response.headers.append((b"request-id", page.request_id.encode()))
        return response

    async def _signed_in(self, request: ConsoleRequest) -> SignedIn | None:
        """Return the session of the cookie, cached for half a second; None without a valid session."""
        secret = request.cookies.get(self.services.cookies.session, "")
        if not is_secret(secret, (SESSION_PREFIX,)):
            return None
        view = request.cookies.get(VIEW, "")[:64]
        digest = blake2b(f"{secret}\0{view}".encode(), digest_size=16).digest()
        entry = self._sessions.get(digest)
        if entry is not None:
            return entry[0]
        return await self._sessions.ask(digest, lambda: self.services.dependencies[SessionService].find(secret))

    def _route(self, page: PageContext) -> Page:
        """Return the requested page, and set its parameters in the context. Raises Refused or NotFound."""
        if "\0" in page.request.path:
            raise NotFound(gettext(_NO_PAGE))
        try:
            found, page.ids = self._routes.match(page.request.path, page.request.method)
        except MethodNotAllowed:
            problem = {"status": 405, "title": gettext("Method not allowed")}
            raise Refused(
                problem | {"detail": gettext("This page can't process the request. Go back and try again.")}
            ) from None
        except HTTPException:
            raise NotFound(gettext(_NO_PAGE)) from None
        row: Page = found
        return row

    async def _view(self, page: PageContext, row: Page) -> Response:
        request, changes = page.request, page.request.method not in SAFE
        if changes:
            self.services.forgery.check_origin(request)
        if row.who != "anybody" and page.signed_in is None:
            # A submitted form is discarded: after signing in, the person starts at the home page.
            return page.redirect(sign_in_target("/console" if changes else request.target))
        if row.who == "member" and page.person.principal is None:
            return page.render("errors/no_organisation.html", status=403)
        page.needs(row.scope)
        if not changes:
            return await row.view(page)
        takes_files = row.who == "member" and row.most > LONGEST
        with self._file_forms.holding(page.principal.tenant.org) if takes_files else nullcontext():
            page.form, page.files = await request.form(row.most if page.signed_in else ANONYMOUS, self._spool)
            self.services.forgery.check_token(request, page.form, page.signed_in.session.id if page.signed_in else "")
            try:
                return await row.view(page)
            except (Refused, DomainError) as error:
                if row.again is None:
                    raise
                page.refused = page.refusal(error)
                return await row.again(page)
