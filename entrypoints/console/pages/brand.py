"""Pages of a vendor's profile and claims, and of the directory of vendors."""

from typing import Any

from domain.brand.model import EvidenceKind
from domain.orgs.model import VENDOR
from entrypoints.console.context import PageContext, Pages
from entrypoints.console.translation import N_, gettext
from entrypoints.http.exchange import Response

BRAND_PATH = "/console/brand"
WRITE_SCOPE = "brand:write"
_API = "/v1/brand"
_CLAIM = f"{_API}/claims/{{id}}"
_WITH_VALUE = (EvidenceKind.INVITATION, EvidenceKind.DOCUMENT)
_FILTERS = ("q", "domain", "status", "verified")

directory_pages = Pages("/console/vendors", section="Catalogue", scope="products:read")
pages = Pages(BRAND_PATH, section="Organisation", scope="brand:read")
pages.register_template("/claims/<id>", "brand/claim.html", operation_paths={"claim": _CLAIM})


@directory_pages.register_get(title=N_("Vendors"))
async def show_directory(page: PageContext) -> Response:
    """Show the profiles of all vendors that match the filters."""
    filters = page.query.select(*_FILTERS)
    results = await page.get_filtered_page("/v1/vendor-profiles", 20, filters)
    may_claim = page.principal.organisation.is_vendor and page.may(WRITE_SCOPE)
    return page.render("brand/directory.html", results=results, filters=filters, may_claim=may_claim)


@pages.register_get(title=N_("Brand"), organisation_kind=VENDOR)
async def show_brand(page: PageContext) -> Response:
    """Show the organisation's profile with a form to change it, and its claims."""
    profile = await page.get_visible(_API)
    claims = await page.api.get(f"{_API}/claims", limit=20, starting_after=page.cursor)
    values = {"name": page.principal.organisation.name, "website_domain": "", "brands": []} | (profile or {})
    if page.is_post:
        values |= _read_profile(page)
    fields = page.refused.fields if page.refused else {}
    brand_error = next((text for name, text in fields.items() if name.startswith("brands")), "")
    return page.render(
        "brand/brand.html", profile=profile, results=claims, values=values, brand_errors={"brands": brand_error}
    )


@pages.register_post("", scope=WRITE_SCOPE, error_view=show_brand)
async def save_brand(page: PageContext) -> Response:
    """Change or create the organisation's profile."""
    await page.api.send_change("PATCH", _API, _read_profile(page))
    return page.redirect(BRAND_PATH, gettext("Profile saved"))


def _read_profile(page: PageContext) -> dict[str, Any]:
    """Return the body of the API request that changes the profile as in the form."""
    brands = [line.strip() for line in page.form.get("brands").splitlines()]
    return {
        "name": page.form.get("name"),
        "website_domain": page.form.get("website_domain") or None,
        "brands": [brand for brand in brands if brand],
    }


@pages.register_get("/claims/new", scope=WRITE_SCOPE)
async def show_claim_form(page: PageContext) -> Response:
    """Show the form in which the evidence of a new claim is selected."""
    id = page.form.get("profile") or page.query["profile"]
    profile = await page.get_visible(f"/v1/vendor-profiles/{id}") if id.isalnum() or "_" in id else None
    return page.render(
        "brand/new_claim.html", profile=profile, kinds=list(EvidenceKind), selected=_read_kinds(page), form=page.form
    )


@pages.register_post("/claims/new", scope=WRITE_SCOPE, error_view=show_claim_form)
async def create_claim(page: PageContext) -> Response:
    """Create a claim, and show it with the challenges."""
    evidence: list[dict[str, str]] = [
        {"kind": kind} | ({"value": page.form.get(kind)} if kind in _WITH_VALUE and page.form.get(kind) else {})
        for kind in _read_kinds(page)
    ]
    claim = await page.api.post(f"{_API}/claims", {"profile": page.form.get("profile"), "evidence": evidence})
    return page.redirect(f"{BRAND_PATH}/claims/{claim['id']}", gettext("Claim created"))


def _read_kinds(page: PageContext) -> list[str]:
    """Return the selected kinds of evidence, and those whose value was entered."""
    selected = page.form.get_all("kinds")
    return [kind for kind in EvidenceKind if kind in selected or (kind in _WITH_VALUE and page.form.get(kind).strip())]


@pages.register_post("/claims/<id>/check", scope=WRITE_SCOPE)
async def check_claim(page: PageContext) -> Response:
    """Check the evidence of a claim again."""
    claim = await page.api.post(f"{_CLAIM}/check".format_map(page.path_parameters))
    return page.redirect(f"{BRAND_PATH}/claims/{claim['id']}", gettext("Evidence checked"), tone="info")


@pages.register_post("/claims/<id>/withdraw", scope=WRITE_SCOPE)
async def withdraw_claim(page: PageContext) -> Response:
    """Withdraw a claim."""
    claim = await page.api.post(f"{_CLAIM}/withdraw".format_map(page.path_parameters))
    return page.redirect(f"{BRAND_PATH}/claims/{claim['id']}", gettext("Claim withdrawn"), tone="info")
