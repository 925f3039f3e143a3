"""The console whole: finds the page, makes sure of who asks and that they may, calls its view, and tells what went wrong."""

import logging
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import Final
from urllib.parse import urlsplit

from werkzeug.exceptions import HTTPException, MethodNotAllowed
from werkzeug.exceptions import NotFound as NoSuchRule
from werkzeug.routing import Map, MapAdapter, Rule

from adapters.s3.address import parse
from domain.kernel.concurrency import ConcurrencyLimit
from domain.kernel.errors import DomainError, NotFound
from domain.kernel.ids import new_id
from domain.people.usecases.invitations import InvitationService
from domain.people.usecases.throttling import Devices, Throttle
from domain.runs.usecases.excerpting import Excerpting
from domain.runs.usecases.origins import OriginRows
from entrypoints.console.asked import Asked
from entrypoints.console.cookies import Cookies
from entrypoints.console.forgery import SAFE, ForgeryCheck, Signatures
from entrypoints.console.forms import LONGEST, STRANGERS, read_form
from entrypoints.console.guard import Guard
from entrypoints.console.page import Answer, Page
from entrypoints.console.places import sign_in_place
from entrypoints.console.refusals import Refused, refused
from entrypoints.console.static_files import PLACE, static_files
from entrypoints.console.visit import Visit
from entrypoints.dependencies import Dependencies
from entrypoints.http.pipeline import Pipeline
from entrypoints.http.representations import is_packed, packed, put
from entrypoints.oauth.endpoints import OAuthServices, oauth_services

log = logging.getLogger("joinery.console")
_NO_PAGE: Final = "There is no such page. The menu leads to every page there is."
_FAILED: Final = (
    "Something went wrong on our side. Try again; if it stays, tell the operator the number below: it is in the log."
)


@lru_cache(maxsize=4)  # to compile them takes longer than all else that an application is made of
def _rules_of(pages: tuple[Page, ...]) -> MapAdapter:
    """What finds a page by its path."""
    rules = [Rule(page.rule, endpoint=page, methods=page.methods) for page in pages]
    return Map(rules, strict_slashes=False, merge_slashes=False).bind("console")


