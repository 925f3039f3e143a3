"""The JSON of runs (specification, Run)."""

from collections.abc import Mapping
from typing import Any, Final

from adapters.wire.schema import (
    array,
    boolean,
    enum,
    id_of,
    integer,
    list_of,
    map_of,
    nullable,
    present,
    record,
    strict_object,
    text,
    timestamp,
)
from domain.catalogue.model import Stream
from domain.kernel.plain import instant
from domain.kernel.problems import Problem, ProblemKind
from domain.runs.model import Run, RunStage, RunStatus, RunTrigger, WaitingReason

STREAM: Final = enum(*Stream)
PROBLEM: Final = record(
    None,
    {
        "sheet": text("Prices"),
        "line": integer(17, least=1),
        "column": text("Width"),
        "field": text("variant.dimensions.width"),
        "problem": enum(*ProblemKind),
        "detail": text("The text `approx. 80` is no measure.", longest=2000),
    },
    optional=("sheet", "line", "column"),
)
WAITING: Final = record(
    None,
    {
        "reason": enum(*WaitingReason),
        "until": timestamp(),
        "attempt": integer(1, least=1),
        "detail": text("The source asks to come back in 60 seconds.", longest=2000),
    },
    description="Present while the run waits.",
)
RUN: Final = record(
    "run",
    {
        "id": id_of("run"),
        "source": id_of("src"),
        "trigger": enum(*RunTrigger),
        "stream": STREAM,
        "status": enum(*RunStatus),
        "stage": enum(*RunStage),
        "served_by": nullable(text("admin_graphql", description="Null for a connector with one API.")),
        "stats": map_of({"type": "integer"}, {"rows": 1200, "products_created": 14, "problems": 3}),
        "error": record(
            None,
            {"code": text("fetch_failed"), "message": text("The server answered 503.", longest=2000)},
            description="Present when the run failed.",
        ),
        "waiting": WAITING,
        "problems": array(PROBLEM, description="What could not be read; stats.problems counts them all."),
        "created_at": timestamp(),
        "started_at": timestamp(),
        "finished_at": timestamp(),
    },
    optional=("error", "waiting", "started_at", "finished_at"),
)
RUNS: Final = list_of(RUN)
START: Final = strict_object(
    {
        "stream": STREAM,
        "accept_shrink": boolean(False, "Let a complete run withdraw as much as it finds gone."),
    }
)


def to_wire(run: Run) -> dict[str, Any]:
    """A run."""
    waiting, error = run.waiting, run.error
    wire: dict[str, Any] = {
        "object": "run",
        "id": run.id,
        "source": run.source,
        "trigger": run.trigger,
        "stream": run.stream,
        "status": run.status,
        "stage": run.stage,
        "served_by": run.served_by,
        "stats": dict(run.stats),
        "problems": [problem_to_wire(problem) for problem in run.problems],
        "created_at": instant(run.created_at),
    }
    return wire | present(
        error={"code": error.code, "message": error.message} if error else None,
        waiting=waiting
        and {
            "reason": waiting.reason,
            "until": instant(waiting.until),
            "attempt": waiting.attempt,
            "detail": waiting.detail,
        },
        started_at=run.started_at and instant(run.started_at),
        finished_at=run.finished_at and instant(run.finished_at),
    )


def problem_to_wire(problem: Problem) -> Mapping[str, Any]:
    """A problem found while reading."""
    place = present(sheet=problem.sheet, line=problem.line, column=problem.column)
    return place | {"field": problem.field, "problem": problem.problem, "detail": problem.detail}
