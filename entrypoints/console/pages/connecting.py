"""Connection of a source with a preview: file, web address, shop, email or push."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from adapters.wire import probes as probes_wire
from adapters.wire import sources as sources_wire
from domain.ingestion.mapping.learned import bounded
from domain.ingestion.ports import Connectors, Job
from domain.ingestion.reading import ReadTable
from domain.kernel.errors import DomainError, InvalidRequest, NotFound
from domain.kernel.plain import plain
from domain.kernel.tenancy import AuditContext
from domain.mappings.model import KNOWN
from domain.mappings.ports import MappingStore
from domain.probes.model import Probe
from domain.runs.model import SNAPSHOT_LIMIT
from domain.runs.usecases.inspection import Preview, Previewing
from domain.sources.model import Source
from domain.storage.model import upload_key
from domain.uploads.usecases.drafts import BYTES, Drafts
from entrypoints.areas.sources import service_of
from entrypoints.console.context import PageContext, Pages, Refused
from entrypoints.console.pages.sources import READ, WRITE
from entrypoints.console.request import LONGEST, FormData, Upload
from entrypoints.console.source_forms import (
    credentials_given,
    currency_given,
    filled,
    schedule_given,
    settings_fields,
    settings_given,
    sign_in_methods,
    source_given,
    with_senders,
)
from entrypoints.console.streams import followed
from entrypoints.console.translation import N_, gettext
from entrypoints.http.exchange import Response
from entrypoints.settings import Settings
from ports.objects import ObjectMissing, Objects
from ports.unit_of_work import UnitOfWork

LARGEST = min(SNAPSHOT_LIMIT, 256 << 20)
"""Maximum size of an uploaded file in bytes; larger files are uploaded by the API, directly to the object store."""
_SLICE = 256 << 10
_COLUMNS = 200
_TYPES = {
    "csv": "text/csv",
    "tsv": "text/tab-separated-values",
    "json": "application/json",
    "xml": "application/xml",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}
_NO_FILE = N_("The file is missing or empty. Select another file.")

pages = Pages("/console", section=N_("Sources"), scope=WRITE)


show_address = pages.show("/sources/new/address", "sources/new_address.html")


class DraftFile(NamedTuple):
    """A file in the object store that is not yet connected."""

    id: str
    name: str
    size: int


@pages.get("/sources/new", title=N_("Connect a source"))
async def choose(page: PageContext) -> Response:
    """Show the kinds of sources."""
    return page.render("sources/new.html", mail=page.dependencies[Settings].mail_domain is not None)


def _form_values(page: PageContext) -> FormData:
    return page.form if page.sent else page.query


@pages.get("/sources/new/file")
async def show_file(page: PageContext) -> Response:
    """Show the form for a file; after the upload, a preview of the file."""
    given, preview = _form_values(page), None
    if not (token := given.get("draft")):
        return page.render("sources/new_file.html", most=BYTES)
    draft = _draft_of(page, token)
    if not given.get("name"):
        stem = draft.name.rpartition(".")[0].replace("_", " ").replace("-", " ").strip()[:100]
        given = FormData([*given.pairs, ("name", stem.capitalize() or draft.name)])
    if page.refused is None:
        try:
            preview = await _read_draft(page, _file_source(given), draft)
        except Refused as error:
            page.refused = error
    return page.render("sources/new_file_look.html", draft=draft, token=token, given=given, preview=preview)


@pages.post("/sources/new/file", most=BYTES + LONGEST)
async def send_file(page: PageContext) -> Response:
    """Store the file temporarily for a preview."""
    upload = page.files.get("file")
    if upload is None or upload.size == 0:
        page.refused = page.refusal(InvalidRequest.of("file", "required", gettext(_NO_FILE)))
        return page.render("sources/new_file.html", status=422, most=BYTES)
    drafts = page.dependencies[Drafts]
    async with page.transaction("uploads.announce") as tx:
        id = await drafts.reserve(tx, upload.size)
    await drafts.store(page.principal.tenant, id, _pieces_of(upload))
    token = page.console.signatures.write(_draft_purpose(page), [id, _name_of(upload), upload.size])
    return page.redirect(f"/console/sources/new/file?draft={token}")


def _draft_purpose(page: PageContext) -> str:
    """Return the purpose of the signature: organisation and mode, so that drafts of others are refused."""
    return f"draft {page.principal.tenant.org} {page.principal.tenant.mode}"


def _draft_of(page: PageContext, token: str) -> DraftFile:
    """Return the draft of a token. Raises NotFound if the signature is invalid or another organisation's."""
    found = page.console.signatures.read(_draft_purpose(page), token)
    if found is None:
        raise NotFound(gettext("The file is no longer available. Upload the file again."))
    return DraftFile(*found)


