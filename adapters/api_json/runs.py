"""JSON of runs (docs/conventions.md#run)."""

from adapters.api_json.resource import Body, JsonResource, create_decoder
from domain.catalogue.model import Stream
from domain.ingestion.model import UnmappedReason
from domain.kernel.problems import ProblemKind
from domain.kernel.resource import computed, optional
from domain.kernel.schema import (
    array,
    boolean,
    enum,
    failure,
    id_schema,
    integer,
    map_schema,
    nullable,
    response_object,
    strict_object,
    text,
    timestamp,
    with_title,
)
from domain.runs.model import (
    MAX_LISTED_COLUMNS,
    MAX_STORED_PROBLEMS,
    Run,
    RunStage,
    RunStatus,
    RunTrigger,
    StartRun,
    WaitingReason,
)

STREAM = with_title("run_stream", enum(*Stream))
PROBLEM = with_title(
    "row_problem",
    response_object(
        None,
        {
            "sheet": text("Prices"),
            "line": integer(17, minimum=1),
            "column": text("Width"),
            "external_id": text("LM-1001", max_length=2000, description="The item's key in the source."),
            "field": text("variant.dimensions.width"),
            "problem": enum(*ProblemKind),
            "detail": text("`approx. 80` is not a measure.", max_length=2000),
            "value": text("approx. 80", description="The text of the cell, if it is short."),
            "ignored": boolean(True, "Present if a person ignores the problem. `stats.problems_ignored` counts them."),
        },
        optional=("sheet", "line", "column", "external_id", "value", "ignored"),
    ),
)
COLUMNS = computed(
    array(
        response_object(
            None,
            {
                "sheet": text("Prices", description="Omitted if the format has no sheets."),
                "header": text("Item No.", min_length=0),
                "position": integer(0, minimum=0, description="The column's position, from 0."),
                "field": text("sku", description="Omitted for a column that is not imported."),
                "reason": enum(*UnmappedReason),
            },
            optional=("sheet", "field", "reason"),
        ),
        max_items=MAX_LISTED_COLUMNS,
        description=f"The first {MAX_LISTED_COLUMNS} columns, each with its field or the reason why the column has no field. "
        "`stats.columns` counts all columns, `stats.columns_unmapped` the columns without a field.",
    ),
    lambda run, _: run.columns,
)
WAITING = response_object(
    None,
    {
        "reason": enum(*WaitingReason),
        "until": timestamp(),
        "attempt": integer(1, minimum=1),
        "detail": text("The source requests a retry in 60 seconds.", max_length=2000),
    },
    description="Why the run waits. Present only while it waits.",
)
RUN = JsonResource[Run](
    "run",
    {
        "id": id_schema("run"),
        "source": id_schema("src"),
        "trigger": enum(*RunTrigger),
        "stream": STREAM,
        "status": enum(*RunStatus),
        "stage": enum(*RunStage),
        "served_by": nullable(
            text(
                "admin_graphql",
                description="Name of the source's API that returned the data; null if the connector uses only one API.",
            )
        ),
        "stats": map_schema({"type": "integer"}, {"rows": 1200, "products_created": 14, "problems": 3}),
        "error": optional(failure("fetch_failed", "The server returned 503.", "Present if the run failed.")),
        "waiting": optional(WAITING),
        "problems": array(
            PROBLEM,
            description=f"The first {MAX_STORED_PROBLEMS:,} problems with cells and records of the feed. `stats.problems` counts all problems.",
        ),
        "columns": COLUMNS,
        "mappings": array(id_schema("map"), description="The column mappings that the run used."),
        "created_at": timestamp(),
        "started_at": optional(timestamp()),
        "finished_at": optional(timestamp()),
    },
    path="/v1/runs/{id}",
)
RUN_PREVIEW_PROPERTIES = {
    "outcome": response_object(
        None,
        {
            "stats": map_schema({"type": "integer"}, {"rows": 3, "offers_changed": 2, "problems": 1}),
            "changes": integer(
                2,
                minimum=0,
                description="Number of changes that the run would make to the catalogue. The preview lists the first 100 of these changes.",
            ),
            "told": integer(2, minimum=0),
        },
        description="The `stats` that the run would have, and the number of its changes to the catalogue.",
    )
}
"""Property `outcome` that previews of a push or an upload have in addition to those of all previews."""
START_RUN_BODY = Body(
    strict_object(
        {
            "stream": STREAM,
            "accept_shrink": boolean(False, "Permit a complete run to withdraw more items than the removal limit."),
        }
    ),
    create_decoder(StartRun),
    is_required=False,
)
