"""What the organisation is called, and which API version requests get that name none."""

from typing import Any, Final

from domain.kernel.errors import PermissionDenied
from domain.kernel.versions import SUPPORTED
from domain.orgs.model import MANAGERS
from domain.orgs.ports import OrgStore
from domain.people.usecases.organisations import OrgSettings
from entrypoints.console.acting import acting
from entrypoints.console.page import Answer, Entry, Page
from entrypoints.console.refusals import Refused
from entrypoints.console.visit import Visit

PLACE: Final = "/console/organisation/settings"
_SETTINGS: Final = OrgSettings(SUPPORTED.dates)


async def show(visit: Visit, refusal: Refused | None = None, given: Any = None) -> Answer:
    """The settings."""
    async with visit.reading() as tx:
        own = await tx[OrgStore].own()
    return visit.render(
        "organisation/settings.html",
        status=refusal.status if refusal else 200,
        own=own,
        given=given or {"name": own.name, "api_version": own.api_version or ""},
        versions=list(reversed(SUPPORTED.dates)),
        catalogues={"Live": own.catalogues[0], "Test": own.catalogues[1]},
        manages=visit.principal.role in MANAGERS,
        errors=refusal.fields if refusal else {},
        place=PLACE,
    )


async def save(visit: Visit) -> Answer:
    """Change them."""
    if visit.principal.role not in MANAGERS:
        raise PermissionDenied("Only owners and admins change the organisation's settings.")
    given = {"name": visit.form.get("name"), "api_version": visit.form.get("api_version")}
    try:
        async with acting(visit, "orgs.change", livemode=True) as tx:
            await _SETTINGS.change(tx, given["name"], given["api_version"] or None)
    except Refused as error:
        return await show(visit, error, given)
    return visit.redirect(PLACE, "Saved.")


PAGES: Final = (
    Page(PLACE, show, scope="org:read", menu=Entry("Organisation", "Settings")),
    Page(PLACE, save, methods=("POST",), scope="org:read", menu="Organisation"),
)
