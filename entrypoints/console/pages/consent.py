"""Pages for consent to OAuth apps: apps that redirect the browser, and apps on devices that show a code."""

from dataclasses import replace
from urllib.parse import urlsplit

from domain.kernel.errors import InvalidRequest
from domain.kernel.tenancy import Tenant
from domain.oauth import redirects
from domain.oauth.errors import OAuthError
from domain.oauth.model import App, DeviceRequest
from domain.oauth.requests import AuthorizationRequest, OAuthRequest, ReferencedRows
from domain.orgs.model import Organisation
from domain.orgs.ports import OrgStore
from domain.people.usecases.attempt_limits import find_counted_network
from entrypoints.console.context import OperationRefused, PageContext, Pages
from entrypoints.console.security import build_sign_in_url
from entrypoints.console.translation import gettext
from entrypoints.http.exchange import Response
from entrypoints.oauth_endpoints import parse_parameters
from entrypoints.operations.scopes import describe_scopes
from ports.clock import Clock
from ports.unit_of_work import UnitOfWork

AUTHORIZE_PATH = "/oauth/authorize"
DEVICE_PATH = "/oauth/device"
_MAX_REQUEST_LENGTH = 8000
_OPERATION = "oauth.consent"
"""Operation that the audit log records for a consent."""

pages = Pages(audience="person")


@pages.register_get(AUTHORIZE_PATH, audience="anybody")
async def show_authorization(page: PageContext) -> Response:
    """Show the permissions that an app requests. If the person has already granted them, redirect to the app instead."""
    consent, oauth_request = page.console.oauth.authorization, _parse_request(page.request.query)
    request, referenced_rows = await _validate_request(page, oauth_request)
    if isinstance(request, str):
        return _redirect_to_app(page, request)
    is_silent = "none" in request.prompt
    if page.signed_in is None:
        if is_silent:
            return _redirect_to_app(
                page, consent.build_error_location(oauth_request, referenced_rows, "login_required")
            )
        return page.redirect(build_sign_in_url(page.request.target))
    if not (orgs := await page.sessions.list_accessible_organisations(page.person.session)):
        return page.render("errors/no_organisation.html", status=403)
    own_org = next((org for org in orgs if org.id == page.person.session.org), orgs[0])
    if is_silent or len(orgs) == 1:
        target = await _reuse_consent(page, oauth_request, request, referenced_rows, own_org)
        if target is not None:
            return _redirect_to_app(page, target)
    if is_silent:
        return _redirect_to_app(
            page, consent.build_error_location(oauth_request, referenced_rows, "interaction_required")
        )
    return page.render(
        "oauth/consent.html",
        form_origins=[_build_form_target(request.redirect_uri)],
        app=request.app,
        host=redirects.describe_target(request.redirect_uri),
        owner_name=await _find_app_owner(page, request.app),
        orgs=orgs,
        selected_org=own_org.id,
        permissions=describe_scopes(request.scopes),
        request_query=page.request.query,
    )


@pages.register_post(AUTHORIZE_PATH, audience="anybody", max_bytes=64 * 1024)
async def decide_authorization(page: PageContext) -> Response:
    """Grant or deny an app access, as the person decided, and redirect to the app."""
    consent, query = page.console.oauth.authorization, page.form["request"]
    oauth_request = _parse_request(query)
    request, referenced_rows = await _validate_request(
        page, oauth_request
    )  # again, because a form can contain anything
    if isinstance(request, str):
        return _redirect_to_app(page, request)
    if page.signed_in is None:
        return page.redirect(build_sign_in_url(f"{AUTHORIZE_PATH}?{query}"))
    if page.form["decision"] != "allow":
        return _redirect_to_app(page, consent.build_error_location(oauth_request, referenced_rows))
    org, user = await _find_selected_organisation(page), page.person.user.id
    async with page.open_transaction_as(org.id, user, _OPERATION) as tx:
        target_url = await consent.record_consent(tx, oauth_request, referenced_rows, user)
    return _redirect_to_app(page, await consent.store_code(target_url))


async def _reuse_consent(
    page: PageContext,
    oauth_request: OAuthRequest,
    authorization_request: AuthorizationRequest,
    referenced_rows: ReferencedRows,
    org: Organisation,
) -> str | None:
    """Grant the app access without a decision if the person's earlier consent in the organisation covers the request.

    Args:
        page: The context.
        oauth_request: The request as the app sent it.
        authorization_request: The validated request.
        referenced_rows: The stored rows that the request refers to.
        org: The organisation.

    Returns:
        The URL of the app to which the browser is redirected, or None if the person must decide.
    """
    consent, user = page.console.oauth.authorization, page.person.user.id
    async with page.open_transaction_as(org.id, user, _OPERATION) as tx:
        if not await consent.can_skip_consent(tx, authorization_request, user):
            return None
        target = await consent.record_consent(tx, oauth_request, referenced_rows, user)
    return await consent.store_code(target)


