"""Translation of PostgreSQL's errors into the domain's."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import errors

from domain.kernel.errors import Conflict, DomainError, RequestInProgress, Unavailable

CONFLICTS = {
    "members_org_email_key_key": "This address is a member already.",
    "oauth_grants_in_force": "The app was granted something at the same moment; try again.",
    "sso_domains_proven": "Another organisation has proven this domain.",
    "push_parts_pkey": "The batch has that part already.",
}
"""Messages for violations of unique indexes; tables add theirs."""
_OF_A_SHARD = re.compile(r"_\d+$")
"""What a cluster adds to the name of a constraint."""
_NAMED = re.compile('"([^"]+)"$')
"""Of an error that another node heard of, only the words come along."""
_RESTARTING = (errors.AdminShutdown, errors.CrashShutdown, errors.CannotConnectNow, errors.TooManyConnections)


class StaleRoute(Unavailable):
    """A node passed a tenant's statement on to another one, where it failed: nothing was read or written.

    The tenant has moved, or the statement is one that Citus cannot execute on the tenant's shard alone; the pool logs which.
    """

    def __init__(self) -> None:
        super().__init__("The request could not be executed on the organisation's server; repeat it.", retry_after=1)


def is_stale(error: BaseException) -> bool:
    """Return whether a tenant's statement was passed on to another node, where it fails because its policies miss their settings.

    Or the role of tenants may not log in there, which the server reports itself (errors of a lost connection have no code).
    """
    if isinstance(error, errors.UndefinedObject):
        return '"joinery.' in str(error)
    return isinstance(error, psycopg.Error) and (error.sqlstate or "").startswith("08")


def may_be_stale(error: BaseException) -> bool:
    """Return whether that may be so: COPY to another node is refused as not supported under row-level security."""
    return is_stale(error) or isinstance(error, errors.FeatureNotSupported)


def translate(error: BaseException) -> BaseException:
    """Return Unavailable for lost connections, a Conflict for known constraints, else the error itself."""
    if isinstance(error, errors.UniqueViolation):
        return _violation(error)
    if isinstance(error, _RESTARTING):
        return Unavailable("The database is restarting.", retry_after=2)
    if isinstance(error, errors.DiskFull | errors.ReadOnlySqlTransaction):
        return Unavailable("The database cannot store anything now.", retry_after=10)
    if isinstance(error, errors.DeadlockDetected):
        return Unavailable("The request and another one blocked each other; repeat it.", retry_after=1)
    if isinstance(error, psycopg.OperationalError):
        return Unavailable("The database is out of reach.", retry_after=2)
    return error


def _violation(error: errors.UniqueViolation) -> DomainError | errors.UniqueViolation:
    named = error.diag.constraint_name or "".join(_NAMED.findall(error.diag.message_primary or ""))
    constraint = _OF_A_SHARD.sub("", named)
    if constraint == "idempotency_keys_pkey":
        return RequestInProgress(retry_after=1)
    if constraint in CONFLICTS:
        return Conflict(CONFLICTS[constraint])
    return error


@contextmanager
def translated() -> Iterator[None]:
    """Translate what is raised inside."""
    try:
        yield
    except psycopg.Error as error:
        known = translate(error)
        if known is error:
            raise
        raise known from error
