"""Pages of a vendor's data agreement."""

import asyncio

from markupsafe import Markup

from domain.agreements.model import AgreementKind
from domain.agreements.ports import AgreementStore
from domain.kernel.resource import require_found
from domain.orgs.model import VENDOR
from entrypoints.console.context import PageContext, Pages
from entrypoints.console.request import parse_whole_number
from entrypoints.console.translation import N_, gettext
from entrypoints.http.exchange import Response
from entrypoints.site.schemas import render_document

AGREEMENT_PATH = "/console/organisation/agreement"
_API = f"/v1/agreements/{AgreementKind.VENDOR_DATA}"
_PAGE_SIZE = 20

pages = Pages(AGREEMENT_PATH, section="Organisation", scope="agreements:read", organisation_kind=VENDOR)


async def _render_text(text: str) -> Markup:
    """Return the HTML of an agreement's text."""
    return Markup(await asyncio.to_thread(render_document, text))  # noqa: S704  without HTML of the text


@pages.register_form(title=N_("Data agreement"))
async def show_agreement(page: PageContext) -> Response:
    """Show the newest version with the form to accept it, and the acceptances; if the form is submitted, accept it."""
    if page.must_process:
        body = {
            "version": page.form.get_number("version") or 0,
            "sha256": page.form.get("sha256"),
            "signer_name": page.form.get("signer_name"),
            "signer_title": page.form.get("signer_title"),
            "authority_confirmed": page.form["authority_confirmed"] == "true",
        }
        await page.api.post(f"{_API}/acceptances", body)
        return page.redirect(AGREEMENT_PATH, gettext("Agreement accepted"))
    agreement = await page.api.get(_API)
    return page.render(
        "agreement/show.html",
        agreement=agreement,
        text=await _render_text(agreement.get("text", "")),
        results=await page.api.get("/v1/agreement-acceptances", limit=_PAGE_SIZE, starting_after=page.cursor),
    )


@pages.register_get("/versions/<version>")
async def show_version(page: PageContext) -> Response:
    """Show the text of a version, for example one that was accepted earlier."""
    number = parse_whole_number(page.path_parameters["version"])
    async with page.open_read_transaction() as tx:
        found = await tx[AgreementStore].find_version(AgreementKind.VENDOR_DATA, number or 0)
    version = require_found(found)
    return page.render("agreement/version.html", version=version, text=await _render_text(version.text))
