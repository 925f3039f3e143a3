"""GET, POST /v1/sources; GET, PATCH /v1/sources/{id}; PUT, DELETE …/credentials; POST …/test, …/inbound-address/rotate."""

from collections.abc import Awaitable, Callable
from functools import partial

from adapters.wire import sources as wire
from domain.catalogue.model import Stream
from domain.runs.sheets import context_of
from domain.runs.usecases.snapshots import HandedIn
from domain.sources.testing import SourceTest
from domain.sources.usecases.service import SourceService
from entrypoints.dependencies import Dependencies
from entrypoints.operations.collection import Collection
from entrypoints.operations.operation import (
    Area,
    DetachedWrite,
    Reply,
    Tool,
    Undoing,
    WriteContext,
)
from entrypoints.settings import Settings
from ports.objects import Objects


async def test(call: WriteContext[SourceService]) -> Callable[[], Awaitable[Reply]]:
    """Read the source, then reach it once without holding a connection."""
    trial = await call.service.test(call.tx, call.ids["id"])

    async def run_trial() -> Reply:
        return call.one(wire.SOURCE_TEST, trial if isinstance(trial, SourceTest) else await trial.run())

    return run_trial


def service_of(dependencies: Dependencies, settings: Settings, objects: Objects) -> SourceService:
    """Create the area's use cases."""
    create = partial(
        SourceService,
        mail_domain=settings.mail_domain,
        allowed_hosts=settings.allow_private_hosts,
        handed_in=HandedIn(objects),
        settings_of=lambda source: context_of(source, Stream.CATALOGUE),
    )
    return dependencies.call(create)


SOURCES = Collection("sources", wire.SOURCE, "sources")

AREA = Area(
    "sources",
    "Sources",
    "Connections to vendors' data: feeds, files, pushed records and mail.",
    service=service_of,
    operations=(
        SOURCES.list(
            "List sources",
            "Returns your sources in this mode, newest first.",
            dataset="sources",
        ),
        SOURCES.create(
            "Create a source",
            "The kind cannot be changed later: `url` is pulled from a URL, `api` by a connector that signs in, `file` accepts uploads, "
            "`push` accepts records, `mail` accepts mail from the senders in config.inbound. If no connector is given, it is chosen by "
            "kind, platform and format. A source with a schedule is pulled immediately; one that must sign in, as soon as it has "
            "credentials. If the plan's quota is exceeded: 429.",
            errors=("unprocessable", "quota_exceeded"),
            agent=Tool(approval=True, outside=True),
            undo="A source cannot be removed, because imported data depends on it. Set its status to paused instead.",
        ),
        SOURCES.read(
            "Read a source",
            "Returns a source with its health and the freshness of its data.",
        ),
        SOURCES.update(
            "Change a source",
            "Omitted fields keep their values. `config` and `schedule` are replaced as a whole. Setting the status of a blocked source "
            "to active resets its failure count. The kind cannot be changed.",
            errors=("conflict", "unprocessable"),
            agent=Tool(approval=True, outside=True),
            undo=Undoing(
                "The previous settings are restored, with credentials that the change deleted.",
                SourceService.undo,
            ),
        ),
        SOURCES.write(
            "put_credentials",
            "Store a source's credentials",
            "Replaces existing credentials. They are validated against the connector's credential form, encrypted at rest, and never "
            "returned, logged, exported or included in an event.",
            SourceService.put_credentials,
            method="PUT",
            path="/v1/sources/{id}/credentials",
            body=wire.CREDENTIALS,
            errors=("unprocessable",),
            undo=Undoing(
                "The previous credentials are restored, for 30 days; if there were none, these are deleted.",
                SourceService.undo,
            ),
        ),
        SOURCES.write(
            "delete_credentials",
            "Delete a source's credentials",
            "Runs that need them fail until new ones are stored.",
            SourceService.delete_credentials,
            method="DELETE",
            path="/v1/sources/{id}/credentials",
            undo=Undoing("The credentials are restored, for 30 days.", SourceService.undo),
        ),
        SOURCES.write(
            "rotate_address",
            "Rotate a source's inbound address",
            "Gives the source a new inbound address immediately; mail to the old one is refused from then on. For a source without "
            "config.inbound: 422.",
            SourceService.rotate_address,
            path="/v1/sources/{id}/inbound-address/rotate",
            errors=("unprocessable",),
            agent=Tool(approval=True),
            undo=Undoing("The previous address accepts mail again, and the new one does not.", SourceService.undo),
        ),
        DetachedWrite(
            id="sources.test",
            method="POST",
            path="/v1/sources/{id}/test",
            summary="Test a source",
            description="Reaches the source once as a run would, reads its first records, and stores nothing. Errors are reported in "
            "`failure`. For kinds that are not pulled, the last received data is read (422 if there is none). `mapping` contains the "
            "column mapping of the first table, `problems` what could not be read in the first rows.",
            handler=test,
            scope="sources:write",
            reply=wire.SOURCE_TEST.schema,
            rate="expensive",
            keyless=True,
            errors=("unprocessable",),
            agent=Tool(approval=True, outside=True),
            undo="A test changes nothing.",
        ),
    ),
)
