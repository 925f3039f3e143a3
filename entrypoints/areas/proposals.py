"""Proposals of agents: GET /v1/proposals and /v1/proposals/{id}, POST …/accept and …/reject."""

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from adapters.api_json import proposals as wire
from domain.agents.usecases.changes import OPERATIONS, AreaChanges
from domain.agents.usecases.variant_groups import VariantGrouper
from domain.corrections.usecases.service import CorrectionService
from domain.jobs.usecases.ticks import Tick
from domain.kernel.schema import Schema, enum, id_schema, text
from domain.mappings.usecases import MappingService
from domain.matching.usecases.merges import MergeService
from domain.proposals.model import ProposalFilter, ProposalKind, ProposalStatus
from domain.proposals.usecases.expiry import ProposalExpirer
from domain.proposals.usecases.service import ProposalService, find_accepted_operation
from domain.runs.usecases.category_rules import CategoryRuleService
from domain.runs.usecases.service import Replayer
from entrypoints.areas import mappings, matching, runs, sources
from entrypoints.dependencies import Dependencies
from entrypoints.operations.collection import Collection
from entrypoints.operations.operation import (
    AgentToolSettings,
    Area,
    Operation,
    Reply,
    UndoSupport,
    WriteContext,
    check_caller,
)

ProposalWriteContext: TypeAlias = WriteContext[ProposalService]
_OPERATION_BY_ID: Final[Mapping[str, Operation]] = {
    row.id: row
    for area in (mappings.AREA, matching.AREA, runs.AREA, sources.AREA)
    for row in (*area.operations, *area.console_actions)
    if row.id in OPERATIONS
}
"""The operations that accepting a proposal can execute, by ID."""


def create_proposal_service(dependencies: Dependencies) -> ProposalService:
    """Create the use cases of proposals."""
    changes = AreaChanges(
        mappings=MappingService(Replayer()),
        category_rules=dependencies[CategoryRuleService],
        sources=dependencies.call(sources.create_source_service),
        grouper=VariantGrouper(dependencies[MergeService], CorrectionService()),
        decoders={id: row.body.decode for id, row in _OPERATION_BY_ID.items() if row.body is not None},
    )
    return ProposalService(changes, wire.render_proposal)


async def accept_proposal(context: ProposalWriteContext) -> Reply:
    """Make a proposed change with the permissions of the caller."""
    service, id = context.service, context.ids["id"]
    proposal = await service.get(context.tx, id)
    if proposal.operation is not None:
        check_caller(_OPERATION_BY_ID[proposal.operation], context.principal)
    return context.build_resource_reply(wire.PROPOSAL, await service.accept(context.tx, id))


def _create_ticks(expirer: ProposalExpirer) -> Sequence[Tick]:
    return [
        Tick("expired proposals", 300, expirer.mark_expired),
        Tick("old proposals", 3600, expirer.delete_decided, is_purge=True),
    ]


_FILTERS: Final[Mapping[str, Schema]] = {
    "status": enum(*ProposalStatus),
    "kind": enum(*ProposalKind),
    "subject": text("map_01J8ZQ5T3V7XK2M9RB4CDW", max_length=40, description="The ID of the subject."),
    "agent": id_schema("agt"),
}
PROPOSALS = Collection("proposals", wire.PROPOSAL, "proposals")

AREA = Area(
    "proposals",
    "Proposals",
    "Changes that the service's agents propose, and that people accept or reject.",
    create_service=create_proposal_service,
    operations=(
        PROPOSALS.list(
            "List proposals",
            "Returns the proposals in this mode, newest first. Decided proposals are kept for 90 days.",
            ProposalService.page,
            create_filter=ProposalFilter,
            query=_FILTERS,
            dataset="proposals",
        ),
        PROPOSALS.read(
            "Read a proposal",
            "Returns the proposed change, the operation that accepting executes, and the result of testing the change on stored data.",
        ),
        PROPOSALS.write(
            "accept",
            "Accept a proposal",
            "Executes the operation `operation` with the body `change` as your own act, which requires the permission for that operation (403). "
            "`Service-Dry-Run: explain` returns a preview. Returns 409 if the proposal does not wait for a decision, is a note, or cannot be applied "
            "now, for example while a run of the source is open; it then keeps its status.",
            handler=accept_proposal,
            scope=None,
            errors=("conflict", "quota_exceeded"),
            agent=AgentToolSettings(requires_approval=True, contacts_external_systems=True),
            undo=UndoSupport(
                "The change is undone like the operation that made it; the proposal stays applied. A created source cannot be removed.",
                ProposalService.undo_acceptance,
                find_accepted_operation,
            ),
        ),
        PROPOSALS.write(
            "reject",
            "Reject a proposal",
            "Dismisses the proposal. The same change is not proposed again. Returns 409 if the proposal does not wait for a decision.",
            ProposalService.reject,
            body=wire.REJECTION,
            errors=("conflict",),
            agent=AgentToolSettings(requires_approval=True),
            undo=UndoSupport("The proposal waits for a decision again.", ProposalService.undo_rejection),
        ),
    ),
    create_ticks=_create_ticks,
)
