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
    """Reach the source once, after letting the database go."""
    trial = await call.service.test(call.tx, call.ids["id"])

    async def reach() -> Reply:
        return call.one(wire.SOURCE_TEST, trial if isinstance(trial, SourceTest) else await trial.run())

    return reach


def service_of(dependencies: Dependencies, settings: Settings, objects: Objects) -> SourceService:
    """The area's use cases."""
    make = partial(
        SourceService,
        mail_domain=settings.mail_domain,
        allowed_hosts=settings.allow_private_hosts,
        handed_in=HandedIn(objects),
        settings_of=lambda source: context_of(source, Stream.CATALOGUE),
    )
    return dependencies.call(make)


SOURCES = Collection("sources", wire.SOURCE, "sources")

AREA = Area(
    "sources",
    "Sources",
    "Connections to vendors' data: feeds, files, pushed records and mail.",
    service=service_of,
    operations=(
        SOURCES.list(
            "List sources",
            "Your connections to vendors' data in this mode, newest first.",
            dataset="sources",
        ),
        SOURCES.create(
            "Connect a source",
            "The kind is fixed from now on: `url` is pulled from an address, `api` by a connector that signs "
            "in, `file` takes uploads, `push` takes records, `mail` takes mail from the senders that config.inbound names. "
            "A connector that is left out is chosen by kind, platform and format. A source with a schedule is first pulled "
            "at once; one that must sign in, as soon as it has credentials. More than the plan includes: 429.",
            errors=("unprocessable", "quota_exceeded"),
            agent=Tool(approval=True, outside=True),
            undo="A source stays, for what was read of it rests on it. Set its status to paused instead.",
        ),
        SOURCES.read(
            "Read a source",
            "A source with its health and how fresh its data is.",
        ),
        SOURCES.update(
            "Change a source",
            "Fields that are left out stay. `config` and `schedule` are replaced as wholes. Setting a blocked "
            "source's status to active starts its count of failures anew. The kind cannot change.",
            errors=("conflict", "unprocessable"),
            agent=Tool(approval=True, outside=True),
            undo=Undoing(
                "The settings that were changed are as before, and credentials that were forgotten come back.",
                SourceService.undo,
            ),
        ),
        SOURCES.write(
            "put_credentials",
            "Store a source's credentials",
            "Replaces any. They are checked against the form that the connector asks for, sealed at rest, and "
            "never returned, logged, exported or put into an event.",
            SourceService.put_credentials,
            method="PUT",
            path="/v1/sources/{id}/credentials",
            body=wire.CREDENTIALS,
            errors=("unprocessable",),
            undo=Undoing(
                "The credentials of before come back, for 30 days; where there were none, these go.", SourceService.undo
            ),
        ),
        SOURCES.write(
            "delete_credentials",
            "Forget a source's credentials",
            "Runs that need them fail until new ones are stored.",
            SourceService.delete_credentials,
            method="DELETE",
            path="/v1/sources/{id}/credentials",
            undo=Undoing("The credentials come back, for 30 days.", SourceService.undo),
        ),
        SOURCES.write(
            "rotate_address",
            "Rotate a source's inbound address",
            "Gives the source a new inbound address at once; mail to the old one is refused from then on. A "
            "source without config.inbound: 422.",
            SourceService.rotate_address,
            path="/v1/sources/{id}/inbound-address/rotate",
            errors=("unprocessable",),
            agent=Tool(approval=True),
            undo=Undoing("The former address takes mail again, and the new one none.", SourceService.undo),
        ),
        DetachedWrite(
            id="sources.test",
            method="POST",
            path="/v1/sources/{id}/test",
            summary="Try a source out",
            description="Reaches the source once as a run would, reads its first records, and stores nothing. What goes "
            "wrong on the way is told in `failure`. Of a kind that is not pulled, what was last handed in is read (422 before "
            "anything was). `mapping` tells what the first table's columns mean, `problems` what of the first rows could not be read.",
            handler=test,
            scope="sources:write",
            reply=wire.SOURCE_TEST.schema,
            rate="expensive",
            keyless=True,
            errors=("unprocessable",),
            agent=Tool(approval=True, outside=True),
            undo="It changes nothing.",
        ),
    ),
)
