"""Translation of PostgreSQL errors to domain errors."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import errors

from domain.kernel.errors import Conflict, DomainError, RequestInProgress, Unavailable

CONFLICTS = {
    "members_org_email_key_key": "A member with this address already exists.",
    "oauth_grants_in_force": "Another request granted the app access at the same time. Try again.",
    "sso_domains_proven": "Another organisation has proven this domain.",
    "push_parts_pkey": "The batch already has this part.",
}
"""Messages for violations of unique constraints; table modules add theirs."""
_SHARD_SUFFIX = re.compile(r"_\d+$")
"""Suffix that a cluster appends to the names of a shard's constraints."""
_QUOTED_NAME = re.compile('"([^"]+)"$')
"""Constraint in an error message; errors forwarded by another node have no diagnostic fields."""
_RESTARTING = (errors.AdminShutdown, errors.CrashShutdown, errors.CannotConnectNow, errors.TooManyConnections)


class StaleRoute(Unavailable):
    """Failure of a tenant's statement that a node forwarded to another node; nothing was read or written.

    Either the tenant has moved, or Citus cannot execute the statement on the tenant's shard alone; the pool logs which.
    """

    def __init__(self) -> None:
        super().__init__("The request could not be executed on the organisation's server. Repeat it.", retry_after=1)


def is_stale(error: BaseException) -> bool:
    """Return whether the error shows that a tenant's statement was forwarded to another node.

    There it fails because the settings of the row-level policies are missing, or because the tenants' role cannot log in, which the
    server reports with a code (a lost connection has none).
    """
    if isinstance(error, errors.UndefinedObject):
        return '"joinery.' in str(error)
    return isinstance(error, psycopg.Error) and (error.sqlstate or "").startswith("08")


def may_be_stale(error: BaseException) -> bool:
    """Return whether the route may be stale: COPY to another node fails as not supported under row-level security."""
    return is_stale(error) or isinstance(error, errors.FeatureNotSupported)


def translate(error: BaseException) -> BaseException:
    """Return Unavailable for connection and resource errors, a domain error for unique violations, else the error itself."""
    if isinstance(error, errors.UniqueViolation):
        return _violation(error)
    if isinstance(error, _RESTARTING):
        return Unavailable("The database is restarting.", retry_after=2)
    if isinstance(error, errors.DiskFull | errors.ReadOnlySqlTransaction):
        return Unavailable("The database cannot store data at the moment.", retry_after=10)
    if isinstance(error, errors.DeadlockDetected):
        return Unavailable("The request and another one blocked each other. Repeat it.", retry_after=1)
    if isinstance(error, psycopg.OperationalError):
        return Unavailable("The database cannot be reached.", retry_after=2)
    return error


def _violation(error: errors.UniqueViolation) -> DomainError | errors.UniqueViolation:
    name = error.diag.constraint_name or "".join(_QUOTED_NAME.findall(error.diag.message_primary or ""))
    constraint = _SHARD_SUFFIX.sub("", name)
    if constraint == "idempotency_keys_pkey":
        return RequestInProgress(retry_after=1)
    if constraint in CONFLICTS:
        return Conflict(CONFLICTS[constraint])
    return error


@contextmanager
def translated() -> Iterator[None]:
    """Translate database errors that are raised inside the context."""
    try:
        yield
    except psycopg.Error as error:
        translation = translate(error)
        if translation is error:
            raise
        raise translation from error
