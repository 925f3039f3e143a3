"""One request to the console: who makes it, what it says, and how it is answered."""

from collections.abc import Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from domain.access.model import Principal
from domain.kernel.errors import PermissionDenied
from domain.kernel.ids import new_id
from domain.people.model import SignedIn
from entrypoints.console.asked import Asked, Values, values_of
from entrypoints.console.console_api import ConsoleApi
from entrypoints.console.cookies import NOTICE, THEME, THEMES, Header, Notice
from entrypoints.console.forgery import FIELD
from entrypoints.console.forms import Form
from entrypoints.console.menu import menu_of
from entrypoints.console.page import Answer, Page
from entrypoints.console.policy import GUARDED, content_policy
from entrypoints.console.refusals import Refused
from entrypoints.console.rendering import rendered
from entrypoints.dependencies import Dependencies
from entrypoints.http.exchange import Response
from ports.unit_of_work import Tx

if TYPE_CHECKING:
    from entrypoints.console.console import Console

_NOTHING = Form(Values([]))


@dataclass
class Visit:
    """What a view is given. `ids` are the named parts of the page's rule; `form` is empty unless a form was sent."""

    console: "Console"
    asked: Asked
    page: Page | None
    ids: Mapping[str, str] = field(default_factory=dict)
    signed_in: SignedIn | None = None
    form: Values = _NOTHING.values
    files: Mapping[str, Any] = field(default_factory=dict)
    request_id: str = ""

    @property
    def dependencies(self) -> Dependencies:
        """For use cases that have no operation."""
        return self.console.dependencies

    @cached_property
    def query(self) -> Values:
        """The parameters in the address."""
        return values_of(self.asked.query)

    @property
    def person(self) -> SignedIn:
        """Who is signed in. Raises LookupError on pages for anybody."""
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

    def service(self, area: str) -> Any:
        """The use cases of an area."""
        return self.console.pipeline.services[area]

    def reading(self) -> AbstractAsyncContextManager[Tx]:
        """The tenant's stores, to read from."""
        return self.dependencies.uow.read(self.principal.tenant)

    def may(self, scope: str) -> bool:
        """Whether the role lets the person do that."""
        return self.signed_in is not None and self.signed_in.principal is not None and scope in self.principal.scopes

    def leads(self, place: str) -> bool:
        """Whether the console has a page there; what leads nowhere is better not shown."""
        return self.console.leads(place)

    def needs(self, scope: str) -> None:
        """Raises PermissionDenied unless the role lets the person do that."""
        if not self.may(scope):
            raise PermissionDenied(
                f"Your role does not include what this page needs ({scope}). An owner or admin can change it."
            )

    @cached_property
    def api(self) -> ConsoleApi:
        """The API's operations, for this person."""
        return ConsoleApi(self.console.pipeline, self.principal, self.asked, self.form["once"])

    @property
    def csrf(self) -> Markup:
        """The hidden fields that every form needs: the session's token, and a token that makes sending twice harmless."""
        return Markup('<input type="hidden" name="{}" value="{}"><input type="hidden" name="once" value="{}">').format(
            FIELD, self.csrf_token, self._once
        )

    @cached_property
    def csrf_token(self) -> str:
        """The token alone, for the header `X-Csrf`."""
        session = self.signed_in.session.id if self.signed_in else ""
        return self.console.forgery.token(session)

    @cached_property
    def _once(self) -> str:
        return new_id("key")

    @cached_property
    def theme(self) -> str:
        """`light`, `dark`, or empty for what the system says."""
        chosen = self.asked.cookies.get(THEME, "")
        return chosen if chosen in THEMES else ""

    def render(
        self,
        template: str,
        *,
        status: int = 200,
        pictures: Iterable[str] = (),
        targets: Iterable[str] = (),
        connect: Iterable[str] = (),
        **values: Any,
    ) -> Answer:
        """A page; `pictures`, `targets`, `connect` are foreign origins that its policy allows.

        When htmx asks for one element, and the template has a block of that name, the block alone is answered.
        """
        partial = self.asked.partial
        notice = self._notice() if partial is None else None
        known = {"visit": self, "notice": notice, "menu": self._menu, "csrf": self.csrf, "theme": self.theme}
        body = rendered(template, partial, known | values).encode("utf-8", "replace")
        headers = [
            (b"content-type", b"text/html; charset=utf-8"),
            (b"cache-control", b"no-store"),
            (b"vary", b"Accept-Encoding, Cookie, HX-Request"),
            (b"content-security-policy", content_policy(pictures, targets, connect)),
            *GUARDED,
        ]
        if notice is not None:
            headers.append(self.console.cookies.no_notice())
        return Response(status, headers, body)

    def redirect(
        self, place: str, notice: str | None = None, *, tone: str = "good", cookies: Iterable[Header] = ()
    ) -> Answer:
        """Lead on, by default to a page that then shows the notice; `place` is the caller's own or has gone through `safe_place`."""
        headers: list[Header] = [(b"cache-control", b"no-store"), *GUARDED, *cookies]
        if notice is not None:
            headers.append(self.console.cookies.notice(Notice(notice, tone)))
        target = place.encode("ascii", "ignore")
        if self.asked.by_script:
            return Response(200, [*headers, (b"hx-redirect", target)])
        return Response(303, [*headers, (b"location", target)])

    def json(self, text: str) -> Answer:
        """What a script asks for."""
        return Response(
            200, [(b"content-type", b"application/json"), (b"cache-control", b"no-store"), *GUARDED], text.encode()
        )

    def refuse(self, refused: Refused) -> Answer:
        """A whole page that tells a refusal."""
        template = (
            "errors/signed_in.html"
            if self.signed_in is not None and self.signed_in.principal is not None
            else "errors/stranger.html"
        )
        answer = self.render(template, status=refused.status, refused=refused)
        if refused.retry_after is not None:
            answer.headers.append((b"retry-after", refused.retry_after.encode("ascii", "ignore")))
        return answer

    def _menu(self) -> Any:
        principal = self.signed_in.principal if self.signed_in else None
        return menu_of(self.console.pages, principal.scopes if principal else (), self.page)

    def _notice(self) -> Notice | None:
        text = self.asked.cookies.get(NOTICE, "")
        return self.console.cookies.told(text) if text else None
