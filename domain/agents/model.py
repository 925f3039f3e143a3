"""The service's own agents with their settings, and tools: operations of the API, as they are described to AI agents."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from typing import Annotated, Any, Final, TypedDict

from domain.audit.model import AuditedFields
from domain.kernel.enums import StoredEnum
from domain.kernel.ids import create_id_from_digest
from domain.kernel.resource import changeable, clearable, optional
from domain.kernel.schema import enum, id_schema, integer, text, timestamp
from domain.kernel.tenancy import Tenant
from domain.usage.model import MAX_BUDGET_MICROS


class AgentKind(StoredEnum):
    """Kind of an agent. Every organisation has one agent of each kind in each mode."""

    MAPPING = "mapping"
    CATEGORY = "category"
    SOURCE_DOCTOR = "source_doctor"
    TRIAGE = "triage"
    GROUPING = "grouping"


class Autonomy(StoredEnum):
    """Permission of an agent: none, to propose changes, or also to apply changes of low risk."""

    OFF = "off"
    PROPOSE = "propose"
    AUTO_LOW_RISK = "auto_low_risk"


AGENT_NAMES: Final[Mapping[AgentKind, str]] = {
    AgentKind.MAPPING: "Mapping agent",
    AgentKind.CATEGORY: "Category agent",
    AgentKind.SOURCE_DOCTOR: "Source agent",
    AgentKind.TRIAGE: "Triage agent",
    AgentKind.GROUPING: "Grouping agent",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """Agent of an organisation in one mode, with its settings.

    Attributes:
        model: The name of the language model, or None for the service's default model.
        daily_budget_micros: The budget for language models for a day (UTC), in millionths of a dollar.
    """

    id: Annotated[str, id_schema("agt")]
    kind: Annotated[AgentKind, enum(*AgentKind)]
    autonomy: Annotated[
        Autonomy,
        changeable(
            enum(*Autonomy) | {"description": "`auto_low_risk` also applies changes of low risk without a person."}
        ),
    ] = Autonomy.PROPOSE
    model: Annotated[
        str | None, clearable(text("small-1", max_length=100), "Null selects the service's default model.")
    ] = None
    daily_budget_micros: Annotated[
        int,
        changeable(
            integer(
                1_000_000,
                minimum=0,
                maximum=MAX_BUDGET_MICROS,
                description="Budget for language models for a day (UTC), in millionths of a US dollar.",
            )
        ),
    ] = 1_000_000
    last_run_at: Annotated[datetime | None, optional(timestamp("When the agent last examined data."))] = None
    version: int = 1
    created_at: datetime | None = None
    updated_at: datetime | None = None


class AgentChange(TypedDict, total=False):
    """Changes of an agent's settings; omitted fields stay unchanged."""

    autonomy: Autonomy
    model: str | None
    daily_budget_micros: int


AUDITED_AGENT_FIELDS = AuditedFields.from_resource(Agent, "agent")


def create_agent(tenant: Tenant, kind: AgentKind) -> Agent:
    """Return the agent of a kind with default settings. Its ID is derived, because agents exist without being stored."""
    digest = blake2b(f"agent {tenant.org} {tenant.mode} {kind}".encode(), digest_size=16).digest()
    return Agent(id=create_id_from_digest("agt", digest), kind=kind)


@dataclass(frozen=True, slots=True)
class AgentTool:
    """Operation of the API that AI agents can call (docs/mcp.md#tools).

    Attributes:
        operation: The ID of the operation.
        scope: The scope that a call requires; None for no scope.
        rate: The rate class of the operation.
        is_destructive: Whether overwritten or deleted data cannot be recovered.
        is_idempotent: Whether a repeated call has no further effect.
        contacts_external_systems: Whether the operation contacts other systems, such as those of vendors (`openWorldHint` in MCP).
        requires_approval: Whether a person should confirm each call.
        input_schema: JSON Schema (2020-12) of the arguments, an object.
        output_schema: JSON Schema of the response, an object; None if it has no body.
    """

    name: str
    operation: str
    title: str
    description: str
    method: str
    path: str
    scope: str | None
    rate: str
    is_read_only: bool
    is_destructive: bool
    is_idempotent: bool
    contacts_external_systems: bool
    requires_approval: bool
    input_schema: Mapping[str, Any]
    output_schema: Mapping[str, Any] | None
