"""JSON of runs (docs/conventions.md#run)."""

from adapters.wire.resource import Body, Resource, into
from domain.catalogue.model import Stream
from domain.ingestion.model import UnmappedReason
from domain.kernel.problems import ProblemKind
from domain.kernel.resource import computed, optional
from domain.kernel.schema import (
    array,
    boolean,
    enum,
    failure,
    id_of,
    integer,
    map_of,
    named,
    nullable,
    record,
    strict_object,
    text,
    timestamp,
)
from domain.runs.model import KEPT_COLUMNS, Run, RunStage, RunStatus, RunTrigger, StartRun, WaitingReason

STREAM = named("run_stream", enum(*Stream))
PROBLEM = named(
    "row_problem",
    record(
        None,
        {
            "sheet": text("Prices"),
            "line": integer(17, least=1),
            "column": text("Width"),
            "external_id": text("LM-1001", longest=2000, description="The item's key in the source."),
            "field": text("variant.dimensions.width"),
            "problem": enum(*ProblemKind),
            "detail": text("`approx. 80` is not a measure.", longest=2000),
        },
        optional=("sheet", "line", "column", "external_id"),
    ),
)
COLUMNS = computed(
    array(
        record(
            None,
            {
                "sheet": text("Prices", description="Omitted if the format has no sheets."),
                "header": text("Item No.", shortest=0),
                "position": integer(0, least=0, description="The column's position, from 0."),
                "field": text("sku", description="Omitted for a column that is not imported."),
                "reason": enum(*UnmappedReason),
            },
            optional=("sheet", "field", "reason"),
        ),
        most=KEPT_COLUMNS,
        description="The field of each column, sheet by sheet, or the reason why it has none. stats.columns counts all columns, "
        "stats.columns_unmapped those without a field.",
    ),
    lambda run, _: run.columns,
)
WAITING = record(
    None,
    {
        "reason": enum(*WaitingReason),
        "until": timestamp(),
        "attempt": integer(1, least=1),
        "detail": text("The source requests a retry in 60 seconds.", longest=2000),
    },
    description="Present while the run waits.",
)
RUN = Resource[Run](
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
        "error": optional(failure("fetch_failed", "The server answered 503.", "Present if the run failed.")),
        "waiting": optional(WAITING),
        "problems": array(
            PROBLEM,
            description="Cells and records that could not be read, up to a limit; stats.problems counts all of them.",
        ),
        "columns": COLUMNS,
        "mappings": array(id_of("map"), description="The column mappings that the run used."),
        "created_at": timestamp(),
        "started_at": optional(timestamp()),
        "finished_at": optional(timestamp()),
    },
    path="/v1/runs/{id}",
)
OUTCOME = {
    "outcome": record(
        None,
        {
            "stats": map_of({"type": "integer"}, {"rows": 3, "offers_changed": 2, "problems": 1}),
            "changes": integer(
                2, least=0, description="Number of changes that would be made; the preview lists the first 100."
            ),
            "told": integer(2, least=0),
        },
        description="The counts that the run would have.",
    )
}
"""Additional preview of a push or a file in `explain`, besides changes, events and warnings."""
START = Body(
    strict_object(
        {
            "stream": STREAM,
            "accept_shrink": boolean(False, "Permit a complete run to withdraw more items than the removal limit."),
        }
    ),
    into(StartRun),
    required=False,
)