def _file_source(given: FormData) -> dict[str, Any]:
    config = currency_given(given) | {
        name: text for name, text in given.given("decimal", "warehouse").items() if text != "auto"
    }
    return source_given(given, "file", config)


@pages.post("/sources/new/file/connect", again=show_file)
async def connect_file(page: PageContext) -> Response:
    """Create the source and import the file as its first upload."""
    drafts, tenant = page.dependencies[Drafts], page.principal.tenant
    draft = _draft_of(page, page.form["draft"])
    source = await page.api.post("/v1/sources", _file_source(page.form))

    async def take_over(upload: str) -> None:
        await drafts.take_over(tenant, draft.id, upload)

    try:
        run = await _upload(page, source["id"], draft.name, draft.size, take_over)
    except (Refused, ObjectMissing) as error:
        reason = error.detail if isinstance(error, Refused) else gettext("The file expired after one hour.")
        notice = gettext(
            "Source connected, but its file was not imported. %(reason)s Upload the file here.", reason=reason
        )
        return page.redirect(f"/console/sources/{source['id']}", notice, tone="bad")
    async with page.transaction("uploads.complete") as tx:
        await drafts.drop(tx, draft.id)
    return page.redirect(
        f"/console/runs/{run}", gettext("%(name)s is connected and its first run has started.", name=source["name"])
    )


@pages.post("/sources/<id>/file", most=LARGEST + LONGEST)
async def send_next_file(page: PageContext) -> Response:
    """Import another file of a source."""
    place, upload = f"/console/sources/{page.ids['id']}", page.files.get("file")
    if upload is None or upload.size == 0:
        return page.redirect(place, gettext(_NO_FILE), tone="bad")
    sent = upload

    async def store(id: str) -> None:
        key = upload_key(page.principal.tenant, id)
        await page.dependencies[Objects].put_stream(key, _pieces_of(sent))

    body = {"accept_shrink": True} if page.form.get("accept_shrink") else {}
    try:
        run = await _upload(page, page.ids["id"], _name_of(upload), upload.size, store, body)
    except Refused as refused:
        return page.redirect(place, refused.detail, tone="bad")
    return page.redirect(f"/console/runs/{run}")


async def _upload(
    page: PageContext,
    source: str,
    name: str,
    size: int,
    store: Callable[[str], Awaitable[None]],
    body: Mapping[str, Any] = {},
) -> str:
    """Create, store and complete an upload; `store` writes its bytes. Return the ID of the run. Raises Refused."""
    kind = _TYPES.get(name.rpartition(".")[2].lower(), "application/octet-stream")
    announced = {"filename": name, "content_type": kind, "bytes": size}
    upload = await page.api.post(f"/v1/sources/{source}/uploads", announced)
    path = f"/v1/uploads/{upload['id']}"
    if (await page.api.get(path))["status"] == "pending":
        await store(upload["id"])
    run: str = (await page.api.post(f"{path}/complete", body))["run"]
    return run


def _name_of(upload: Upload) -> str:
    """Return the file name without folders, as uploads accept it."""
    plain_name = upload.name.replace("\\", "/").rpartition("/")[2]
    return "".join(char for char in plain_name if char.isprintable()).strip().lstrip(".")[-200:] or "file"


