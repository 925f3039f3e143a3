"""Translation of PostgreSQL errors to domain errors."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import errors

from domain.kernel.errors import Conflict, DomainError, RequestInProgress, Unavailable

CONFLICT_MESSAGES = {
    "members_org_email_key_key": "A member with this email address already exists.",
    "oauth_grants_in_force": "Another request granted the app access at the same time. Try again.",
    "sso_domains_proven": "Another organisation has already verified this domain.",
    "push_parts_pkey": "Another request added a part to the batch at the same time. Try again.",
}
"""Messages for violations of unique constraints, by constraint; the declarations of tables add further ones."""
_SHARD_SUFFIX = re.compile(r"_\d+$")
"""Suffix that a cluster appends to the names of a shard's constraints."""
_QUOTED_NAME = re.compile('"([^"]+)"$')
"""Name of a constraint in an error message, for errors that another node forwarded without diagnostic fields."""
_SERVER_ERRORS = (errors.AdminShutdown, errors.CrashShutdown, errors.CannotConnectNow, errors.TooManyConnections)


class StaleRoute(Unavailable):
    """Failure of a tenant's SQL statement on a node that does not store the tenant; nothing was read or written.

    Either the tenant has moved, or Citus cannot execute the statement on the tenant's shard alone; the pool's log
    states the cause.
    """

    def __init__(self) -> None:
        super().__init__("The organisation's database could not execute the request. Try again.", retry_after=1)


def was_forwarded(error: BaseException) -> bool:
    """Return whether the error shows that a node forwarded a tenant's SQL statement to another node, where it failed.

    The statement fails there because the settings for the row-level policies are missing, or because the tenants' role
    cannot log in.
    """
    if isinstance(error, errors.UndefinedObject):
        return '"joinery.' in str(error)
    # the server reports a refused login with an error code, which a lost connection does not have
    return isinstance(error, psycopg.Error) and (error.sqlstate or "").startswith("08")


def may_have_been_forwarded(error: BaseException) -> bool:
    """Return whether a node may have forwarded a tenant's SQL statement to another node, where it failed.

    In addition to the errors of `was_forwarded`, these are errors of unsupported features, which may have other causes.
    """
    # COPY that is forwarded fails as "not supported" under row-level security
    return was_forwarded(error) or isinstance(error, errors.FeatureNotSupported)


def translate_error(error: BaseException) -> BaseException:
    """Translate a database error to an error of the domain.

    Returns:
        Unavailable for errors of connection and resources, a conflict for violations of unique constraints, else
            `error`.
    """
    if isinstance(error, errors.UniqueViolation):
        return _translate_violation(error)
    if isinstance(error, _SERVER_ERRORS):
        return Unavailable("The database is restarting. Try again.", retry_after=2)
    if isinstance(error, errors.DiskFull | errors.ReadOnlySqlTransaction):
        return Unavailable("The database cannot store data at the moment. Try again later.", retry_after=10)
    if isinstance(error, errors.DeadlockDetected):
        return Unavailable("A deadlock with another request occurred. Try again.", retry_after=1)
    if isinstance(error, psycopg.OperationalError):
        return Unavailable("The database is unavailable. Try again.", retry_after=2)
    return error


def _translate_violation(error: errors.UniqueViolation) -> DomainError | errors.UniqueViolation:
    name = error.diag.constraint_name or "".join(_QUOTED_NAME.findall(error.diag.message_primary or ""))
    constraint = _SHARD_SUFFIX.sub("", name)
    if constraint == "idempotency_keys_pkey":
        return RequestInProgress(retry_after=1)
    if constraint in CONFLICT_MESSAGES:
        return Conflict(CONFLICT_MESSAGES[constraint])
    return error


@contextmanager
def translate_errors() -> Iterator[None]:
    """Translate database errors that are raised while the context is open, as `translate_error` does."""
    try:
        yield
    except psycopg.Error as error:
        translation = translate_error(error)
        if translation is error:
            raise
        raise translation from error
