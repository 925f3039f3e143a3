"""Pages of API keys, OAuth apps, and the access that people granted to apps."""

from domain.access.model import KEY_PREFIXES, ROLES, SCOPES
from domain.access.ports import KeyStore
from domain.kernel.paging import PageRequest
from domain.oauth.model import DEFAULT_SCOPES, App, AppKind
from domain.oauth.usecases.apps import AppChange, NewApp
from domain.people.usecases.keys import KEY_CREATOR_ROLES, KeyService, NewKey
from entrypoints.console.context import PageContext, Pages, require_recent_confirmation
from entrypoints.console.request import parse_whole_number
from entrypoints.console.translation import N_, gettext
from entrypoints.http.exchange import Response
from entrypoints.operations.scopes import describe_scopes
from entrypoints.settings import Settings
from ports.clock import Clock

KEYS_PATH = "/console/developers/keys"
APPS_PATH = "/console/developers/apps"

# Roles with webhooks:write can create keys; roles with webhooks:read can see the developer pages.
key_pages = Pages(KEYS_PATH, section="Developers", scope="webhooks:write")
app_pages = Pages(APPS_PATH, section="Developers", scope="webhooks:read")


@key_pages.register_get(title=N_("API keys"))
async def list_keys(page: PageContext) -> Response:
    """Show the active API keys, or the revoked ones if the query selects them."""
    shows_revoked = page.query["show"] == "revoked"
    async with page.open_read_transaction() as tx:
        service = page.dependencies[KeyService]
        listed = await service.list_keys(tx, PageRequest(limit=20, key=page.cursor), revoked=shows_revoked)
    return page.render(
        "keys/list.html",
        keys=listed.page.items,
        results={"has_more": listed.page.has_more, "next_cursor": listed.page.next_key},
        last_used_at=listed.last_used_at,
        creator_names=await page.find_person_names(key.member for key in listed.page.items),
        shows_revoked=shows_revoked,
        prefixes=KEY_PREFIXES,
        now=page.dependencies[Clock].now(),
        can_create=page.principal.role in KEY_CREATOR_ROLES,
    )


@key_pages.register_form("/new")
@require_recent_confirmation(f"{KEYS_PATH}/new")
async def create_key(page: PageContext) -> Response:
    """Show the form for a new API key; if it is submitted, create the key and show its secret, once."""
    form, permitted_scopes = page.form, ROLES[page.principal.role]
    if page.must_process:
        scopes = {
            "all": None,
            "selected": frozenset(form.get_all("scopes")),
            "read": frozenset(scope for scope in permitted_scopes if scope.endswith(":read")),
        }
        wanted = NewKey(
            name=form["name"],
            restricted=form["restricted"] == "true",
            scopes=scopes.get(form["scope_selection"], frozenset()),
            networks=tuple(form.split_values("networks")),
            days=(parse_whole_number(expires) or 0) if (expires := form.get("expires")) else None,  # 0 is refused
        )
        async with page.open_transaction("keys.create", livemode=form["mode"] != "test") as tx:
            key, secret = await page.dependencies[KeyService].create(tx, wanted)
        base_url = page.dependencies[Settings].base_url.rstrip("/")
        return page.render("keys/created.html", status=201, key=key, secret=secret, base_url=base_url)
    return page.render(
        "keys/new.html",
        form=form,
        permitted_scopes=permitted_scopes,
        resources=sorted({scope.partition(":")[0] for scope in permitted_scopes}),
    )


@key_pages.register_form("/<key>/revoke", error_view=None)
async def revoke_key(page: PageContext) -> Response:
    """Show the confirmation page; if it is submitted, revoke the API key."""
    id = page.path_parameters["key"]
    if page.is_post:
        async with page.open_transaction("keys.revoke") as tx:
            key = await page.dependencies[KeyService].revoke(tx, id)
        return page.redirect(KEYS_PATH, gettext("Key %(name)s revoked", name=key.name))
    async with page.open_read_transaction() as tx:
        found, last_uses = await tx[KeyStore].get(id), await tx[KeyStore].get_last_uses([id])
    if found is None or found.revoked_at is not None:
        return page.redirect(KEYS_PATH, gettext("This key is already revoked or does not exist."), tone="info")
    return page.render("keys/revoke.html", key=found, last_used_at=last_uses.get(id), prefixes=KEY_PREFIXES)


