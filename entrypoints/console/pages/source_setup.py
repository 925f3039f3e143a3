"""Pages for connecting a source, with a preview: file, website, shop, email or push."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, NamedTuple

from adapters.api_json import probes as probes_wire
from adapters.api_json import sources as sources_wire
from domain.catalogue.model import Stream
from domain.ingestion.mapping.learned import limit_mappings
from domain.ingestion.ports import Connectors, ConnectorTask
from domain.ingestion.snapshot_results import MappedTable
from domain.kernel.errors import DomainError, InvalidRequest, NotFound, Unprocessable
from domain.kernel.tenancy import AuditContext
from domain.mappings.model import MAX_CONFIRMED_MAPPINGS
from domain.mappings.ports import MappingStore
from domain.mappings.proposal_log import propose_mapping
from domain.probes.model import Probe
from domain.runs.model import MAX_SNAPSHOT_BYTES
from domain.runs.sheets import create_feed_settings
from domain.runs.usecases.snapshot_views import FeedPreview, FeedPreviewer
from domain.sources.model import NETWORK_CONNECTOR, Source
from domain.storage.model import build_upload_key
from domain.uploads.usecases.drafts import MAX_DRAFT_BYTES, DraftFiles
from entrypoints.areas.sources import create_source_service
from entrypoints.console.context import OperationRefused, PageContext, Pages
from entrypoints.console.mapping_editor import (
    MAX_EDITOR_COLUMNS,
    NO_PREVIEW,
    EditorTable,
    build_editor_values,
    build_preview_values,
    build_table,
    read_defaults,
)
from entrypoints.console.pages.sources import READ_SCOPE, WRITE_SCOPE
from entrypoints.console.request import MAX_FORM_BYTES, FormData, FormFile
from entrypoints.console.source_forms import (
    build_settings_fields,
    build_sign_in_methods,
    build_source_request,
    fill_fields,
    read_credentials_form,
    read_currency_form,
    read_schedule_form,
    read_settings_form,
    set_allowed_senders,
)
from entrypoints.console.streams import stream_progress
from entrypoints.console.translation import N_, gettext
from entrypoints.http.exchange import Response
from entrypoints.settings import Settings
from ports.clock import Clock
from ports.objects import ObjectMissing, ObjectStore
from ports.unit_of_work import UnitOfWork

MAX_FILE_BYTES = min(MAX_SNAPSHOT_BYTES, 256 << 20)
"""Maximum size of an uploaded file in bytes; larger files are uploaded by the API, directly to the object store."""
_CHUNK_BYTES = 256 << 10
_MAX_COLUMNS = 200
"""Maximum number of columns of a table in a preview."""
_MEDIA_TYPES = {
    "csv": "text/csv",
    "tsv": "text/tab-separated-values",
    "json": "application/json",
    "xml": "application/xml",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}
MAX_PREVIEW_TABLES = 5
"""Maximum number of tables of a file whose columns a preview shows."""
_NO_FILE = N_("The file is missing or empty. Select another file.")

pages = Pages("/console", section=N_("Sources"), scope=WRITE_SCOPE)


show_address = pages.register_template("/sources/new/address", "sources/new_address.html")


class DraftFile(NamedTuple):
    """Uploaded file that is stored temporarily, until its source is created. `id` identifies it in the object store."""

    id: str
    name: str
    size: int


@pages.register_get("/sources/new", title=N_("Connect a source"))
async def show_source_kinds(page: PageContext) -> Response:
    """Show the kinds of sources that can be connected."""
    return page.render("sources/new.html", accepts_mail=page.dependencies[Settings].mail_domain is not None)


def _get_form_values(page: PageContext) -> FormData:
    """Return the submitted form, or for GET the query parameters with the initial values of the form."""
    return page.form if page.is_post else page.query


@pages.register_get("/sources/new/file")
async def show_file_form(page: PageContext) -> Response:
    """Show the form for uploading a file; after the upload, show a preview of the file and the form for its source."""
    form = _get_form_values(page)
    if not (token := form.get("draft")):
        return page.render("sources/new_file.html", max_bytes=MAX_DRAFT_BYTES)
    draft, fix = _read_draft_token(page, token), form.get("fix")
    if not form.get("name"):
        title = draft.name.rpartition(".")[0].replace("_", " ").replace("-", " ").strip()[:100]
        form = FormData([*form.pairs, ("name", title.capitalize() or draft.name)])
    defaults = read_defaults(form, {}, fix)
    file_preview = None
    try:
        file_preview = await _preview_draft(page, form, draft, fix)
    except OperationRefused as error:
        page.refused = page.refused or error
    values = build_preview_values(*file_preview, form) if file_preview else NO_PREVIEW
    return page.render(
        "sources/new_file_preview.html", draft=draft, token=token, form=form, defaults=defaults,
        **build_editor_values(form), **values,
    )  # fmt: skip


@pages.register_post("/sources/new/file/preview")
async def refresh_preview(page: PageContext) -> Response:
    """Show the preview of an uploaded file with the columns and defaults in the form, or with the fix that it requests."""
    return await show_file_form(page)


@pages.register_post("/sources/new/file", max_bytes=MAX_DRAFT_BYTES + MAX_FORM_BYTES)
async def store_draft(page: PageContext) -> Response:
    """Store an uploaded file temporarily, and redirect to its preview."""
    upload = page.files.get("file")
    if upload is None or upload.size == 0:
        page.refused = page.to_refused(InvalidRequest.for_field("file", "required", gettext(_NO_FILE)))
        return page.render("sources/new_file.html", status=422, max_bytes=MAX_DRAFT_BYTES)
    drafts = page.dependencies[DraftFiles]
    async with page.open_transaction("uploads.announce") as tx:
        id = await drafts.reserve(tx, upload.size)
    await drafts.store(page.principal.tenant, id, _read_chunks(upload))
    token = page.console.signatures.sign_value(_build_draft_purpose(page), [id, _clean_file_name(upload), upload.size])
    return page.redirect(f"/console/sources/new/file?draft={token}")


def _build_draft_purpose(page: PageContext) -> str:
    """Return the purpose with which the tokens of temporary files are signed.

    The purpose contains the organisation and mode, so a token is invalid in any other organisation or mode.
    """
    return f"draft {page.principal.tenant.org} {page.principal.tenant.mode}"


def _read_draft_token(page: PageContext, token: str) -> DraftFile:
    """Return the temporary file that a token identifies. Raises NotFound if the token is invalid for this organisation."""
    values = page.console.signatures.read_signed_value(_build_draft_purpose(page), token)
    if values is None:
        raise NotFound(gettext("The file is no longer available. Upload the file again."))
    return DraftFile(*values)


def _build_file_source(form: FormData) -> dict[str, Any]:
    """Convert the form to the body of the API request that creates a file source."""
    config = read_defaults(form, form.select("warehouse"), form.get("fix"))
    return build_source_request(form, "file", config)


@pages.register_post("/sources/new/file/connect", error_view=show_file_form)
async def connect_file(page: PageContext) -> Response:
    """Create a source from the form, and import the temporarily stored file as its first upload."""
    drafts, tenant = page.dependencies[DraftFiles], page.principal.tenant
    draft = _read_draft_token(page, page.form["draft"])
    preview, tables = await _preview_draft(page, page.form, draft)
    if not preview.is_ok or any(table.edited is None for table in tables):
        raise Unprocessable(gettext("The file cannot be imported with these columns. Check the preview."))
    source = await page.api.post("/v1/sources", _build_file_source(page.form))
    async with page.open_transaction("mappings.confirm") as tx:
        await page.get_service("mappings").store_confirmed_mappings(
            tx, source["id"], Stream.CATALOGUE, preview.tables[:MAX_PREVIEW_TABLES]
        )

    async def take_over(upload: str) -> None:
        await drafts.copy_to_upload(tenant, draft.id, upload)

    try:
        run = await _upload_file(page, source["id"], draft.name, draft.size, take_over)
    except (OperationRefused, ObjectMissing) as error:
        reason = error.detail if isinstance(error, OperationRefused) else gettext("The file expired after one hour.")
        notice = gettext(
            "Source connected, but its file was not imported. %(reason)s Upload the file here.", reason=reason
        )
        return page.redirect(f"/console/sources/{source['id']}", notice, tone="bad")
    async with page.open_transaction("uploads.complete") as tx:
        await drafts.delete(tx, draft.id)
    return page.redirect(
        f"/console/runs/{run}", gettext("%(name)s is connected and its first run has started.", name=source["name"])
    )


@pages.register_post("/sources/<id>/file", max_bytes=MAX_FILE_BYTES + MAX_FORM_BYTES)
async def import_file(page: PageContext) -> Response:
    """Import an uploaded file into an existing source."""
    source_page, upload = f"/console/sources/{page.path_parameters['id']}", page.files.get("file")
    if upload is None or upload.size == 0:
        return page.redirect(source_page, gettext(_NO_FILE), tone="bad")
    sent_file = upload

    async def store(id: str) -> None:
        key = build_upload_key(page.principal.tenant, id)
        await page.dependencies[ObjectStore].put_stream(key, _read_chunks(sent_file))

    body = {"accept_shrink": True} if page.form.get("accept_shrink") else {}
    try:
        run = await _upload_file(page, page.path_parameters["id"], _clean_file_name(upload), upload.size, store, body)
    except OperationRefused as refused:
        return page.redirect(source_page, refused.detail, tone="bad")
    return page.redirect(f"/console/runs/{run}")


async def _upload_file(
    page: PageContext,
    source: str,
    name: str,
    size: int,
    store: Callable[[str], Awaitable[None]],
    body: Mapping[str, Any] = {},
) -> str:
    """Create an upload for a source, store the file and complete the upload, which starts a run.

    Args:
        page: The context.
        source: The ID of the source.
        name: The name of the file.
        size: The size of the file in bytes.
        store: Function that stores the file under the ID of the upload.
        body: The body of the API request that completes the upload.

    Returns:
        The ID of the run.

    Raises:
        OperationRefused: An API operation failed.
    """
    media_type = _MEDIA_TYPES.get(name.rpartition(".")[2].lower(), "application/octet-stream")
    announcement = {"filename": name, "content_type": media_type, "bytes": size}
    upload = await page.api.post(f"/v1/sources/{source}/uploads", announcement)
    path = f"/v1/uploads/{upload['id']}"
    if (await page.api.get(path))["status"] == "pending":
        await store(upload["id"])
    run: str = (await page.api.post(f"{path}/complete", body))["run"]
    return run


def _clean_file_name(upload: FormFile) -> str:
    """Return the name of a file without folders and without characters that uploads do not accept."""
    plain_name = upload.name.replace("\\", "/").rpartition("/")[2]
    return (
        "".join(character for character in plain_name if character.isprintable()).strip().lstrip(".")[-200:] or "file"
    )


async def _read_chunks(upload: FormFile) -> AsyncIterator[bytes]:
    """Yield the contents of a file in chunks, which a thread reads."""
    while chunk := await asyncio.to_thread(upload.file.read, _CHUNK_BYTES):
        yield chunk


@pages.register_post("/sources/new/address", error_view=show_address)
async def start_probe(page: PageContext) -> Response:
    """Start a website check of the entered URL, and redirect to its progress."""
    url = page.form.get("url")
    probe = await page.api.post("/v1/source-probes", {"url": f"https://{url}" if url and "://" not in url else url})
    return page.redirect(f"/console/probes/{probe['id']}")


@pages.register_get("/probes/<id>", scope=READ_SCOPE)
async def show_probe(page: PageContext, preview: Any = None) -> Response:
    """Show the progress of a website check; when it is complete, show its results and a form for the proposed source.

    `preview` contains the template variables of a preview of the proposed source, if any.
    """
    probe, form = await page.api.get(f"/v1/source-probes/{page.path_parameters['id']}"), _get_form_values(page)
    proposal = probe.get("proposal")
    if not form.get("name") and proposal:
        interval = str(proposal.get("schedule", {}).get("interval_minutes", ""))
        proposed = {"name": proposal["name"], "currency": proposal["config"].get("currency", "")}
        form = FormData([*proposed.items(), ("interval_minutes", interval), *form.pairs])
    return page.render("sources/probe.html", proposal=proposal, form=form, preview=preview, **_build_live_values(probe))


def _build_live_values(probe: Mapping[str, Any]) -> dict[str, Any]:
    """Return the template variables of the part of a website check's page that is updated live."""
    return {"probe": probe, "is_open": probe["status"] in ("queued", "running")}


