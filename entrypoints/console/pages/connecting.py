"""Connecting a source: by a file, an address, a shop's sign-in, mail, or records that are pushed; looked at before it is kept."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from domain.kernel.errors import InvalidRequest
from domain.uploads.usecases.drafts import BYTES, Drafts
from entrypoints.console.acting import acting
from entrypoints.console.asked import Values
from entrypoints.console.forms import LONGEST
from entrypoints.console.handing_in import handed_in, name_of, pieces_of, type_of
from entrypoints.console.page import Answer, Entry, Page
from entrypoints.console.previews import DraftFile, draft_of, preview_of_draft, preview_of_pull, token_of
from entrypoints.console.refusals import Refused, refused
from entrypoints.console.schema_forms import credentials_given, settings_fields, settings_given, ways_of
from entrypoints.console.source_fields import INTERVALS, LICENCES, WRITE, schedule_given, with_senders
from entrypoints.console.visit import Visit
from ports.objects import ObjectMissing

DECIMALS: Final = (("auto", "By the file itself"), ("dot", "1,234.56"), ("comma", "1.234,56"))


async def choose(visit: Visit) -> Answer:
    """The ways there are."""
    return visit.render("sources/new.html", mail=visit.dependencies.settings.mail_domain is not None)


def _title(name: str) -> str:
    return name.rpartition(".")[0].replace("_", " ").replace("-", " ").strip()[:100].capitalize() or name


async def file(visit: Visit) -> Answer:
    """A file's form; once it is here, what would be read of it."""
    token = visit.query.get("draft")
    if not token:
        return visit.render("sources/new_file.html", most=BYTES, refused=None)
    return await _file(visit, visit.query, token)


async def _file(visit: Visit, given: Values, token: str, refusal: Refused | None = None) -> Answer:
    draft, preview = draft_of(visit, token), None
    given = given if given.get("name") else Values([*given.pairs, ("name", _title(draft.name))])
    if refusal is None:
        try:
            preview = await preview_of_draft(visit, _file_body(given), draft)
        except Refused as error:
            refusal = error
    return visit.render(
        "sources/new_file_look.html",
        status=refusal.status if refusal else 200,
        draft=draft,
        token=token,
        given=given,
        preview=preview,
        refused=refusal,
        licences=LICENCES,
        decimals=DECIMALS,
    )


def _file_body(given: Values) -> dict[str, Any]:
    config = {
        "currency": given.get("currency").lower(),
        "decimal": given.get("decimal"),
        "warehouse": given.get("warehouse"),
    }
    body = {
        "name": given.get("name"),
        "kind": "file",
        "config": {name: value for name, value in config.items() if value and value != "auto"},
    }
    return body | {"licence_basis": given.get("licence_basis", "unknown")}


async def send_file(visit: Visit) -> Answer:
    """Keep the file for a while, to be looked into."""
    upload = visit.files.get("file")
    if upload is None or upload.size == 0:
        fault = InvalidRequest.of("file", "required", "Choose a file with something in it.")
        return visit.render("sources/new_file.html", status=422, most=BYTES, refused=refused(fault, visit.request_id))
    drafts, principal = Drafts(visit.dependencies.objects), visit.principal
    async with acting(visit, "uploads.announce") as tx:
        id = await drafts.reserve(tx, upload.size)
    await drafts.store(principal.tenant, id, pieces_of(upload))
    name = name_of(upload)
    return visit.redirect(
        f"/console/sources/new/file?draft={token_of(visit, DraftFile(id, name, type_of(name), upload.size))}"
    )


async def connect_file(visit: Visit) -> Answer:
    """Make the source, and let its first upload have the file."""
    token = visit.form["draft"]
    draft = draft_of(visit, token)
    try:
        source = await visit.api.post("/v1/sources", _file_body(visit.form))
    except Refused as refusal:
        return await _file(visit, visit.form, token, refusal)
    drafts, principal = Drafts(visit.dependencies.objects), visit.principal
    try:
        run = await handed_in(
            visit,
            source["id"],
            draft.name,
            draft.size,
            lambda upload: drafts.take_over(principal.tenant, draft.id, upload),
        )
    except (Refused, ObjectMissing) as refusal:
        said = refusal.detail if isinstance(refusal, Refused) else "it is kept for an hour and is gone by now."
        place = f"/console/sources/{source['id']}"
        return visit.redirect(place, f"The source is there, but its file is not: {said} Send it here.", tone="bad")
    async with acting(visit, "uploads.complete") as tx:
        await drafts.drop(tx, draft.id)
    return visit.redirect(f"/console/runs/{run}", f"{source['name']} is connected; its first run has begun.")


async def address(visit: Visit) -> Answer:
    """An address to be looked at."""
    return visit.render("sources/new_address.html", url=visit.query.get("url"), refused=None)


