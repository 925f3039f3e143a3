"""OAuth apps: those that the organisation makes, with a secret shown once, and what people let apps do."""

from collections.abc import Mapping, Sequence
from typing import Final

from domain.access.model import SCOPES
from domain.oauth.model import DEFAULT_SCOPES, App, AppKind, Grant
from domain.oauth.usecases.apps import AppChange, AppService, NewApp
from domain.orgs.model import MANAGERS
from entrypoints.console.acting import acting
from entrypoints.console.page import Answer, Entry, Page
from entrypoints.console.refusals import Refused
from entrypoints.console.sudo import sudo
from entrypoints.console.visit import Visit
from entrypoints.operations.scopes import permissions

PLACE: Final = "/console/developers/apps"
KINDS: Final = (
    ("web", "Web app", "Runs on a server of yours, which keeps its secret."),
    ("single_page", "Single-page app", "Runs in the browser and has no secret."),
    ("native", "Native app", "Runs on a phone, a desktop or in a terminal, and has no secret."),
    ("machine", "Machine app", "A server that acts as the organisation, without anybody who signs in."),
)
_SCOPE: Final = "webhooks:read"
"""Held by whoever sees what developers see; billing does not."""


async def apps(visit: Visit) -> Answer:
    """The organisation's apps, and what the visitor lets apps do; of managers, what everybody lets them do."""
    services, manages = visit.console.oauth, visit.principal.role in MANAGERS
    async with acting(visit, "apps.list", livemode=True) as tx:
        listed = await services.apps.list_apps(tx)
        granted = await services.grants.list_grants(tx, visit.principal, everybody=manages)
    return visit.render(
        "apps/list.html",
        apps=listed,
        grants=granted,
        people=await _people(visit, granted),
        permissions=permissions,
        kinds=_TITLES,
        manages=manages,
        me=visit.person.user.id,
    )


async def _people(visit: Visit, grants: Sequence[Grant]) -> Mapping[str, str]:
    """What to call whoever granted."""
    ids = sorted({grant.user for grant in grants})
    found = await visit.dependencies.people.several(ids) if ids else {}
    return {id_: user.called for id_, user in found.items()}


@sudo(f"{PLACE}/new")
async def new_app(visit: Visit) -> Answer:
    """The form, and what it makes: the secret is on that page alone."""
    if visit.asked.method != "POST":
        return _form(visit, None)
    try:
        wanted = NewApp(visit.form["name"], _kind(visit.form["kind"]), _uris(visit), _scopes(visit))
        async with acting(visit, "apps.create", livemode=True) as tx:
            app, secret = await _service(visit).create_app(tx, visit.principal, wanted)
    except Refused as error:
        return _form(visit, None, error)
    return visit.render("apps/secret.html", status=201, app=app, secret=secret, rotated=False)


async def edit(visit: Visit) -> Answer:
    """One app: what can be changed of it."""
    return _form(visit, await _app(visit))


@sudo(PLACE)
async def save(visit: Visit) -> Answer:
    """Change it: where codes are sent, and what may be asked for."""
    app = await _app(visit)
    try:
        change = AppChange(visit.form["name"], _uris(visit), _scopes(visit))
        async with acting(visit, "apps.update", livemode=True) as tx:
            await _service(visit).change_app(tx, visit.principal, app.id, change)
    except Refused as error:
        return _form(visit, app, error)
    return visit.redirect(f"{PLACE}/{app.id}", "Saved.")


@sudo(PLACE)
async def rotate(visit: Visit) -> Answer:
    """Ask once more, then make a new secret, shown once."""
    app = await _app(visit)
    if visit.asked.method != "POST":
        return visit.render("apps/rotate.html", app=app)
    async with acting(visit, "apps.rotate_secret", livemode=True) as tx:
        changed, secret = await _service(visit).rotate_secret(tx, visit.principal, app.id)
    return visit.render("apps/secret.html", app=changed, secret=secret, rotated=True)


