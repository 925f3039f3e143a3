"""Handler of requests for console pages: routing, authentication, permissions, and error pages."""

import logging
from collections.abc import Sequence
from contextlib import nullcontext
from functools import lru_cache
from hashlib import blake2b

from werkzeug.exceptions import HTTPException, MethodNotAllowed
from werkzeug.routing import Map, MapAdapter, Rule

from domain.access.model import SESSION_PREFIX, is_well_formed_secret
from domain.kernel.concurrency import ConcurrencyLimit
from domain.kernel.errors import DomainError, NotFound, PermissionDenied
from domain.people.model import SignedIn
from domain.people.usecases.sessions import SessionService
from entrypoints.console.context import ConsolePage, ConsoleServices, OperationRefused, PageContext
from entrypoints.console.rendering import STATIC_PATH, get_static_files
from entrypoints.console.request import MAX_ANONYMOUS_FORM_BYTES, MAX_FORM_BYTES, ConsoleRequest
from entrypoints.console.security import (
    MAX_FILE_FORMS,
    MAX_FILE_FORMS_PER_ORGANISATION,
    SAFE_METHODS,
    SESSION_VERSION_COOKIE,
    build_sign_in_url,
)
from entrypoints.console.translation import N_, choose_language, gettext, use_language
from entrypoints.dependencies import Dependencies
from entrypoints.http.credentials import TtlCache
from entrypoints.http.exchange import Response
from entrypoints.http.pipeline import Pipeline
from entrypoints.http.representations import apply_compression, compress, should_compress
from entrypoints.operations.codes import CODES
from entrypoints.settings import Settings

log = logging.getLogger("joinery.console")
_NO_PAGE = N_("Page not found")
_FAILED = N_(
    "Something went wrong on our side. Try again, or send the request ID below to the operator of this service."
)


@lru_cache(maxsize=4)  # compiling the routes is the slowest part of creating an application
def _build_router(pages: tuple[ConsolePage, ...]) -> MapAdapter:
    """Return the URL router of the pages."""
    rules = [Rule(page.path_pattern, endpoint=page, methods=page.methods) for page in pages]
    return Map(rules, strict_slashes=False, merge_slashes=False).bind("console")


