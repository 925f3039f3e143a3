"""Log lines: repetitions are counted, outages have no traceback, unexpected errors have one."""

import io
import json
import logging
from typing import Any

import psycopg
import pytest

from domain.kernel.errors import Unavailable
from entrypoints.logs import MAX_TEMPLATES, MAX_WARNINGS_PER_WINDOW, WINDOW_SECONDS, JsonLineFormatter, RepetitionFilter


class CapturingLogger:
    """Separate logger with captured lines and a settable clock."""

    def __init__(self) -> None:
        self.now, self._out = 0.0, io.StringIO()
        handler = logging.StreamHandler(self._out)
        handler.setFormatter(JsonLineFormatter())
        handler.addFilter(RepetitionFilter(lambda: self.now))
        self.logger = logging.getLogger(f"test.{id(self)}")
        self.logger.propagate = False
        self.logger.handlers[:] = [handler]
        self.logger.setLevel("INFO")

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._out.getvalue().splitlines()]

    def fail(self, error: Exception, message: str = "job %s failed", *args: object) -> None:
        try:
            raise error
        except Exception:
            self.logger.exception(message, *args)


@pytest.mark.parametrize("error", [Unavailable("away"), ConnectionResetError(), psycopg.OperationalError("gone")])
def test_an_outage_is_logged_once_per_window_with_its_count(error: Exception) -> None:
    scribe = CapturingLogger()
    for number in range(50):
        scribe.fail(error, "job %s failed", number)
    [line] = scribe.lines
    assert "Traceback" not in line["exception"] and type(error).__name__ in line["exception"]
    scribe.now = WINDOW_SECONDS
    scribe.fail(error, "job %s failed", 51)
    assert [one.get("repeated") for one in scribe.lines] == [None, 49]


def test_an_unexpected_error_is_always_logged_with_one_traceback_per_window() -> None:
    scribe = CapturingLogger()
    for number in range(10):
        scribe.fail(KeyError(number), "unexpected error")
    traced = ["Traceback" in line["exception"] for line in scribe.lines]
    assert traced == [True, *[False] * 9] and scribe.lines[9]["exception"] == "KeyError: 9"
    scribe.now = WINDOW_SECONDS
    scribe.fail(KeyError("x"), "unexpected error")
    assert "Traceback" in scribe.lines[-1]["exception"]


def test_warnings_are_limited_and_informational_lines_are_not() -> None:
    scribe = CapturingLogger()
    for number in range(100):
        scribe.logger.warning("source %s is slow", number)
        scribe.logger.info("request")
    levels = [line["level"] for line in scribe.lines]
    assert (levels.count("warning"), levels.count("info")) == (MAX_WARNINGS_PER_WINDOW, 100)
    scribe.logger.warning("something else")
    assert scribe.lines[-1]["message"] == "something else"


def test_kinds_are_bounded() -> None:
    kept = RepetitionFilter()
    for number in range(5_000):
        kept.filter(logging.makeLogRecord({"name": "x", "levelno": logging.WARNING, "msg": f"kind {number}"}))
    assert len(kept._seen) <= MAX_TEMPLATES