class Console:
    """Answers requests for pages."""

    def __init__(self, dependencies: Dependencies, pipeline: Pipeline, pages: Sequence[Page]) -> None:
        self.dependencies, self.pipeline, self.pages = dependencies, pipeline, tuple(pages)
        base_url = dependencies.settings.base_url
        self.signatures = Signatures(dependencies.keys.links)
        self.cookies = Cookies(base_url, self.signatures)
        self.forgery = ForgeryCheck(self.signatures, base_url)
        self.guard, self._static = Guard(dependencies.sessions, self.cookies), static_files()
        self._files_in_hand = ConcurrencyLimit(64, 4, noun="forms with files in hand", retry_after=5)
        self._rules = _rules_of(self.pages)
        self._spool = dependencies.settings.work_dir
        if self._spool is not None:
            self._spool.mkdir(parents=True, exist_ok=True)

    @cached_property
    def object_origins(self) -> tuple[str, ...]:
        """The servers that links to stored objects lead to, for policies."""
        settings = self.dependencies.settings
        places = [settings.base_url]
        if settings.objects_url.startswith("s3://"):
            places.append(parse(settings.objects_url).endpoint)
        return tuple(f"{parts.scheme}://{parts.netloc}" for place in places if (parts := urlsplit(place)).netloc)

    @cached_property
    def origins(self) -> OriginRows:
        """Where the rows are found that products were read from."""
        made = self.dependencies
        return OriginRows(made.uow, made.objects, made.feed_readers, made.workspaces)

    @cached_property
    def excerpting(self) -> Excerpting:
        """Where lines of feeds are read that something was wrong with."""
        made = self.dependencies
        return Excerpting(made.objects, made.feed_readers, made.workspaces)

    @cached_property
    def oauth(self) -> OAuthServices:
        """What apps ask of people."""
        return oauth_services(self.dependencies)

    @cached_property
    def invitations(self) -> InvitationService:
        """Invitations to organisations."""
        made = self.dependencies
        return InvitationService(
            made.memberships,
            made.people,
            made.access,
            made.outgoing_mail,
            Throttle(made.limits, Devices(made.access)),
            made.clock,
            made.settings.base_url,
        )

    @property
    def rules(self) -> tuple[str, ...]:
        """What a server has to lead here: everything below /console, and pages elsewhere."""
        beside = {page.rule for page in self.pages if not page.rule.startswith("/console")}
        return ("/console", "/console/", "/console/<path:rest>", *sorted(beside))

    def methods_of(self, rule: str) -> list[str]:
        """The methods of a page elsewhere: programs may ask something else of the same address by others."""
        return sorted({method for page in self.pages if page.rule == rule for method in page.methods})

    def leads(self, place: str) -> bool:
        """Whether there is a page at a place."""
        try:
            return bool(self._rules.match(place.partition("?")[0], "GET"))
        except HTTPException:
            return False

    async def answer(self, asked: Asked) -> Answer:
        """The response, whatever happens."""
        accepted = asked.headers.get("accept-encoding")
        if asked.path.startswith(PLACE) and asked.method in SAFE:
            found = self._static.find(asked.path, accepted)
            if found is not None:
                return _to_visitor(asked, found)
        answer = await self._page(asked)
        if answer.stream is None:
            if is_packed(accepted, len(answer.body)):
                put(answer, packed(answer.body))
            answer.headers.append((b"content-length", str(len(answer.body)).encode()))
        return _to_visitor(asked, answer)

    async def _page(self, asked: Asked) -> Answer:
        visit = Visit(self, asked, None, request_id=new_id("req"))
        try:
            visit.signed_in = await self.guard.find(asked)
            visit = self._found(visit)
            answer = await self._visited(visit)
        except Refused as error:
            answer = visit.refuse(error)
        except DomainError as error:
            answer = self._refusal(visit, self.pipeline.problems.known(error, visit.request_id))
        except Exception:
            log.exception("a page failed", extra={"request_id": visit.request_id})
            answer = self._refusal(visit, DomainError(_FAILED))
        answer.headers.append((b"request-id", visit.request_id.encode()))
        return answer

    def _refusal(self, visit: Visit, error: DomainError) -> Answer:
        return visit.refuse(refused(error, visit.request_id))

    def _found(self, visit: Visit) -> Visit:
        """The visit with its page. Raises Refused or NotFound."""
        if "\0" in visit.asked.path:
            raise NotFound(_NO_PAGE)
        try:
            page, ids = self._rules.match(visit.asked.path, visit.asked.method)
        except NoSuchRule:
            raise NotFound(_NO_PAGE) from None
        except MethodNotAllowed:
            told = {"status": 405, "code": "method_not_allowed", "title": "Not that way"}
            raise Refused(told | {"detail": "This page does not take that; go back and try again."}) from None
        except HTTPException:
            raise NotFound(_NO_PAGE) from None
        return replace(visit, page=page, ids=ids)

    async def _visited(self, visit: Visit) -> Answer:
        page, asked = visit.page, visit.asked
        if page is None:
            raise LookupError("no page")
        changes = asked.method not in SAFE
        if changes:
            self.forgery.check_place(asked)
        if page.who != "anybody" and visit.signed_in is None:
            # What was sent is not kept: after the sign-in, the page with the form is shown again.
            return visit.redirect(sign_in_place(asked.place if not changes else "/console"))
        if page.who == "member" and visit.person.principal is None:
            return visit.render("errors/no_organisation.html", status=403)
        if page.scope is not None:
            visit.needs(page.scope)
        if not changes:
            return await page.view(visit)
        with self._files_in_hand.holding(visit.principal.tenant.org) if page.most > LONGEST else nullcontext():
            most = page.most if visit.signed_in is not None else STRANGERS
            form = await read_form(asked, most, self._spool)
            visit.form, visit.files = form.values, form.files
            self.forgery.check_token(asked, form.values, visit.signed_in.session.id if visit.signed_in else "")
            return await page.view(visit)


def _to_visitor(asked: Asked, answer: Answer) -> Answer:
    """HEAD gets the headers alone; a stream is not begun for it."""
    if asked.method == "HEAD":
        answer.body, answer.stream = b"", None
    return answer