@pages.register_get("/probes/<id>/progress", scope=READ_SCOPE)
async def follow_probe(page: PageContext) -> Response:
    """Stream the progress of a website check."""
    id = page.path_parameters["id"]
    await page.api.get(f"/v1/source-probes/{id}")  # raises OperationRefused without permission
    return stream_progress(
        page, "sources/probe.html", lambda tx: tx.store(Probe).get(id), probes_wire.PROBE, _build_live_values
    )


@pages.register_post("/probes/<id>", error_view=show_probe)
async def connect_probe(page: PageContext) -> Response:
    """Preview or create the source that a website check proposes, as the form's button selects."""
    form, probe = page.form, await page.api.get(f"/v1/source-probes/{page.path_parameters['id']}")
    if "proposal" not in probe:
        return page.redirect(
            f"/console/probes/{probe['id']}", gettext("The website check found nothing to connect."), tone="bad"
        )
    proposal = probe["proposal"]
    config = proposal["config"] | read_currency_form(form)
    body = proposal | build_source_request(form, proposal["kind"], config, schedule=read_schedule_form(form))
    if form.get("action") == "preview":
        return await show_probe(page, preview=await _preview_pull(page, body))
    source = await page.api.post("/v1/sources", body)
    return page.redirect(
        f"/console/sources/{source['id']}",
        gettext("%(name)s is connected and its first run has started.", name=source["name"]),
    )