class Console:
    """Handler of requests for console pages and static files."""

    def __init__(self, dependencies: Dependencies, pipeline: Pipeline, pages: Sequence[ConsolePage]) -> None:
        self.services = ConsoleServices(dependencies, pipeline, pages)
        self._router, self._static = _build_router(self.services.pages), get_static_files()
        self._file_forms = ConcurrencyLimit(
            MAX_FILE_FORMS, MAX_FILE_FORMS_PER_ORGANISATION, noun="file uploads in progress", retry_after=5
        )
        self._sessions = TtlCache[SignedIn]()
        self._spool = dependencies[Settings].work_dir
        if self._spool is not None:
            self._spool.mkdir(parents=True, exist_ok=True)

    @property
    def rules(self) -> tuple[str, ...]:
        """The path patterns that the console handles: /console, everything below it, and some pages elsewhere."""
        elsewhere = {page.path_pattern for page in self.services.pages if not page.path_pattern.startswith("/console")}
        return ("/console", "/console/", "/console/<path:rest>", *sorted(elsewhere))

    def list_methods(self, rule: str) -> list[str]:
        """Return the HTTP methods of the pages with the path pattern `rule`, one of `rules` outside /console.

        The API may handle other methods of the same path.
        """
        return sorted({method for page in self.services.pages if page.path_pattern == rule for method in page.methods})

    async def respond(self, request: ConsoleRequest) -> Response:
        """Return the requested static file or page, compressed if useful, or an error page if the request fails.

        The response to HEAD has no body.
        """
        found = (
            request.path.startswith(STATIC_PATH) and request.method in SAFE_METHODS and self._static.find(request.path)
        )
        response = found or await self._respond(request)
        if response.stream is None:
            if should_compress(request.headers.get("accept-encoding"), len(response.body)):
                apply_compression(response, compress(response.body))
            response.headers.append((b"content-length", str(len(response.body)).encode()))
        if request.method == "HEAD":
            response.body, response.stream = b"", None
        return response

    async def _respond(self, request: ConsoleRequest) -> Response:
        """Return the requested page, which is not a static file; for any exception, an error page."""
        accepted = request.headers.get("accept-language", "")
        use_language(choose_language(accepted))
        page = PageContext(self.services, request)
        try:
            page.signed_in = await self._find_session(request)
            if page.signed_in and page.signed_in.user.language:
                use_language(choose_language(accepted, page.signed_in.user.language))
            row = page.page = self._match_page(page)
            response = await self._call_view(page, row)
        except (OperationRefused, DomainError) as error:
            response = page.render_refused(error)
        except Exception:
            log.exception("request for a console page failed", extra={"request_id": page.request_id})
            failed = {"status": 500, "title": CODES[DomainError.code].title, "detail": gettext(_FAILED)}
            response = page.render_refused(OperationRefused(failed | {"request_id": page.request_id}))
        response.headers.append((b"request-id", page.request_id.encode()))
        return response

    async def _find_session(self, request: ConsoleRequest) -> SignedIn | None:
        """Return the session of the session cookie, cached for half a second; None if the cookie is missing or invalid."""
        secret = request.cookies.get(self.services.cookies.session_cookie_name, "")
        if not is_well_formed_secret(secret, (SESSION_PREFIX,)):
            return None
        view = request.cookies.get(SESSION_VERSION_COOKIE, "")[:64]
        digest = blake2b(f"{secret}\0{view}".encode(), digest_size=16).digest()
        entry = self._sessions.find_entry(digest)
        if entry is not None:
            return entry[0]
        return await self._sessions.get_or_find(digest, lambda: self.services.dependencies[SessionService].find(secret))

    def _match_page(self, page: PageContext) -> ConsolePage:
        """Return the page at the requested path, and store the parameters of the path in the context.

        Raises:
            NotFound: The path has no page.
            OperationRefused: The page does not support the method.
        """
        if "\0" in page.request.path:
            raise NotFound(gettext(_NO_PAGE))
        try:
            found, page.path_parameters = self._router.match(page.request.path, page.request.method)
        except MethodNotAllowed:
            problem = {"status": 405, "title": gettext("Method not allowed")}
            raise OperationRefused(
                problem | {"detail": gettext("This page can't process the request. Go back and try again.")}
            ) from None
        except HTTPException:
            raise NotFound(gettext(_NO_PAGE)) from None
        matched_page: ConsolePage = found
        return matched_page

    async def _call_view(self, page: PageContext, matched_page: ConsolePage) -> Response:
        """Call the page's view after checking the request's origin, the sign-in, the permission and the CSRF token."""
        request, changes = page.request, page.request.method not in SAFE_METHODS
        checks_forgery = changes and not matched_page.has_signed_path
        if checks_forgery:
            self.services.forgery.check_origin(request)
        if matched_page.audience != "anybody" and page.signed_in is None:
            # A submitted form is discarded: after signing in, the person starts at the home page.
            return page.redirect(build_sign_in_url("/console" if changes else request.target))
        if matched_page.audience == "member" and page.person.principal is None:
            return page.render("errors/no_organisation.html", status=403)
        page.require_scope(matched_page.scope)
        if not page.has_page(matched_page):
            raise PermissionDenied(gettext("This page isn't for organisations of your type."))
        if not changes:
            return await matched_page.view(page)
        takes_files = matched_page.audience == "member" and matched_page.max_bytes > MAX_FORM_BYTES
        with self._file_forms.immediate_slot(page.principal.tenant.org) if takes_files else nullcontext():
            page.form, page.files = await request.read_form(
                matched_page.max_bytes if page.signed_in else MAX_ANONYMOUS_FORM_BYTES, self._spool
            )
            if checks_forgery:
                session_id = page.signed_in.session.id if page.signed_in else ""
                self.services.forgery.check_token(request, page.form, session_id)
            try:
                return await matched_page.view(page)
            except (OperationRefused, DomainError) as error:
                if matched_page.error_view is None:
                    raise
                page.refused = page.to_refused(error)
                return await matched_page.error_view(page)
