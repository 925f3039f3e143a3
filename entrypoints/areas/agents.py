"""Agents of the service: GET /v1/agents, PATCH /v1/agents/{agent}; operations that AI agents can call: GET /v1/agent/tools."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from adapters.api_json import agents as wire
from domain.agents.model import AgentChange
from domain.agents.usecases.proposal_job import ProposingJob
from domain.agents.usecases.settings import AgentService
from domain.agents.usecases.tools import ToolManifest
from domain.jobs.usecases.lane_processor import Handler
from domain.proposals.model import PROPOSING_JOB
from domain.runs.usecases.dry_run import DryRun
from entrypoints.areas.proposals import create_proposal_service
from entrypoints.dependencies import Dependencies
from entrypoints.operations.operation import (
    Area,
    DetachedContext,
    DetachedRead,
    Operation,
    Read,
    ReadContext,
    Reply,
    UndoSupport,
    Write,
    WriteContext,
)
from entrypoints.operations.tools import build_manifest
from entrypoints.settings import Settings
from ports.language_models import LanguageModels
from ports.objects import ObjectStore
from ports.parsing import ParserRunner
from ports.unit_of_work import UnitOfWork


@dataclass(frozen=True, slots=True)
class AgentServices:
    """Use cases of the service's agents, and the tools for AI agents."""

    agents: AgentService
    manifest: ToolManifest


AgentReadContext: TypeAlias = ReadContext[AgentServices]
AgentWriteContext: TypeAlias = WriteContext[AgentServices]
ToolDetachedContext: TypeAlias = DetachedContext[AgentServices]


async def list_tools(context: ToolDetachedContext) -> Reply:
    """Return all tools for AI agents, and for each tool whether the caller may use it."""
    manifest, scopes = context.service.manifest, context.principal.scopes
    return Reply(wire.render_tools((tool, manifest.permits(scopes, tool)) for tool in manifest))


async def list_agents(context: AgentReadContext) -> Reply:
    """Return a page of the agents."""
    return context.build_list_reply(
        wire.AGENT, await context.service.agents.list_states(context.tx, context.page_request)
    )


async def update_agent(context: AgentWriteContext) -> Reply:
    """Change the settings of an agent."""
    agents = context.service.agents
    [state] = await agents.load_states(
        context.tx, [await agents.update(context.tx, context.ids["agent"], context.command)]
    )
    return context.build_resource_reply(wire.AGENT, state)


def _create_service(models: LanguageModels | None) -> AgentService:
    return AgentService(models.is_configured if models else None)


def _create_services(services: Mapping[str, Any], operations: Sequence[Operation]) -> AgentServices:
    return AgentServices(services["agents"], build_manifest(operations))


def _create_proposing_job(
    dependencies: Dependencies,
    uow: UnitOfWork,
    dry_run: DryRun,
    objects: ObjectStore,
    models: LanguageModels | None,
    run_limited: ParserRunner,
    settings: Settings,
) -> Handler:
    proposals = create_proposal_service(dependencies)
    return ProposingJob(uow, proposals, dry_run, objects, models, run_limited, settings.agents_enabled)


AREA = Area(
    "agents",
    "Agents",
    "The service's agents, which propose changes, and operations that AI agents can call.",
    create_service=_create_service,
    create_service_across_areas=_create_services,
    operations=(
        DetachedRead(
            id="agents.list_tools",
            path="/v1/agent/tools",
            summary="List tools for agents",
            description="Returns every operation that AI agents can call as a tool: input, output, effects, and whether your "
            "credential permits it. The MCP endpoint `/mcp` offers the same tools under the same names.",
            handler=list_tools,
            scope="agents:read",
            reply=wire.AGENT_TOOLS,
            agent=None,
        ),
        Read(
            id="agents.list",
            path="/v1/agents",
            summary="List agents",
            description="Returns the four agents of your organisation in this mode with their settings and the numbers of their proposals. The "
            "agents exist in every organisation; they only propose changes unless their settings permit more.",
            handler=list_agents,
            scope="agents:read",
            reply=wire.AGENT.list_schema,
            paging="both",
            dataset="agents",
        ),
        Write(
            id="agents.update",
            method="PATCH",
            path="/v1/agents/{agent}",
            summary="Change an agent",
            description="Omitted fields keep their values. `off` stops the agent, `propose` lets it propose changes, and `auto_low_risk` also lets "
            "it apply changes of low risk by itself. `model` and `daily_budget_micros` apply to the category agent, which alone sends requests to a "
            "language model. Returns 422 if no price is set for the model.",
            handler=update_agent,
            scope="agents:write",
            reply=wire.AGENT.schema,
            rate="write",
            caller_kind="member_session",
            body=wire.AGENT.build_patch_body(AgentChange),
            errors=("conflict", "model_unpriced"),
            undo=UndoSupport(
                "The previous settings are restored; proposals and applied changes stay.",
                lambda services, tx, act: services.agents.undo(tx, act),
            ),
        ),
    ),
    handler_factories={PROPOSING_JOB: _create_proposing_job},
)