@app_pages.register_get(title=N_("OAuth apps"))
async def list_apps(page: PageContext) -> Response:
    """Show the organisation's OAuth apps, and the access that the person granted to apps.

    Owners and admins also see the access that other members granted.
    """
    services = page.console.oauth
    async with page.open_transaction("apps.list", livemode=True) as tx:
        listed = await services.apps.list_apps(tx)
        grants = await services.consents.list_consents(tx, page.principal, includes_all_members=page.is_manager)
    people = await page.find_person_names(grant.user for grant in grants)
    return page.render("apps/list.html", apps=listed, grants=grants, people=people, describe_scopes=describe_scopes)


def _read_app_form(page: PageContext) -> tuple[tuple[str, ...], frozenset[str]]:
    """Return the redirect URIs in the form, without duplicates, and the selected scopes."""
    lines = [line.strip() for line in page.form["redirect_uris"].splitlines() if line.strip()]
    scopes = SCOPES if page.form["scope_selection"] == "all" else frozenset(page.form.get_all("scopes"))
    return tuple(dict.fromkeys(lines)), scopes


@app_pages.register_get("/<app>")
async def show_app(page: PageContext) -> Response:
    """Show the form of an existing or new OAuth app."""
    app, form = await _find_app(page) if "app" in page.path_parameters else None, page.form
    for name, text in list(page.refused.fields.items() if page.refused else ()):
        # An error in one of the redirect URIs is shown at the field that contains them all.
        if page.refused and name.startswith("redirect_uris"):
            page.refused.fields.setdefault("redirect_uris", text)
    redirect_uris, selected_scopes = (
        _read_app_form(page) if page.is_post else (app.redirect_uris, app.scopes) if app else ((), DEFAULT_SCOPES)
    )
    return page.render(
        "apps/form.html",
        app=app,
        name=form["name"] if page.is_post else app.name if app else "",
        kind=form.get("kind", "web"),
        redirect_uris=form["redirect_uris"] if page.is_post else "\n".join(redirect_uris),
        selected_scopes=selected_scopes,
        has_all_scopes=selected_scopes == SCOPES and (page.is_post or app is not None),
        permissions=describe_scopes(SCOPES),
    )


app_pages.register_get("/new")(require_recent_confirmation(f"{APPS_PATH}/new")(show_app))


@app_pages.register_post("/new", error_view=show_app)
@require_recent_confirmation(f"{APPS_PATH}/new")
async def create_app(page: PageContext) -> Response:
    """Create an OAuth app, and show its secret, once."""
    kind = AppKind(page.form["kind"]) if page.form["kind"] in set(AppKind) else AppKind.WEB
    wanted = NewApp(page.form["name"], kind, *_read_app_form(page))
    app, secret = await page.run_use_case("apps.create", page.console.oauth.apps.create_app, page.principal, wanted)
    return page.render("apps/secret.html", status=201, app=app, secret=secret, rotated=False)


async def _find_app(page: PageContext) -> App:
    """Return the OAuth app in the page's path. Raises OperationRefused if it does not exist."""
    return await page.run_use_case("apps.read", page.console.oauth.apps.get_app, page.path_parameters["app"])


@app_pages.register_post("/<app>", error_view=show_app)
@require_recent_confirmation(APPS_PATH)
async def save_app(page: PageContext) -> Response:
    """Change the name, redirect URIs and scopes of an OAuth app."""
    app, change = await _find_app(page), AppChange(page.form["name"], *_read_app_form(page))
    await page.run_use_case("apps.update", page.console.oauth.apps.change_app, page.principal, app.id, change)
    return page.redirect(f"{APPS_PATH}/{app.id}", gettext("App saved"))


@app_pages.register_form("/<app>/<any(rotate, delete):action>", error_view=None)
@require_recent_confirmation(APPS_PATH)
async def delete_or_rotate_app(page: PageContext) -> Response:
    """Show the confirmation page; if it is submitted, delete the app, or replace its secret and show the new one, once."""
    app, action, service = await _find_app(page), page.path_parameters["action"], page.console.oauth.apps
    if not page.is_post:
        return page.render(f"apps/{action}.html", app=app)
    if action == "delete":
        await page.run_use_case("apps.delete", service.delete_app, page.principal, app.id)
        return page.redirect(APPS_PATH, gettext("App %(name)s deleted", name=app.name))
    changed, secret = await page.run_use_case("apps.rotate_secret", service.rotate_secret, page.principal, app.id)
    return page.render("apps/secret.html", app=changed, secret=secret, rotated=True)


@app_pages.register_post("/grants/<grant>/revoke")
async def revoke_consent(page: PageContext) -> Response:
    """Revoke a person's consent, so that the app loses access."""
    await page.run_use_case(
        "grants.revoke", page.console.oauth.consents.revoke_consent, page.principal, page.path_parameters["grant"]
    )
    return page.redirect(APPS_PATH, gettext("Access revoked. The app loses access within a second."))
