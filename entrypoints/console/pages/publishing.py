"""Pages of a vendor's catalogue: publication, variants with what they lack, and licences of other organisations."""

from collections.abc import Iterable, Mapping
from typing import Any

from adapters.api_json import publishing as wire
from domain.catalogue.licences import EVERYONE, NETWORK_GROUPS, UNSHAREABLE_BASES
from domain.catalogue.model import Visibility
from domain.kernel.errors import PermissionDenied, Unprocessable
from domain.orgs.model import MANAGERS, VENDOR
from domain.orgs.ports import OrgRegistry
from domain.orgs.usecases.service import require_role
from domain.publishing.completeness import REQUIREMENTS
from domain.publishing.model import OPEN
from domain.publishing.ports import PublicationStore
from domain.publishing.usecases.licences import LicenceService
from entrypoints.console.context import OperationRefused, PageContext, Pages, require_recent_confirmation
from entrypoints.console.pages.agreements import AGREEMENT_PATH
from entrypoints.console.pages.brand import BRAND_PATH
from entrypoints.console.rendering import ListPortion
from entrypoints.console.streams import stream_progress
from entrypoints.console.translation import N_, gettext
from entrypoints.http.exchange import Response
from ports.limits import RateLimitBucket

PUBLISHING_PATH = "/console/publishing"
LICENCES_PATH = f"{PUBLISHING_PATH}/licences"
_API = "/v1/catalogue"
_PAGE_SIZE = 20
_MANAGERS_ONLY = N_("Only owners and admins can grant and revoke licences.")

pages = Pages(PUBLISHING_PATH, section="Catalogue", scope="catalogue:read", organisation_kind=VENDOR)


@pages.register_get(title=N_("Publishing"))
async def show_catalogue(page: PageContext) -> Response:
    """Show what is published, what publishing requires, the last run, and the completeness."""
    catalogue = await page.api.get(_API)
    return page.render(
        "publishing/show.html",
        catalogue=catalogue,
        requirements=_list_requirements(catalogue),
        unlisted=catalogue["products"] - catalogue["listed"] - catalogue["hidden"],
        **_build_live_values(catalogue.get("last_run")),
    )


