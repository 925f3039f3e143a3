"""Tenants, actors and the context of units of work."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tenant:
    """An organisation (`org_…`) in live mode or test mode; every row belongs to exactly one."""

    org: str
    livemode: bool

    @property
    def mode(self) -> str:
        """`live` or `test`."""
        return "live" if self.livemode else "test"


@dataclass(frozen=True, slots=True)
class Actor:
    """The originator of an action.

    `kind`: user, api_key, app, agent or service; `on_behalf_of` is the user for whom an app or agent acts.
    """

    kind: str
    id: str
    on_behalf_of: str | None = None


@dataclass(frozen=True, slots=True)
class AuditContext:
    """The request or job behind a unit of work, as the audit log and events name it.

    Attributes:
        actor: Who acts.
        operation: The operation's id, or the job's kind.
        request_id: The request, where there is one.
        reversible: Whether the audit log can undo what it changes.
        job_id: The job, where one acts.

    """

    actor: Actor
    operation: str
    request_id: str | None = None
    reversible: bool = False
    job_id: str | None = None

    @property
    def correlation_id(self) -> str | None:
        """The request or job that events name as their cause, unless a run caused them."""
        return self.request_id or self.job_id