def _find_shop_connectors(page: PageContext) -> dict[str, Any]:
    """Return the connectors to shop platforms by name: those that use an API with credentials."""
    infos = page.dependencies[Connectors].list_connectors()
    return {info.name: info for info in infos if info.credentials_schema is not None and "api" in info.kinds}


@pages.register_get("/sources/new/shop")
async def show_shop(page: PageContext, preview: Any = None) -> Response:
    """Show the list of shop platforms, or the form for the selected platform.

    `preview` contains the template variables of a preview of the shop's products, if any.
    """
    form, shops = _get_form_values(page), _find_shop_connectors(page)
    if (info := shops.get(form.get("connector"))) is None:
        return page.render("sources/new_shop.html", shops=shops.values())
    settings = build_settings_fields(
        info.config_schema, {}, ("url", "currency", "auth", "weight_unit", "dimension_unit")
    )
    methods = build_sign_in_methods(info.credentials_schema)
    return page.render(
        "sources/new_shop_form.html",
        info=info,
        settings=fill_fields(settings, form),
        methods=[method._replace(fields=fill_fields(method.fields, form)) for method in methods],
        form=form,
        preview=preview,
    )


@pages.register_post("/sources/new/shop", error_view=show_shop)
async def connect_shop(page: PageContext) -> Response:
    """Preview the shop's products with the entered credentials; create the source if the form requests this."""
    form = page.form
    if (connector := _find_shop_connectors(page).get(form.get("connector"))) is None:
        return page.redirect("/console/sources/new/shop")
    config = read_settings_form(connector.config_schema, form, {})
    body = build_source_request(form, "api", config, connector=connector.name, schedule=read_schedule_form(form))
    credentials = read_credentials_form(build_sign_in_methods(connector.credentials_schema), form)
    preview = await _preview_pull(page, body, credentials)
    if form.get("action") == "preview" or not (preview["ok"] or form.get("ignore_failure")):
        return await show_shop(page, preview=preview)
    source = await page.api.post("/v1/sources", body)
    await page.api.send_change("PUT", f"/v1/sources/{source['id']}/credentials", {"credentials": credentials})
    return page.redirect(
        f"/console/sources/{source['id']}",
        gettext("%(name)s is connected and its first run has started.", name=source["name"]),
    )


