"""Logging as JSON lines, without secrets; repeated records are counted instead of logged."""

import json
import logging
import time
from collections.abc import Callable

import psycopg

from domain.kernel.clock import now
from domain.kernel.errors import Unavailable

_PLAIN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "brief"}
_DEPENDENCY_ERRORS = (Unavailable, ConnectionError, psycopg.OperationalError)
"""Expected failures of dependencies, which are logged without a traceback."""
WINDOW = 60.0
"""Seconds for which repeated records are counted instead of logged."""
BURST = 5
"""Warnings of one template that are logged within a window."""
MOST_TEMPLATES = 500


class JsonLines(logging.Formatter):
    """Formatter of one JSON object per line: time, level, logger, message, the fields of `extra`, and any exception.

    Times are those of domain.kernel.clock, as in the access log.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as a line."""
        line: dict[str, object] = {
            "time": now().isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {name: value for name, value in vars(record).items() if name not in _PLAIN}
        if record.exc_info:
            brief = getattr(record, "brief", False)
            error = record.exc_info[1]
            line["exception"] = f"{type(error).__name__}: {error}" if brief else self.formatException(record.exc_info)
        return json.dumps(line, default=str)


class RepetitionFilter(logging.Filter):
    """Filter that logs the first records of a message template and counts the others (docs/decisions/0063).

    Within a window, a failure of a dependency is logged once, without a traceback, and any other warning BURST times. An
    unexpected error is always logged, because its request id is recorded nowhere else, with one traceback per window.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._seen: dict[tuple[object, ...], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the record is logged."""
        if record.levelno < logging.WARNING:
            return True
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and not isinstance(error, _DEPENDENCY_ERRORS):
            record.brief = self._count((type(error), *_raised_at(error))) > 1
            return True
        record.brief = True
        key = (record.name, record.levelno, record.msg)
        started_at, before = self._seen.get(key, (0.0, 0))
        allowed = 1 if error is not None else BURST
        count = self._count(key)
        if count == 1 and before > allowed:
            record.repeated = before - allowed
            record.repeated_since = round(self._clock() - started_at, 1)
        return count <= allowed

    def _count(self, key: tuple[object, ...]) -> int:
        """Return the record's number within its window."""
        moment = self._clock()
        started_at, count = self._seen.pop(key, (moment, 0))
        if moment - started_at >= WINDOW:
            started_at, count = moment, 0
        while len(self._seen) >= MOST_TEMPLATES:
            del self._seen[next(iter(self._seen))]
        self._seen[key] = (started_at, count + 1)
        return count + 1


def _raised_at(error: BaseException) -> tuple[str, int]:
    """Return file and line that raised the error."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return (trace.tb_frame.f_code.co_filename, trace.tb_lineno) if trace is not None else ("", 0)


def configure(level: str) -> None:
    """Send all logs to standard error as JSON lines."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines())
    handler.addFilter(RepetitionFilter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    logging.getLogger("hypercorn.access").setLevel(logging.WARNING)