def _list_requirements(catalogue: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return what is missing before the catalogue can be published, as tuples: title, text and path of a page."""
    missing = []
    if not catalogue["verified"]:
        text = gettext("Publishing requires a verified claim to your brand.")
        missing.append((gettext("Verify your brand"), text, BRAND_PATH))
    if catalogue["agreement"] == "required":
        text = gettext("An owner or admin must accept the data agreement.")
        missing.append((gettext("Accept the agreement"), text, AGREEMENT_PATH))
    elif catalogue["agreement"] == "unpublished":
        text = gettext("The operator has not published a data agreement yet.")
        missing.append((gettext("Data agreement not available"), text, AGREEMENT_PATH))
    return missing


def _build_live_values(run: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the template variables of the part of the page that is updated live."""
    return {"run": run, "is_open": run is not None and run["status"] in OPEN}


@pages.register_get("/runs/<id>/progress")
async def follow_run(page: PageContext) -> Response:
    """Stream the progress of a publication run."""
    id = page.path_parameters["id"]
    await page.api.get(f"{_API}/publication-runs/{id}")  # raises OperationRefused without permission
    return stream_progress(
        page, "publishing/show.html", lambda tx: tx[PublicationStore].get(id), wire.PUBLICATION_RUN, _build_live_values
    )


@pages.register_form("/publish", scope="catalogue:write")
async def publish(page: PageContext) -> Response:
    """Show what would become visible, from a dry run; if the form is submitted, publish all products."""
    if page.must_process:
        await page.api.post(f"{_API}/publish", {})
        return page.redirect(PUBLISHING_PATH, gettext("Publication started. You can leave this page."), tone="info")
    preview = None
    if page.refused is None:
        try:
            preview = (await page.api.post(f"{_API}/publish", {}, dry_run="explain"))["publication"]
        except OperationRefused as refused:
            page.refused = refused
    licences = ListPortion.from_items(preview["licences"] if preview else [], 0, _PAGE_SIZE)
    sources = (await page.api.get("/v1/sources", limit=100))["data"] if page.may("sources:read") else ()
    return page.render(
        "publishing/publish.html",
        catalogue=await page.api.get(_API),
        preview=preview,
        licences=licences,
        names=await _find_names(page, (licence["holder"] for licence in licences.items)),
        unshareable_sources=[source for source in sources if source["licence_basis"] in UNSHAREABLE_BASES],
    )


@pages.register_form("/withdraw", scope="catalogue:write")
async def withdraw(page: PageContext) -> Response:
    """Show the confirmation page; if it is submitted, withdraw all products."""
    if page.must_process:
        await page.api.post(f"{_API}/withdraw", {})
        return page.redirect(PUBLISHING_PATH, gettext("Withdrawal started. You can leave this page."), tone="info")
    return page.render("publishing/withdraw.html", catalogue=await page.api.get(_API))


@pages.register_form("/variants")
async def list_variants(page: PageContext) -> Response:
    """Show the variants with the fields that they lack; if a form is submitted, list or hide a product."""
    if page.must_process:
        visibility = page.form["visibility"]
        body = {"products": [page.form["product"]], "visibility": visibility}
        await page.api.post(f"{_API}/visibility", body)
        notice = gettext("Product listed") if visibility == Visibility.LISTED else gettext("Product hidden")
        return page.redirect(page.request.target, notice)
    refused, filters = page.refused, page.query.select("visibility", "q", "missing")
    results = await page.get_filtered_page(f"{_API}/variants", _PAGE_SIZE, filters)
    page.refused = refused or page.refused
    return page.render(
        "publishing/variants.html",
        results=results,
        filters=filters,
        fields=REQUIREMENTS,
        visibilities=Visibility,
        is_published=(await page.api.get(_API))["published"],
    )


@pages.register_get("/licences")
async def list_licences(page: PageContext) -> Response:
    """Show the organisations with a licence; owners and admins also see the form that grants one."""
    async with page.open_read_transaction() as tx:
        found = await LicenceService().list_licences(tx)
    licences = ListPortion.from_items(found, page.query.get_number("from"), _PAGE_SIZE)
    return page.render(
        "publishing/licences.html",
        licences=licences,
        names=await _find_names(page, (licence.holder for licence in licences.items)),
        everyone=EVERYONE,
        network_groups=NETWORK_GROUPS,
        form=page.form,
    )


async def _find_names(page: PageContext, holders: Iterable[str]) -> Mapping[str, str]:
    """Return the names of holders of licences by ID."""
    names = await page.dependencies[OrgRegistry].find_names(list(holders))
    return {**names, EVERYONE: gettext("Every organisation")}


@pages.register_post("/licences", error_view=list_licences)
@require_recent_confirmation(LICENCES_PATH)
async def grant_licence(page: PageContext) -> Response:
    """Grant an organisation a licence, instead of the one that it has."""
    form, org = page.form, page.principal.tenant.org
    if not page.is_manager:
        raise PermissionDenied(gettext(_MANAGERS_ONLY))
    if not (groups := form.get_all("groups")):
        raise Unprocessable.for_field("groups", "required", gettext("Select Stock or Trade."))
    await page.take_token(RateLimitBucket(f"licence-holders:{org}", 10, 1 / 6))  # names of customers are not listed
    holder = await page.dependencies[OrgRegistry].find(form["holder"].strip())
    if holder is None:
        text = gettext("There is no organisation with exactly this ID or name. Ask the organisation for its ID.")
        raise Unprocessable.for_field("holder", "invalid_value", text)
    async with page.open_transaction("licences.grant") as tx:
        await require_role(tx, MANAGERS, gettext(_MANAGERS_ONLY))
        await LicenceService().grant(tx, holder.id, groups)
    return page.redirect(LICENCES_PATH, gettext("Licence of %(name)s granted", name=holder.name))


@pages.register_post("/licences/revoke", error_view=list_licences)
async def revoke_licence(page: PageContext) -> Response:
    """Revoke the licence of an organisation. The licence of every organisation ends by withdrawing the catalogue."""
    holder = page.form["holder"]
    async with page.open_transaction("licences.revoke") as tx:
        await require_role(tx, MANAGERS, gettext(_MANAGERS_ONLY))
        if holder == EVERYONE:
            raise Unprocessable(gettext("Withdraw the catalogue instead."))
        await LicenceService().revoke(tx, holder)
    return page.redirect(LICENCES_PATH, gettext("Licence revoked"))
