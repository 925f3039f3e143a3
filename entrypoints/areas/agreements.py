"""Agreements: GET /v1/agreements/{kind}, GET /v1/agreement-acceptances and POST /v1/agreements/{kind}/acceptances."""

from typing import Final, TypeAlias

from adapters.api_json import agreements as wire
from domain.agreements.usecases.service import AgreementService
from domain.orgs.model import VENDOR
from entrypoints.operations.collection import Collection
from entrypoints.operations.operation import Area, Read, ReadContext, Reply, Write, WriteContext

AgreementReadContext: TypeAlias = ReadContext[AgreementService]
AgreementWriteContext: TypeAlias = WriteContext[AgreementService]
_AGREEMENT: Final = "/v1/agreements/{kind}"


async def read_agreement(context: AgreementReadContext) -> Reply:
    """Return the newest version of an agreement with the organisation's standing."""
    return context.build_resource_reply(
        wire.AGREEMENT, await context.service.get_state(context.tx, context.ids["kind"])
    )


async def accept_agreement(context: AgreementWriteContext) -> Reply:
    """Accept the newest version of an agreement."""
    acceptance = await context.service.accept(
        context.tx, context.ids["kind"], context.command, context.principal.user, context.client
    )
    return context.build_resource_reply(wire.ACCEPTANCE, acceptance)


ACCEPTANCES: Final = Collection(
    "agreements", wire.ACCEPTANCE, "agreements", list_path="/v1/agreement-acceptances", noun="acceptance"
)
AREA: Final = Area(
    "agreements",
    "Agreements",
    "Agreements that a vendor must accept before its catalogue is published.",
    create_service=AgreementService,
    operations=(
        Read(
            id="agreements.read",
            path=_AGREEMENT,
            summary="Read an agreement",
            description="Returns the newest version of the agreement with its full text, your newest acceptance, and your standing. "
            "For vendors.",
            handler=read_agreement,
            scope="agreements:read",
            organisation_kind=VENDOR,
            path_schemas={"kind": wire.KIND},
            reply=wire.AGREEMENT.schema,
            errors=("not_found",),
        ),
        ACCEPTANCES.list(
            "List acceptances of agreements",
            "Returns the versions of agreements that your organisation has accepted in this mode, newest first, with the evidence of "
            "each acceptance.",
            AgreementService.list_acceptances,
            dataset="agreement_acceptances",
        ),
        Write(
            id="agreements.accept",
            path=f"{_AGREEMENT}/acceptances",
            method="POST",
            summary="Accept an agreement",
            description="Accepts the newest version of the agreement for your organisation. Only owners and admins of a vendor can accept. "
            "The acceptance records name, title, user, time, IP address, User-Agent, version and hash. Send the version and hash that you "
            "have read: returns 409 if they are not the newest. If the version is already accepted, the earlier acceptance is returned.",
            handler=accept_agreement,
            scope="agreements:write",
            caller_kind="person",
            organisation_kind=VENDOR,
            path_schemas={"kind": wire.KIND},
            body=wire.ACCEPTANCE_BODY,
            reply=wire.ACCEPTANCE.schema,
            status=201,
            errors=("not_found", "conflict"),
            undo="An acceptance is evidence, which only a new agreement can replace.",
        ),
    ),
)