@sudo(PLACE)
async def delete(visit: Visit) -> Answer:
    """Ask once more, then delete."""
    app = await _app(visit)
    if visit.asked.method != "POST":
        return visit.render("apps/delete.html", app=app)
    async with acting(visit, "apps.delete", livemode=True) as tx:
        await _service(visit).delete_app(tx, visit.principal, app.id)
    return visit.redirect(PLACE, f"{app.name} is deleted. Its tokens prove nothing any more.")


async def revoke_grant(visit: Visit) -> Answer:
    """Take back what an app was let do."""
    async with acting(visit, "grants.revoke", livemode=True) as tx:
        await visit.console.oauth.grants.revoke_grant(tx, visit.principal, visit.ids["grant"])
    return visit.redirect(PLACE, "It is taken back. Within a second the app can do nothing any more.")


def _service(visit: Visit) -> AppService:
    return visit.console.oauth.apps


async def _app(visit: Visit) -> App:
    """The app meant. Raises Refused."""
    async with acting(visit, "apps.read", livemode=True) as tx:
        return await _service(visit).get_app(tx, visit.ids["app"])


def _kind(text: str) -> AppKind:
    """The kind that was chosen; what is none counts as the first."""
    return AppKind(text) if text in set(AppKind) else AppKind.WEB


def _uris(visit: Visit) -> tuple[str, ...]:
    """One a line, each once."""
    lines = (line.strip() for line in visit.form["redirect_uris"].splitlines())
    return tuple(dict.fromkeys(line for line in lines if line))


def _scopes(visit: Visit) -> frozenset[str]:
    return SCOPES if visit.form["what"] == "all" else frozenset(visit.form.all("scopes"))


_TITLES: Final = {kind: title for kind, title, _ in KINDS}


def _form(visit: Visit, app: App | None, refused: Refused | None = None) -> Answer:
    """The form; a fault of any one redirect URI is told below their field."""
    errors = dict(refused.fields) if refused is not None else {}
    uris = [text for name, text in errors.items() if name.startswith("redirect_uris")]
    if uris:
        errors["redirect_uris"] = uris[0]
    form, sent = visit.form, visit.asked.method == "POST"
    chosen = frozenset(form.all("scopes")) if sent else app.scopes if app is not None else DEFAULT_SCOPES
    everything = form["what"] == "all" if sent else app is not None and app.scopes == SCOPES
    return visit.render(
        "apps/form.html",
        status=200 if refused is None else refused.status,
        refused=refused,
        errors=errors,
        app=app,
        name=form["name"] if sent else app.name if app is not None else "",
        kind=form.get("kind", "web"),
        kinds=KINDS,
        titles=_TITLES,
        uris=form["redirect_uris"] if sent else "\n".join(app.redirect_uris) if app is not None else "",
        chosen=frozenset() if everything else chosen,
        everything=everything,
        permissions=permissions(SCOPES),
        manages=visit.principal.role in MANAGERS,
    )


PAGES: Final = (
    Page(PLACE, apps, scope=_SCOPE, menu=Entry("Developers", "OAuth apps")),
    Page(f"{PLACE}/new", new_app, methods=("GET", "POST"), scope=_SCOPE, menu="Developers"),
    Page(f"{PLACE}/<app>", edit, scope=_SCOPE, menu="Developers"),
    Page(f"{PLACE}/<app>", save, methods=("POST",), scope=_SCOPE, menu="Developers"),
    Page(f"{PLACE}/<app>/rotate", rotate, methods=("GET", "POST"), scope=_SCOPE, menu="Developers"),
    Page(f"{PLACE}/<app>/delete", delete, methods=("GET", "POST"), scope=_SCOPE, menu="Developers"),
    Page(f"{PLACE}/grants/<grant>/revoke", revoke_grant, methods=("POST",), scope=_SCOPE, menu="Developers"),
)