async def probe(visit: Visit) -> Answer:
    """Have it looked at."""
    url = visit.form.get("url")
    if url and "://" not in url:
        url = f"https://{url}"
    try:
        found = await visit.api.post("/v1/source-probes", {"url": url})
    except Refused as refusal:
        return visit.render("sources/new_address.html", status=refusal.status, url=url, refused=refusal)
    return visit.redirect(f"/console/probes/{found['id']}")


def _shops(visit: Visit) -> list[Any]:
    return [
        info
        for info in visit.dependencies.connectors.infos()
        if info.credentials_schema is not None and "api" in info.kinds
    ]


async def shop(visit: Visit) -> Answer:
    """Which shop it is; then the form that its connector asks for."""
    return await _shop(visit, visit.query.get("connector"), visit.query)


async def _shop(
    visit: Visit,
    name: str,
    given: Values,
    refusal: Refused | None = None,
    preview: Mapping[str, Any] | None = None,
) -> Answer:
    shops = _shops(visit)
    info = next((one for one in shops if one.name == name), None)
    if info is None:
        return visit.render("sources/new_shop.html", shops=shops)
    fields = settings_fields(info.config_schema, {}, ("url", "currency", "auth", "weight_unit", "dimension_unit"))
    return visit.render(
        "sources/new_shop_form.html",
        status=refusal.status if refusal else 200,
        info=info,
        fields=[_filled(field, given) for field in fields],
        ways=[
            replace(way, fields=tuple(_filled(field, given) for field in way.fields))
            for way in ways_of(info.credentials_schema)
        ],
        given=given,
        refused=refusal,
        preview=preview,
        intervals=INTERVALS,
        licences=LICENCES,
    )


def _filled(field: Any, given: Values) -> Any:
    """The field with what was typed; secrets are typed anew."""
    return field if field.type == "password" else replace(field, value=given[field.name])


async def connect_shop(visit: Visit) -> Answer:
    """Try the sign-in out, or make the source with it."""
    form = visit.form
    info = next((one for one in _shops(visit) if one.name == form.get("connector")), None)
    if info is None:
        return visit.redirect("/console/sources/new/shop")
    body = {
        "name": form.get("name"),
        "kind": "api",
        "connector": info.name,
        "config": settings_given(info.config_schema, form, {}),
        "schedule": schedule_given(form),
        "licence_basis": form.get("licence_basis", "unknown"),
    }
    credentials = credentials_given(ways_of(info.credentials_schema), form)
    try:
        preview = await preview_of_pull(visit, body, credentials)
        if form.get("do") == "look" or not (preview["ok"] or form.get("anyway")):
            return await _shop(visit, info.name, form, None, preview)
        source = await visit.api.post("/v1/sources", body)
        await visit.api.put(f"/v1/sources/{source['id']}/credentials", {"credentials": credentials})
    except Refused as refusal:
        return await _shop(visit, info.name, form, refusal)
    return visit.redirect(f"/console/sources/{source['id']}", f"{source['name']} is connected; it is read at once.")


async def simple(visit: Visit) -> Answer:
    """Mail or pushed records: a name, and who may send."""
    return visit.render(f"sources/new_{visit.ids['kind']}.html", given=Values([]), refused=None, licences=LICENCES)


async def connect_simple(visit: Visit) -> Answer:
    """Make the source."""
    kind, form = visit.ids["kind"], visit.form
    config: dict[str, Any] = {name: value for name in ("currency",) if (value := form.get(name).lower())}
    if kind == "mail":
        config = with_senders(config, form["senders"])
        config.setdefault("inbound", {"senders": []})
    body = {
        "name": form.get("name"),
        "kind": kind,
        "config": config,
        "licence_basis": form.get("licence_basis", "unknown"),
    }
    try:
        source = await visit.api.post("/v1/sources", body)
    except Refused as refusal:
        return visit.render(
            f"sources/new_{kind}.html", status=refusal.status, given=form, refused=refusal, licences=LICENCES
        )
    return visit.redirect(f"/console/sources/{source['id']}", f"{source['name']} is connected.")


def _page(rule: str, view: Any, **more: Any) -> Page:
    return Page(f"/console/sources/new{rule}", view, scope=WRITE, **{"menu": "Sources"} | more)


PAGES: Final = (
    _page("", choose, menu=Entry("Sources", "Connect a source")),
    _page("/file", file),
    _page("/file", send_file, methods=("POST",), most=BYTES + LONGEST),
    _page("/file/connect", connect_file, methods=("POST",)),
    _page("/address", address),
    _page("/address", probe, methods=("POST",)),
    _page("/shop", shop),
    _page("/shop", connect_shop, methods=("POST",)),
    _page("/<any(mail, push):kind>", simple),
    _page("/<any(mail, push):kind>", connect_simple, methods=("POST",)),
)
