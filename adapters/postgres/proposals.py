"""Agents and their proposals in PostgreSQL."""

from collections.abc import Sequence
from datetime import datetime

from adapters.postgres.session import encode_texts
from adapters.postgres.stores import CoordinatorStore, fetch_all, load_statements
from adapters.postgres.table import MultiColumnCodec, Table, TableStore
from domain.agents.model import Agent
from domain.agents.ports import AgentStore
from domain.kernel.tenancy import Tenant
from domain.proposals.model import Proposal, ProposalStatus, Subject
from domain.proposals.ports import ProposalStore, ProposalUpkeep

AGENTS = Table(
    Agent,
    "agents",
    conflicts={"agents_pkey": "Another request changed the agent at the same time. Read the agents and try again."},
)
PROPOSALS = Table(
    Proposal,
    "proposals",
    special_codecs={"subject": MultiColumnCodec(Subject, {"object": "subject_type", "id": "subject"})},
    conflicts={"proposals_waiting": "A newer proposal about the same subject waits for a decision."},
)
SQL = load_statements("proposals", proposal=PROPOSALS.build_column_list())


class PostgresAgentStore(TableStore[Agent], AgentStore):
    """Agents of the tenant whose settings are stored."""

    _sql, _table = SQL, AGENTS

    async def record_run(self, agent: Agent) -> None:
        await self._run(
            "record_run",
            id=agent.id,
            kind=agent.kind,
            autonomy=agent.autonomy,
            daily_budget_micros=agent.daily_budget_micros,
            version=agent.version,
        )


class PostgresProposalStore(TableStore[Proposal], ProposalStore):
    """Proposals of the tenant."""

    _sql, _table = SQL, PROPOSALS
    lock_waiting = fetch_all(PROPOSALS.build_from_row)
    lock_expired = fetch_all(PROPOSALS.build_from_row)
    list_latest = fetch_all(
        PROPOSALS.build_from_row,
        values=lambda agent, subjects: {"agent": agent, "subjects": encode_texts(subjects)},
    )

    async def count_by_status(self) -> Sequence[tuple[str, ProposalStatus, int]]:
        return [
            (agent, ProposalStatus(status), number)
            for agent, status, number in await self._fetch_rows("count_by_status")
        ]


class PostgresProposalUpkeep(CoordinatorStore, ProposalUpkeep):
    """Proposals of all tenants, node by node."""

    _sql = SQL

    async def list_tenants_with_expired(self, now: datetime, limit: int) -> Sequence[Tenant]:
        return [Tenant(*row) for row in await self._gather("list_tenants_with_expired", now=now, limit=limit)]

    async def delete_decided(self, before: datetime) -> None:
        await self._delete_by_org("list_orgs_with_decided", "delete_decided", before=before)