@pages.register_get(DEVICE_PATH)
async def show_device(page: PageContext) -> Response:
    """Show the form for the code that a device shows; with a valid code, show the requested permissions."""
    user_code = page.query.get("user_code")
    found = await _find_device(page, user_code) if user_code else None
    if found is None:
        return page.render("oauth/device.html", is_wrong=bool(user_code))
    if not (orgs := await page.sessions.list_accessible_organisations(page.person.session)):
        return page.render("errors/no_organisation.html", status=403)
    device, app = found
    return page.render(
        "oauth/device_consent.html",
        app=app,
        owner_name=await _find_app_owner(page, app),
        user_code=user_code[:20].upper(),
        orgs=orgs,
        selected_org=page.person.session.org,
        permissions=describe_scopes(device.scopes),
    )


@pages.register_post(f"{DEVICE_PATH}/decision")
async def decide_device(page: PageContext) -> Response:
    """Grant or deny access for the app on a device, as the person decided."""
    approved, consent = page.form["decision"] == "allow", page.console.oauth.authorization
    if found := await _find_device(page, page.form["user_code"]):
        org, user, decision = (
            await _find_selected_organisation(page),
            page.person.user.id,
            replace(found[0], approved=False),
        )
        if approved:
            async with page.open_transaction_as(org.id, user, _OPERATION) as tx:
                decision = await consent.record_device_consent(tx, found, user)
        if await consent.save_decision(decision):
            return page.render("oauth/device_done.html", app=found[1], approved=approved, org=org)
    return page.render("oauth/device.html", is_wrong=True)


def _parse_request(query: str) -> OAuthRequest:
    """Parse an app's authorization request. Raises InvalidRequest or OperationRefused if it is malformed."""
    if len(query) > _MAX_REQUEST_LENGTH:
        raise InvalidRequest(gettext("The app's request is too long. Contact the app's developer."))
    try:
        return OAuthRequest(parse_parameters(query), method="GET")
    except OAuthError as error:
        raise _convert_oauth_error(error) from None


async def _validate_request(
    page: PageContext, oauth_request: OAuthRequest
) -> tuple[AuthorizationRequest | str, ReferencedRows]:
    """Validate an app's authorization request.

    Returns:
        The validated request, and the stored rows that the request refers to. If the request is invalid, the first item is
        the app's redirect URI with the error as parameters, and there are no rows.

    Raises:
        OperationRefused: The request is invalid and has no valid redirect URI, or there are too many requests.
    """
    try:
        return await page.console.oauth.authorization.validate(
            oauth_request, find_counted_network(page.client_info.address)
        )
    except OAuthError as error:
        if error.location is not None:
            return error.location, ReferencedRows(page.dependencies[Clock].now())
        raise _convert_oauth_error(error) from None


async def _find_device(page: PageContext, user_code: str) -> tuple[DeviceRequest, App] | None:
    """Return the open request of the device that shows the code, and its app; None if the code is wrong or has expired."""
    try:
        return await page.console.oauth.authorization.find_device_request(
            user_code, page.person.user.id, find_counted_network(page.client_info.address)
        )
    except OAuthError as error:
        raise _convert_oauth_error(error) from None


def _convert_oauth_error(error: OAuthError) -> OperationRefused:
    """Convert an OAuth error to OperationRefused, for an error that cannot be reported to the app by a redirect."""
    if error.status == 429:
        problem = {
            "status": 429,
            "title": gettext("Too many requests"),
            "detail": gettext("Wait a moment, then try again."),
        }
        return OperationRefused(problem, str(error.retry_after))
    detail = gettext(
        "The app sent an invalid request, so nothing was shared with it. Details for its developer: %(code)s. %(reason)s",
        code=error.code,
        reason=error.description,
    )
    return OperationRefused({"status": 400, "title": gettext("Invalid request from the app"), "detail": detail})


def _redirect_to_app(page: PageContext, target: str) -> Response:
    """Redirect to the app with the header `Referrer-Policy: no-referrer`, which protects the authorization code."""
    response = page.redirect(target)
    response.headers = [(name, value) for name, value in response.headers if name != b"referrer-policy"]
    response.headers.append((b"referrer-policy", b"no-referrer"))
    return response


async def _find_selected_organisation(page: PageContext) -> Organisation:
    """Return the organisation that the form selects. Raises InvalidRequest if the person cannot use the organisation."""
    org = next(
        (
            organisation
            for organisation in await page.sessions.list_accessible_organisations(page.person.session)
            if organisation.id == page.form["org"]
        ),
        None,
    )
    if org is None:
        raise InvalidRequest(gettext("Select one of your organisations."))
    await page.sessions.check_admission(page.person.session, org.id)
    return org


async def _find_app_owner(page: PageContext, app: App) -> str:
    """Return the name of the organisation that owns the app; empty if no organisation owns it."""
    if app.org is None:
        return ""
    async with page.dependencies[UnitOfWork].begin_reading(Tenant(app.org, True)) as tx:
        return (await tx[OrgStore].get_organisation()).name


def _build_form_target(uri: str) -> str:
    """Return the source expression of a redirect URI for the Content-Security-Policy: its origin, or its custom scheme."""
    parts = urlsplit(uri)
    is_web = parts.netloc and parts.scheme in ("http", "https")
    return f"{parts.scheme}://{parts.netloc}" if is_web else f"{parts.scheme}:"
