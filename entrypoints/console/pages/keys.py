"""Pages of API keys, OAuth apps and the access that people granted to apps."""

from collections.abc import Iterable, Mapping

from domain.access.model import KEY_PREFIXES, ROLES, SCOPES
from domain.access.ports import KeyStore
from domain.kernel.paging import PageRequest
from domain.oauth.model import DEFAULT_SCOPES, App, AppKind
from domain.oauth.usecases.apps import AppChange, NewApp
from domain.people.usecases.keys import KEY_MAKERS, KeyService, NewKey
from entrypoints.console.context import PageContext, Pages, sudo
from entrypoints.console.request import whole_number
from entrypoints.console.translation import N_, gettext
from entrypoints.http.exchange import Response
from entrypoints.operations.scopes import permissions
from entrypoints.settings import Settings
from ports.clock import Clock

KEYS = "/console/developers/keys"
APPS = "/console/developers/apps"

# Roles with webhooks:write can create keys; roles with webhooks:read can see the developer pages.
keys = Pages(KEYS, section="Developers", scope="webhooks:write")
apps = Pages(APPS, section="Developers", scope="webhooks:read")


async def _names(page: PageContext, users: Iterable[str | None]) -> Mapping[str, str]:
    """Return names of people by user ID."""
    ids = {id for id in users if id is not None}
    found = await page.people.several(ids) if ids else {}
    return {id: found[id].called if id in found else gettext("former member") for id in ids}


@keys.get(title=N_("API keys"))
async def list_keys(page: PageContext) -> Response:
    """Show the active or the revoked keys."""
    ended = page.query["show"] == "revoked"
    async with page.read() as tx:
        service = page.dependencies[KeyService]
        listed = await service.list_keys(tx, PageRequest(limit=20, key=page.cursor), ended=ended)
    return page.render(
        "keys/list.html",
        keys=listed.page.items,
        found={"has_more": listed.page.has_more, "next_cursor": listed.page.next_key},
        used=listed.used,
        makers=await _names(page, [key.member for key in listed.page.items]),
        ended=ended,
        prefixes=KEY_PREFIXES,
        now=page.dependencies[Clock].now(),
        makes=page.principal.role in KEY_MAKERS,
    )


@keys.form("/new")
@sudo(f"{KEYS}/new")
async def new_key(page: PageContext) -> Response:
    """Show the form, and create a key; its secret is shown on that response only."""
    form, held = page.form, ROLES[page.principal.role]
    if page.submitted:
        scopes = {
            "some": frozenset(form.all("scopes")),
            "read": frozenset(one for one in held if one.endswith(":read")),
        }
        wanted = NewKey(
            name=form["name"],
            restricted=form["restricted"] == "true",
            scopes=scopes.get(form["what"]),
            networks=tuple(form.entries("networks")),
            days=(whole_number(expires) or 0) if (expires := form.get("expires")) else None,  # 0 is refused
        )
        async with page.transaction("keys.create", livemode=form["mode"] != "test") as tx:
            key, secret = await page.dependencies[KeyService].create(tx, wanted)
        base_url = page.dependencies[Settings].base_url.rstrip("/")
        return page.render("keys/made.html", status=201, key=key, secret=secret, base_url=base_url)
    return page.render("keys/new.html", form=form, held=held, kinds=sorted({scope.partition(":")[0] for scope in held}))


@keys.form("/<key>/revoke", again=None)
async def revoke_key(page: PageContext) -> Response:
    """Ask for confirmation, and revoke the key."""
    id = page.ids["key"]
    if page.sent:
        async with page.transaction("keys.revoke") as tx:
            key = await page.dependencies[KeyService].revoke(tx, id)
        return page.redirect(KEYS, gettext("Key %(name)s revoked", name=key.name))
    async with page.read() as tx:
        found, used = await tx[KeyStore].get(id), await tx[KeyStore].used([id])
    if found is None or found.revoked_at is not None:
        return page.redirect(KEYS, gettext("This key is already revoked or does not exist."), tone="info")
    return page.render("keys/revoke.html", key=found, used=used.get(id), prefixes=KEY_PREFIXES)


