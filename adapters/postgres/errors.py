"""The one seam where PostgreSQL's errors become the domain's."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import errors

from domain.kernel.errors import Conflict, RequestInProgress, Unavailable

_CONSTRAINTS = {
    "runs_open": "The source already has an open run of this stream; wait for it to end.",
    "members_org_email_key_key": "This address is a member already.",
    "push_parts_pkey": "The batch has that part already.",
    "sources_inbound_address": "The inbound address is taken.",
}


@contextmanager
def translated() -> Iterator[None]:
    """Lost connections become Unavailable, known constraints their Conflict; anything else goes on as it is."""
    try:
        yield
    except errors.UniqueViolation as error:
        constraint = error.diag.constraint_name or ""
        if constraint == "idempotency_keys_pkey":
            raise RequestInProgress(retry_after=1) from error
        if constraint in _CONSTRAINTS:
            raise Conflict(_CONSTRAINTS[constraint]) from error
        raise
    except (errors.AdminShutdown, errors.CrashShutdown, errors.CannotConnectNow, errors.TooManyConnections) as error:
        raise Unavailable("The database is restarting.", retry_after=2) from error
    except (errors.DiskFull, errors.ReadOnlySqlTransaction) as error:
        raise Unavailable("The database cannot store anything now.", retry_after=10) from error
    except psycopg.OperationalError as error:
        raise Unavailable("The database is out of reach.", retry_after=2) from error
