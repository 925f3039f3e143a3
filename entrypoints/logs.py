"""Logging as JSON lines; repeated records are counted instead of logged."""

import json
import logging
import time
from collections.abc import Callable

import psycopg

from domain.kernel.clock import now
from domain.kernel.errors import Unavailable

_STANDARD_ATTRIBUTES = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "brief"}
"""Attributes of a log record that are not fields of `extra`."""
_DEPENDENCY_ERRORS = (Unavailable, ConnectionError, psycopg.OperationalError)
"""Errors that mean that a dependency such as the database is unavailable; they are logged without a traceback."""
WINDOW_SECONDS = 60.0
"""Length of a window in seconds, within which repeated records are counted instead of logged."""
MAX_WARNINGS_PER_WINDOW = 5
"""Maximum warnings with the same message template that are logged within a window."""
MAX_TEMPLATES = 500
"""Maximum number of message templates and errors that are counted; the least recent one is removed."""


class JsonLineFormatter(logging.Formatter):
    """Formatter that writes one JSON object per line: time, level, logger, message, the fields of `extra`, and any exception."""

    def format(self, record: logging.LogRecord) -> str:
        """Format the record as one line of JSON."""
        line: dict[str, object] = {
            "time": now().isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {name: value for name, value in vars(record).items() if name not in _STANDARD_ATTRIBUTES}
        if record.exc_info:
            brief = getattr(record, "brief", False)
            error = record.exc_info[1]
            line["exception"] = f"{type(error).__name__}: {error}" if brief else self.formatException(record.exc_info)
        return json.dumps(line, default=str)


class RepetitionFilter(logging.Filter):
    """Filter that passes the first records with the same message template and counts the others (docs/decisions/0063).

    Within WINDOW_SECONDS, the failure of a dependency passes once, without a traceback, and any other warning
    MAX_WARNINGS_PER_WINDOW times. An unexpected error always passes, because its request ID is recorded nowhere else, but its
    traceback only once.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._seen: dict[tuple[object, ...], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the record is logged.

        If records were not logged in the previous window, the first record of the next window states their number
        (`repeated`) and the seconds since the previous window began (`repeated_since`).
        """
        if record.levelno < logging.WARNING:
            return True
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and not isinstance(error, _DEPENDENCY_ERRORS):
            record.brief = self._count_occurrence((type(error), *_find_raise_location(error))) > 1
            return True
        record.brief = True
        key = (record.name, record.levelno, record.msg)
        started_at, before = self._seen.get(key, (0.0, 0))
        allowed = 1 if error is not None else MAX_WARNINGS_PER_WINDOW
        count = self._count_occurrence(key)
        if count == 1 and before > allowed:
            record.repeated = before - allowed
            record.repeated_since = round(self._clock() - started_at, 1)
        return count <= allowed

    def _count_occurrence(self, key: tuple[object, ...]) -> int:
        """Count an occurrence of the message template or error `key`; return the number in the current window."""
        moment = self._clock()
        started_at, count = self._seen.pop(key, (moment, 0))
        if moment - started_at >= WINDOW_SECONDS:
            started_at, count = moment, 0
        while len(self._seen) >= MAX_TEMPLATES:
            del self._seen[next(iter(self._seen))]
        self._seen[key] = (started_at, count + 1)
        return count + 1


def _find_raise_location(error: BaseException) -> tuple[str, int]:
    """Return the file and the line in which the error was raised."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return (trace.tb_frame.f_code.co_filename, trace.tb_lineno) if trace is not None else ("", 0)


def configure_logging(level: str) -> None:
    """Send all logs to standard error as JSON lines."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLineFormatter())
    handler.addFilter(RepetitionFilter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    logging.getLogger("hypercorn.access").setLevel(logging.WARNING)
