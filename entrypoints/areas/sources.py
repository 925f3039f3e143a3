"""Sources: /v1/sources, /v1/sources/{id} and, below it, /credentials, /test and /inbound-address/rotate."""

from collections.abc import Awaitable, Callable
from functools import partial

from adapters.api_json import sources as wire
from domain.catalogue.model import Stream
from domain.runs.sheets import create_feed_settings
from domain.runs.usecases.snapshots import LatestInputFinder
from domain.sources.source_test import SourceTest
from domain.sources.usecases.service import SourceService
from entrypoints.dependencies import Dependencies
from entrypoints.operations.collection import Collection
from entrypoints.operations.operation import (
    AgentToolSettings,
    Area,
    ExternalCall,
    Reply,
    UndoSupport,
    WriteContext,
)
from entrypoints.settings import Settings
from ports.objects import ObjectStore


async def prepare_source_test(context: WriteContext[SourceService]) -> Callable[[], Awaitable[Reply]]:
    """Prepare a source test, and return the function that fetches data from the source once."""
    source_test = await context.service.prepare_test(context.tx, context.ids["id"])

    async def run_test() -> Reply:
        return context.build_resource_reply(
            wire.SOURCE_TEST, source_test if isinstance(source_test, SourceTest) else await source_test.run()
        )

    return run_test


def create_source_service(dependencies: Dependencies, settings: Settings, objects: ObjectStore) -> SourceService:
    """Create the use cases of sources."""
    create = partial(
        SourceService,
        mail_domain=settings.mail_domain,
        allowed_hosts=settings.allow_private_hosts,
        find_latest_input=LatestInputFinder(objects),
        create_feed_settings=lambda source: create_feed_settings(source, Stream.CATALOGUE),
    )
    return dependencies.call(create)


SOURCES = Collection("sources", wire.SOURCE, "sources")

AREA = Area(
    "sources",
    "Sources",
    "Connections to vendors' data: feeds, files, pushed records and mail.",
    create_service=create_source_service,
    operations=(
        SOURCES.list(
            "List sources",
            "Returns your sources in this mode, newest first.",
            dataset="sources",
        ),
        SOURCES.create(
            "Create a source",
            "The kind cannot be changed later: `url` is pulled from a URL, `api` by a connector that signs in, `file` "
            "accepts uploads, `push` accepts records, `mail` accepts mail from the senders in `config.inbound`. If no "
            "connector is given, it is chosen by kind, platform and format. The connector `network` (kind `api`) follows "
            "another organisation's published catalogue, `config.catalogue`. A source with a schedule is pulled "
            "immediately, or as soon as it has the credentials that its connector requires. Returns 429 if the plan does "
            "not include more sources.",
            errors=("unprocessable", "quota_exceeded"),
            agent=AgentToolSettings(requires_approval=True, contacts_external_systems=True),
            undo="A source cannot be removed, because imported data depends on it. Set its status to paused instead.",
        ),
        SOURCES.read(
            "Read a source",
            "Returns a source with its health and the freshness of its data.",
        ),
        SOURCES.update(
            "Change a source",
            "Omitted fields keep their values. `config` and `schedule` are replaced as a whole. The status `paused` pauses the pulls of "
            "the source's feed. Setting the status of a blocked source to active resets its failure count. The kind cannot be changed.",
            errors=("conflict", "unprocessable"),
            agent=AgentToolSettings(requires_approval=True, contacts_external_systems=True),
            undo=UndoSupport(
                "The previous settings are restored, and the credentials if the change deleted them.",
                SourceService.undo,
            ),
        ),
        SOURCES.write(
            "put_credentials",
            "Store a source's credentials",
            "Replaces existing credentials. They are validated against the connector's credentials schema, encrypted at rest, and never "
            "returned, logged, exported or included in an event.",
            SourceService.store_credentials,
            method="PUT",
            path="/v1/sources/{id}/credentials",
            body=wire.CREDENTIALS,
            errors=("unprocessable",),
            undo=UndoSupport(
                "The previous credentials are restored, within 30 days of the change. If there were none, the new ones are "
                "deleted.",
                SourceService.undo,
            ),
        ),
        SOURCES.write(
            "delete_credentials",
            "Delete a source's credentials",
            "Runs that need the credentials fail until new credentials are stored.",
            SourceService.delete_credentials,
            method="DELETE",
            path="/v1/sources/{id}/credentials",
            undo=UndoSupport("The credentials are restored, within 30 days of the deletion.", SourceService.undo),
        ),
        SOURCES.write(
            "rotate_address",
            "Rotate a source's inbound address",
            "Gives the source a new inbound address immediately; mail to the old one is refused from then on. Returns 422 "
            "for a source without config.inbound.",
            SourceService.rotate_address,
            path="/v1/sources/{id}/inbound-address/rotate",
            errors=("unprocessable",),
            agent=AgentToolSettings(requires_approval=True),
            undo=UndoSupport("The previous address accepts mail again, and the new one does not.", SourceService.undo),
        ),
        ExternalCall(
            id="sources.test",
            method="POST",
            path="/v1/sources/{id}/test",
            summary="Test a source",
            description="Fetches data from the source once, as a run would, reads the first records and stores nothing. "
            "Errors are reported in `failure`. For kinds that are not pulled, the last received data is read "
            "(422 if there is none). `mapping` contains the column mapping of the first table, and `problems` "
            "the unreadable values of the first 50 rows or records.",
            handler=prepare_source_test,
            scope="sources:write",
            reply=wire.SOURCE_TEST.schema,
            rate="expensive",
            ignores_idempotency_key=True,
            errors=("unprocessable",),
            agent=AgentToolSettings(requires_approval=True, contacts_external_systems=True),
            undo="A test changes nothing.",
        ),
    ),
)
