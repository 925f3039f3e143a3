"""What a source would read, before it is connected: made in a transaction that is rolled back, read in a reader's process."""

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from adapters.wire import sources as wire
from domain.ingestion.mapping.learned import bounded
from domain.ingestion.ports import Job
from domain.ingestion.reading import ReadTable
from domain.kernel.errors import DomainError, NotFound
from domain.kernel.ids import is_id
from domain.kernel.plain import plain
from domain.kernel.tenancy import AuditContext
from domain.mappings.model import KNOWN
from domain.mappings.ports import MappingStore
from domain.runs.usecases.previewing import Preview, Previewing
from domain.sources.model import Source
from domain.storage.model import upload_key
from entrypoints.areas.sources import service_of
from entrypoints.console.answers import answered
from entrypoints.console.refusals import refused
from entrypoints.console.visit import Visit
from ports.objects import ObjectMissing

_PURPOSE: Final = "draft"
_SAMPLES: Final = 3
_COLUMNS: Final = 200


@dataclass(frozen=True, slots=True)
class DraftFile:
    """A file that lies in the object store until somebody decides about it: its id, its name, its type and its bytes."""

    id: str
    name: str
    content_type: str
    size: int


def _bound(visit: Visit, text: str) -> str:
    tenant = visit.principal.tenant
    return f"{tenant.org}\0{tenant.mode}\0{text}"


def token_of(visit: Visit, draft: DraftFile) -> str:
    """What a form carries for the file: signed for this organisation and mode, so that nobody names another's."""
    packed = json.dumps([draft.id, draft.name, draft.content_type, draft.size])
    text = base64.urlsafe_b64encode(packed.encode()).decode().rstrip("=")
    return f"{visit.console.signatures.sign(_PURPOSE, _bound(visit, text))}.{text}"


def draft_of(visit: Visit, token: str) -> DraftFile:
    """The file that a form means. Raises NotFound for a token that is not ours, or another organisation's."""
    signature, _, text = token.partition(".")
    if not visit.console.signatures.holds(_PURPOSE, _bound(visit, text), signature):
        raise NotFound("The file is not there any more; send it again.")
    try:
        id, name, kind, size = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except (ValueError, binascii.Error):
        raise NotFound("The file is not there any more; send it again.") from None
    if not is_id("upl", id):
        raise NotFound("The file is not there any more; send it again.")
    return DraftFile(id, name, kind, size)


def previewing(visit: Visit) -> Previewing:
    """The use case."""
    given = visit.dependencies
    return Previewing(given.connectors, given.feed_readers, given.workspaces)


async def preview_of_draft(visit: Visit, body: Mapping[str, Any], draft: DraftFile) -> dict[str, Any]:
    """What would be read of the file. Raises Refused, NotFound when the file is gone."""
    source, _, known = await _unsaved(visit, body, None)
    objects, key = visit.dependencies.objects, upload_key(visit.principal.tenant, draft.id)
    try:
        await objects.size(key)
    except ObjectMissing:
        raise NotFound("The file is kept for an hour and is gone by now; send it again.") from None
    return shown(await previewing(visit).file(source, objects.read(key), known))


async def preview_of_pull(
    visit: Visit, body: Mapping[str, Any], credentials: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """What would be read of what the source's connector fetches. Raises Refused."""
    source, job, known = await _unsaved(visit, body, credentials)
    return shown(await previewing(visit).fetched(source, job, known))


async def _unsaved(
    visit: Visit, body: Mapping[str, Any], credentials: Mapping[str, Any] | None
) -> tuple[Source, Job, Any]:
    """The source as it would be. What the operation would refuse is refused, and costs what it costs."""
    await visit.api.post("/v1/sources", body, dry_run="true")
    principal, service = visit.principal, service_of(visit.dependencies)
    context = AuditContext(principal.actor, "sources.create", visit.request_id)
    try:
        new: dict[str, Any] = wire.SOURCE.create().decode(dict(body))
        async with visit.dependencies.uow.scratch(principal.tenant, context) as tx:
            source = await service.create(tx, new)
            if credentials is not None:
                source = await service.put_credentials(tx, source.id, credentials)
            known = bounded(await tx[MappingStore].confirmed(source.id, KNOWN))
    except DomainError as error:
        raise refused(error, visit.request_id) from error
    return source, Job(source.config, credentials, "catalogue", caller=principal.tenant.org), known


def shown(preview: Preview) -> dict[str, Any]:
    """The preview as pages show it: tables of columns with their samples, and products as the catalogue would have them."""
    return {
        "ok": preview.ok,
        "failure": preview.failure,
        "rows": preview.rows,
        "cut": preview.cut,
        "bytes": preview.bytes_read,
        "tables": [_table(table) for table in preview.tables[:5]],
        "products": answered([plain(product) for product in preview.products]),
        "problems": answered([plain(problem) for problem in preview.problems]),
        "problem_count": preview.problem_count,
    }


def _table(table: ReadTable) -> dict[str, Any]:
    read = {column.position: column for column in table.mapping.columns}
    reasons = {column.position: column.reason for column in table.mapping.unmapped}
    columns = []
    for position, header in enumerate(table.mapping.headers[:_COLUMNS]):
        cells = [row[position] for row in table.samples if position < len(row) and row[position]]
        column = read.get(position)
        columns.append(
            {
                "header": header,
                "samples": list(dict.fromkeys(cells))[:_SAMPLES],
                "field": column.field if column and not column.is_alternative else None,
                "settings": dict(column.settings) if column else {},
                "tier": column.tier if column else None,
                "confidence": column.confidence if column else None,
                "reason": reasons.get(position, "unknown"),
            }
        )
    return {"sheet": table.sheet, "columns": columns}