async def _pieces_of(upload: Upload) -> AsyncIterator[bytes]:
    while piece := await asyncio.to_thread(upload.file.read, _SLICE):
        yield piece


@pages.post("/sources/new/address", again=show_address)
async def probe_address(page: PageContext) -> Response:
    """Start a check of the website."""
    url = page.form.get("url")
    probe = await page.api.post("/v1/source-probes", {"url": f"https://{url}" if url and "://" not in url else url})
    return page.redirect(f"/console/probes/{probe['id']}")


@pages.get("/probes/<id>", scope=READ)
async def show_probe(page: PageContext, preview: Any = None) -> Response:
    """Show the progress of a website check; at its end, the findings and the form of the proposed source."""
    probe, given = await page.api.get(f"/v1/source-probes/{page.ids['id']}"), _form_values(page)
    proposal = probe.get("proposal")
    if not given.get("name") and proposal:
        interval = str(proposal.get("schedule", {}).get("interval_minutes", ""))
        proposed = {"name": proposal["name"], "currency": proposal["config"].get("currency", "")}
        given = FormData([*proposed.items(), ("interval_minutes", interval), *given.pairs])
    return page.render("sources/probe.html", proposal=proposal, given=given, preview=preview, **_state_of(probe))


def _state_of(probe: Mapping[str, Any]) -> dict[str, Any]:
    return {"probe": probe, "open": probe["status"] in ("queued", "running")}


@pages.get("/probes/<id>/progress", scope=READ)
async def follow_probe(page: PageContext) -> Response:
    """Stream the progress of a website check."""
    id = page.ids["id"]
    await page.api.get(f"/v1/source-probes/{id}")  # raises Refused without permission
    return followed(page, "sources/probe.html", lambda tx: tx.store(Probe).get(id), probes_wire.PROBE, _state_of)


@pages.post("/probes/<id>", again=show_probe)
async def connect_probe(page: PageContext) -> Response:
    """Preview or create the proposed source."""
    form, probe = page.form, await page.api.get(f"/v1/source-probes/{page.ids['id']}")
    if "proposal" not in probe:
        return page.redirect(
            f"/console/probes/{probe['id']}", gettext("The website check found nothing to connect."), tone="bad"
        )
    proposal = probe["proposal"]
    config = proposal["config"] | currency_given(form)
    body = proposal | source_given(form, proposal["kind"], config, schedule=schedule_given(form))
    if form.get("do") == "look":
        return await show_probe(page, preview=await _read_pull(page, body))
    source = await page.api.post("/v1/sources", body)
    return page.redirect(
        f"/console/sources/{source['id']}",
        gettext("%(name)s is connected and its first run has started.", name=source["name"]),
    )


def _shops(page: PageContext) -> dict[str, Any]:
    infos = page.dependencies[Connectors].infos()
    return {info.name: info for info in infos if info.credentials_schema is not None and "api" in info.kinds}


@pages.get("/sources/new/shop")
async def show_shop(page: PageContext, preview: Any = None) -> Response:
    """Show the list of shop platforms, or the form of the selected one."""
    given, shops = _form_values(page), _shops(page)
    if (info := shops.get(given.get("connector"))) is None:
        return page.render("sources/new_shop.html", shops=shops.values())
    settings = settings_fields(info.config_schema, {}, ("url", "currency", "auth", "weight_unit", "dimension_unit"))
    methods = sign_in_methods(info.credentials_schema)
    return page.render(
        "sources/new_shop_form.html",
        info=info,
        fields=filled(settings, given),
        methods=[method._replace(fields=filled(method.fields, given)) for method in methods],
        given=given,
        preview=preview,
    )


