"""Who owns what is read and written: an organisation in one of its two modes."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tenant:
    """An organisation (`org_…`) in live mode or in its sandbox; every row belongs to exactly one."""

    org: str
    livemode: bool

    @property
    def mode(self) -> str:
        """`live` or `test`."""
        return "live" if self.livemode else "test"


@dataclass(frozen=True, slots=True)
class Actor:
    """Who acts. `kind`: user, api_key, app, agent or service; `on_behalf_of` the user an app or agent acts for."""

    kind: str
    id: str
    on_behalf_of: str | None = None


@dataclass(frozen=True, slots=True)
class AuditContext:
    """One request or job as the audit log and events name it; `reversible`: what it changes can be undone through the audit log."""

    actor: Actor
    operation: str
    request_id: str | None = None
    reversible: bool = False
