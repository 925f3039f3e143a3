"""Port to the stored settings of agents."""

from typing import Protocol

from domain.agents.model import Agent
from ports.unit_of_work import Store


class AgentStore(Store[Agent], Protocol):
    """Agents whose settings are stored, within a tenant's transaction."""

    async def record_run(self, agent: Agent) -> None:
        """Store the time of the transaction as the agent's last run; store the agent if it is not stored."""
        ...