@pages.post("/sources/new/shop", again=show_shop)
async def connect_shop(page: PageContext) -> Response:
    """Preview the shop with the credentials, or create the source."""
    form = page.form
    if (info := _shops(page).get(form.get("connector"))) is None:
        return page.redirect("/console/sources/new/shop")
    config = settings_given(info.config_schema, form, {})
    body = source_given(form, "api", config, connector=info.name, schedule=schedule_given(form))
    credentials = credentials_given(sign_in_methods(info.credentials_schema), form)
    preview = await _read_pull(page, body, credentials)
    if form.get("do") == "look" or not (preview["ok"] or form.get("anyway")):
        return await show_shop(page, preview=preview)
    source = await page.api.post("/v1/sources", body)
    await page.api.change("PUT", f"/v1/sources/{source['id']}/credentials", {"credentials": credentials})
    return page.redirect(
        f"/console/sources/{source['id']}",
        gettext("%(name)s is connected and its first run has started.", name=source["name"]),
    )


@pages.form("/sources/new/<any(mail, push):kind>")
async def connect_simple(page: PageContext) -> Response:
    """Connect email or push: a name and the allowed senders."""
    kind, form = page.ids["kind"], page.form
    if page.submitted:
        config = currency_given(form)
        if kind == "mail":
            config = {"inbound": {"senders": []}} | with_senders(config, form)
        source = await page.api.post("/v1/sources", source_given(form, kind, config))
        return page.redirect(f"/console/sources/{source['id']}", gettext("%(name)s is connected.", name=source["name"]))
    return page.render(f"sources/new_{kind}.html", given=form)


async def _read_draft(page: PageContext, body: Mapping[str, Any], draft: DraftFile) -> dict[str, Any]:
    """Return the preview of the file. Raises Refused, and NotFound if the file expired."""
    source, known, previewing = await _unsaved(page, body, None)
    objects, key = page.dependencies[Objects], upload_key(page.principal.tenant, draft.id)
    try:
        await objects.size(key)
    except ObjectMissing:
        raise NotFound(gettext("The file expired after one hour. Upload the file again.")) from None
    return _preview_values(await previewing.file(source, objects.read(key), known))


async def _read_pull(
    page: PageContext, body: Mapping[str, Any], credentials: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the preview of the data that the connector fetches. Raises Refused."""
    source, known, previewing = await _unsaved(page, body, credentials)
    job = Job(source.config, credentials, "catalogue", caller=page.principal.tenant.org)
    return _preview_values(await previewing.fetched(source, job, known))


async def _unsaved(
    page: PageContext, body: Mapping[str, Any], credentials: Mapping[str, Any] | None
) -> tuple[Source, Any, Previewing]:
    """Return the unsaved source, its known mappings and the previewer; a dry run applies refusals and rate limits."""
    await page.api.post("/v1/sources", body, dry_run="true")
    parts, principal = page.dependencies, page.principal
    service, context = parts.call(service_of), AuditContext(principal.actor, "sources.create", page.request_id)
    try:
        new: dict[str, Any] = sources_wire.SOURCE.create().decode(dict(body))
        async with parts[UnitOfWork].scratch(principal.tenant, context) as tx:
            source = await service.create(tx, new)
            if credentials is not None:
                source = await service.put_credentials(tx, source.id, credentials)
            known = bounded(await tx[MappingStore].confirmed(source.id, KNOWN))
    except DomainError as error:
        raise page.refusal(error) from error
    return source, known, parts[Previewing]


def _preview_values(preview: Preview) -> dict[str, Any]:
    """Return the preview for templates: tables of columns with samples, and products."""
    tables = [_table(table) for table in preview.tables[:5]]
    return {**plain(replace(preview, tables=())), "ok": preview.ok, "tables": tables}


def _table(table: ReadTable) -> dict[str, Any]:
    read = {column.position: column for column in table.mapping.columns}
    reasons = {column.position: column.reason for column in table.mapping.unmapped}
    columns = []
    for position, header in enumerate(table.mapping.headers[:_COLUMNS]):
        cells = dict.fromkeys(row[position] for row in table.samples if position < len(row) and row[position])
        columns.append((header, list(cells)[:3], read.get(position), reasons.get(position, "unknown")))
    return {"sheet": table.sheet, "columns": columns}
