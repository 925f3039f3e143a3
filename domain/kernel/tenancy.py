"""Tenants, actors, and the context of a transaction."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tenant:
    """Organisation (`org_…`) in live mode or in test mode, to which each row of data belongs."""

    org: str
    livemode: bool

    @property
    def mode(self) -> str:
        """`live` or `test`."""
        return "live" if self.livemode else "test"


@dataclass(frozen=True, slots=True)
class Actor:
    """User, API key, app, agent or part of the service that performs an action.

    `kind` is user, api_key, app, agent or service. `on_behalf_of` is the user for whom an app or agent acts.
    """

    kind: str
    id: str
    on_behalf_of: str | None = None

    @property
    def responsible(self) -> str:
        """ID of the user for whom the actor acts, or else of the actor itself."""
        return self.on_behalf_of or self.id


@dataclass(frozen=True, slots=True)
class AuditContext:
    """Request or job that a transaction belongs to, for the audit log and events.

    Attributes:
        actor: The originator of the changes.
        operation: The ID of the operation, or the kind of the job.
        request_id: The ID of the request, or None.
        is_reversible: Whether the changes can be undone.
        job_id: The ID of the job, or None.
    """

    actor: Actor
    operation: str
    request_id: str | None = None
    is_reversible: bool = False
    job_id: str | None = None

    @property
    def correlation_id(self) -> str | None:
        """ID of the request or job, which becomes the correlation ID of events that have none."""
        return self.request_id or self.job_id
