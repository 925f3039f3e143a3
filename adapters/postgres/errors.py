"""The one seam where PostgreSQL's errors become the domain's."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import errors

from domain.kernel.errors import Conflict, DomainError, RequestInProgress, Unavailable

CONFLICTS = {
    "members_org_email_key_key": "This address is a member already.",
    "push_parts_pkey": "The batch has that part already.",
}
"""What breaking a unique index means; tables add theirs."""
_RESTARTING = (errors.AdminShutdown, errors.CrashShutdown, errors.CannotConnectNow, errors.TooManyConnections)


def translate(error: BaseException) -> BaseException:
    """Lost connections are Unavailable, known constraints their Conflict; anything else is what it is."""
    if isinstance(error, errors.UniqueViolation):
        return _violation(error)
    if isinstance(error, _RESTARTING):
        return Unavailable("The database is restarting.", retry_after=2)
    if isinstance(error, errors.DiskFull | errors.ReadOnlySqlTransaction):
        return Unavailable("The database cannot store anything now.", retry_after=10)
    if isinstance(error, psycopg.OperationalError):
        return Unavailable("The database is out of reach.", retry_after=2)
    return error


def _violation(error: errors.UniqueViolation) -> DomainError | errors.UniqueViolation:
    constraint = error.diag.constraint_name or ""
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