@pages.register_form("/sources/new/<any(mail, push):kind>")
async def connect_mail_or_push(page: PageContext) -> Response:
    """Show the form for a source that receives emails or pushed records; if it is submitted, create the source."""
    kind, form = page.path_parameters["kind"], page.form
    if page.must_process:
        config = read_currency_form(form)
        if kind == "mail":
            config = {"inbound": {"senders": []}} | set_allowed_senders(config, form)
        source = await page.api.post("/v1/sources", build_source_request(form, kind, config))
        return page.redirect(f"/console/sources/{source['id']}", gettext("%(name)s is connected.", name=source["name"]))
    return page.render(f"sources/new_{kind}.html", form=form)


@pages.register_form("/sources/new/network")
async def connect_network(page: PageContext) -> Response:
    """Show the form for a source that follows another organisation's catalogue; if it is submitted, create the source."""
    form = _get_form_values(page)
    if page.must_process:
        config = {"catalogue": form.get("catalogue")}
        body = build_source_request(form, "api", config, connector=NETWORK_CONNECTOR)
        source = await page.api.post("/v1/sources", body)
        return page.redirect(f"/console/sources/{source['id']}", gettext("%(name)s is connected.", name=source["name"]))
    return page.render("sources/new_network.html", form=form)


async def _preview_draft(
    page: PageContext, form: FormData, draft: DraftFile, fix: str = ""
) -> tuple[FeedPreview, list[EditorTable]]:
    """Return the preview of a temporarily stored file with the columns in a form, and the editors of its tables.

    The file is read with the proposed mappings, and again if the form changes them.

    Raises:
        OperationRefused: The source in the form cannot be created.
        NotFound: The file has expired.
    """
    source, known, previewing = await _create_unsaved_source(page, _build_file_source(form), None)
    objects, key = page.dependencies[ObjectStore], build_upload_key(page.principal.tenant, draft.id)
    try:
        await objects.get_size(key)
    except ObjectMissing:
        raise NotFound(gettext("The file expired after one hour. Upload the file again.")) from None
    preview = await previewing.preview_file(source, objects.read(key), known)
    settings, now = create_feed_settings(source, Stream.CATALOGUE), page.dependencies[Clock].now()
    tables: list[EditorTable] = []
    remaining = MAX_EDITOR_COLUMNS
    for table in preview.tables[:MAX_PREVIEW_TABLES]:
        if table.is_confirmable and remaining > 0:
            mapping = propose_mapping(source.id, Stream.CATALOGUE, table, now)
            tables.append(
                await asyncio.to_thread(
                    build_table,
                    form,
                    mapping,
                    settings,
                    now,
                    number=len(tables),
                    sheet=table.sheet,
                    fix=fix,
                    max_columns=remaining,
                )
            )
            remaining -= len(tables[-1].columns)
    if confirmed := tuple(one for table in tables if table.edits for one in table.confirmed):
        preview = await previewing.preview_file(source, objects.read(key), (*confirmed, *known))
    return preview, tables