@apps.get(title=N_("OAuth apps"))
async def list_apps(page: PageContext) -> Response:
    """Show the organisation's apps and the access granted to apps: by the person, and to managers by everyone."""
    services = page.console.oauth
    async with page.transaction("apps.list", livemode=True) as tx:
        listed = await services.apps.list_apps(tx)
        grants = await services.grants.list_grants(tx, page.principal, everybody=page.manages)
    people = await _names(page, [grant.user for grant in grants])
    return page.render("apps/list.html", apps=listed, grants=grants, people=people, permissions=permissions)


def _app_given(page: PageContext) -> tuple[tuple[str, ...], frozenset[str]]:
    """Return the redirect URIs without duplicates and the scopes of the form."""
    lines = [line.strip() for line in page.form["redirect_uris"].splitlines() if line.strip()]
    return tuple(dict.fromkeys(lines)), SCOPES if page.form["what"] == "all" else frozenset(page.form.all("scopes"))


@apps.get("/<app>")
async def show_app(page: PageContext) -> Response:
    """Show the form of an app or of a new app; an error in any redirect URI is shown at their common field."""
    app, form = await _app(page) if "app" in page.ids else None, page.form
    for name, text in list(page.refused.fields.items() if page.refused else ()):
        if page.refused and name.startswith("redirect_uris"):
            page.refused.fields.setdefault("redirect_uris", text)
    uris, chosen = _app_given(page) if page.sent else (app.redirect_uris, app.scopes) if app else ((), DEFAULT_SCOPES)
    return page.render(
        "apps/form.html",
        app=app,
        name=form["name"] if page.sent else app.name if app else "",
        kind=form.get("kind", "web"),
        uris=form["redirect_uris"] if page.sent else "\n".join(uris),
        chosen=chosen,
        everything=chosen == SCOPES and (page.sent or app is not None),
        permissions=permissions(SCOPES),
    )


apps.get("/new")(sudo(f"{APPS}/new")(show_app))


@apps.post("/new", again=show_app)
@sudo(f"{APPS}/new")
async def create_app(page: PageContext) -> Response:
    """Create an app; its secret is shown on this response only."""
    kind = AppKind(page.form["kind"]) if page.form["kind"] in set(AppKind) else AppKind.WEB
    wanted = NewApp(page.form["name"], kind, *_app_given(page))
    app, secret = await page.run("apps.create", page.console.oauth.apps.create_app, page.principal, wanted)
    return page.render("apps/secret.html", status=201, app=app, secret=secret, rotated=False)


async def _app(page: PageContext) -> App:
    return await page.run("apps.read", page.console.oauth.apps.get_app, page.ids["app"])


@apps.post("/<app>", again=show_app)
@sudo(APPS)
async def save_app(page: PageContext) -> Response:
    """Change the app's name, redirect URIs and scopes."""
    app, change = await _app(page), AppChange(page.form["name"], *_app_given(page))
    await page.run("apps.update", page.console.oauth.apps.change_app, page.principal, app.id, change)
    return page.redirect(f"{APPS}/{app.id}", gettext("App saved"))


@apps.form("/<app>/<any(rotate, delete):what>", again=None)
@sudo(APPS)
async def end_secret(page: PageContext) -> Response:
    """Ask for confirmation, and delete the app or create a new secret, which is shown once."""
    app, what, service = await _app(page), page.ids["what"], page.console.oauth.apps
    if not page.sent:
        return page.render(f"apps/{what}.html", app=app)
    if what == "delete":
        await page.run("apps.delete", service.delete_app, page.principal, app.id)
        return page.redirect(APPS, gettext("App %(name)s deleted", name=app.name))
    changed, secret = await page.run("apps.rotate_secret", service.rotate_secret, page.principal, app.id)
    return page.render("apps/secret.html", app=changed, secret=secret, rotated=True)


@apps.post("/grants/<grant>/revoke")
async def revoke_grant(page: PageContext) -> Response:
    """Revoke the access granted to an app."""
    await page.run("grants.revoke", page.console.oauth.grants.revoke_grant, page.principal, page.ids["grant"])
    return page.redirect(APPS, gettext("Access revoked. The app loses access within a second."))
