"""Use cases of agents: list them, and change their settings."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import ClassVar

from domain.agents.model import AGENT_NAMES, AUDITED_AGENT_FIELDS, Agent, AgentKind, create_agent
from domain.agents.ports import AgentStore
from domain.audit.resources import SettingsService
from domain.kernel.errors import NotFound
from domain.kernel.paging import Page, PageRequest
from domain.proposals.model import ProposalStatus
from domain.proposals.ports import ProposalStore
from domain.usage.model_budget import require_priced_model
from ports.unit_of_work import Tx


@dataclass(frozen=True, slots=True)
class AgentState:
    """Agent with the number of its proposals by status."""

    agent: Agent
    counts: dict[ProposalStatus, int]


async def load_agent(tx: Tx, kind: AgentKind, *, lock: bool = False) -> Agent:
    """Return the agent of a kind, with the default settings if none are stored."""
    default = create_agent(tx.tenant, kind)
    return await tx[AgentStore].get(default.id, lock=lock) or default


@dataclass(frozen=True)
class AgentService(SettingsService[Agent]):
    """Use cases of the agents of a tenant. An agent is stored when it is first changed, or first examines data.

    Attributes:
        has_price: Returns whether a model has a price (None means the default model). The attribute is None if no model is configured.
    """

    kind: ClassVar = Agent
    audited: ClassVar = AUDITED_AGENT_FIELDS
    has_price: Callable[[str | None], bool] | None

    def _store(self, tx: Tx) -> AgentStore:
        return tx[AgentStore]

    async def get(self, tx: Tx, id: str, *, lock: bool = False) -> Agent:
        """Return an agent. Raises NotFound."""
        for kind in AGENT_NAMES:
            if create_agent(tx.tenant, kind).id == id:
                return await load_agent(tx, kind, lock=lock)
        raise NotFound

    async def list_states(self, tx: Tx, request: PageRequest) -> Page[AgentState]:
        """Return a page of the agents with the numbers of their proposals, in descending order of IDs."""
        states = await self.load_states(tx, [await load_agent(tx, kind) for kind in AGENT_NAMES])
        rows = sorted(states, key=lambda state: state.agent.id, reverse=not request.backwards)
        key = request.key
        if key is not None:
            rows = [row for row in rows if (row.agent.id > key if request.backwards else row.agent.id < key)]
        items, has_more = rows[: request.limit], len(rows) > request.limit
        next_key = items[-1].agent.id if has_more else None
        return Page(tuple(reversed(items) if request.backwards else items), has_more, next_key)

    async def load_states(self, tx: Tx, agents: Sequence[Agent]) -> list[AgentState]:
        """Return agents with the numbers of their proposals."""
        counts = await tx[ProposalStore].count_by_status()
        return [AgentState(agent, {status: n for id, status, n in counts if id == agent.id}) for agent in agents]

    async def _validate(self, tx: Tx, row: Agent, names: Collection[str]) -> Agent:
        if "model" in names and row.model is not None:
            require_priced_model(self.has_price, row.model)
        return row