async def _preview_pull(
    page: PageContext, body: Mapping[str, Any], credentials: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Fetch data with the connector of a new source, and return the template variables of the preview of the data.

    Raises OperationRefused if the source in `body` cannot be created.
    """
    source, known, previewing = await _create_unsaved_source(page, body, credentials)
    job = ConnectorTask(source.config, credentials, "catalogue", tenant=page.principal.tenant)
    return _build_preview_values(await previewing.preview_fetched(source, job, known))


async def _create_unsaved_source(
    page: PageContext, body: Mapping[str, Any], credentials: Mapping[str, Any] | None
) -> tuple[Source, Any, FeedPreviewer]:
    """Validate a new source, and build the source without storing it.

    Args:
        page: The context.
        body: The body of the API request that creates the source.
        credentials: The credentials of the source, if any.

    Returns:
        The source, the confirmed column mappings of the organisation's sources, and the previewer.

    Raises:
        OperationRefused: The API refuses the dry run of the creation, or the credentials are invalid.
    """
    await page.api.post("/v1/sources", body, dry_run="true")
    dependencies, principal = page.dependencies, page.principal
    service, context = (
        dependencies.call(create_source_service),
        AuditContext(principal.actor, "sources.create", page.request_id),
    )
    try:
        new_source: dict[str, Any] = sources_wire.SOURCE.build_create_body().decode(dict(body))
        async with dependencies[UnitOfWork].begin_scratch(principal.tenant, context) as tx:
            source = await service.create(tx, new_source)
            if credentials is not None:
                source = await service.store_credentials(tx, source.id, credentials)
            known = limit_mappings(await tx[MappingStore].list_confirmed(source.id, MAX_CONFIRMED_MAPPINGS))
    except DomainError as error:
        raise page.to_refused(error) from error
    return source, known, dependencies[FeedPreviewer]


def _build_preview_values(preview: FeedPreview) -> dict[str, Any]:
    """Return the template variables of a preview: the columns of each table with samples, and the products."""
    tables = [_describe_table(table) for table in preview.tables[:MAX_PREVIEW_TABLES]]
    return {**build_preview_values(preview, [])["preview"], "tables": tables}


def _describe_table(table: MappedTable) -> dict[str, Any]:
    """Return the template variables of a table: its sheet, and for each column the header, samples and mapping."""
    column_by_position = {column.position: column for column in table.mapping.columns}
    reason_by_position = {column.position: column.reason for column in table.mapping.unmapped}
    columns = []
    for position, header in enumerate(table.mapping.headers[:_MAX_COLUMNS]):
        samples = dict.fromkeys(row[position] for row in table.samples if position < len(row) and row[position])
        columns.append(
            (header, list(samples)[:3], column_by_position.get(position), reason_by_position.get(position, "unknown"))
        )
    return {"sheet": table.sheet, "columns": columns}
