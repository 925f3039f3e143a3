"""Column mappings: GET /v1/sources/{id}/mappings; GET /v1/mappings/{id}; POST /v1/mappings/{id}/confirm."""

from functools import partial

from adapters.api_json import mappings as wire
from domain.mappings.model_requests import MODEL_REQUEST_JOB
from domain.mappings.usecases import MappingRequestJob, MappingService
from domain.runs.usecases.service import Replayer
from entrypoints.operations.collection import Collection
from entrypoints.operations.operation import AgentToolSettings, Area, UndoSupport

MAPPINGS = Collection("mappings", wire.MAPPING, "sources")

AREA = Area(
    "mappings",
    "Mappings",
    "Column mappings of a source's files: proposed by runs, confirmed by people.",
    create_service=lambda: MappingService(Replayer()),
    operations=(
        MAPPINGS.list(
            "List a source's mappings",
            "Returns the column mapping of each header set of the source's files, newest first.",
            MappingService.list_mappings,
            path="/v1/sources/{id}/mappings",
            dataset="mappings",
        ),
        MAPPINGS.read(
            "Read a mapping",
            "Returns the field of each column of a header set with the evidence for it, and sample rows of the file.",
        ),
        MAPPINGS.write(
            "confirm",
            "Confirm a mapping",
            "Confirms the column mapping, including the changes in `columns`, if any. A new run then re-imports the newest "
            "snapshot that uses the mapping, or else the newest snapshot of the stream. If a run stopped as "
            "`needs_mapping`, its data is imported in this way. The confirmed mapping applies to further files of the source with these "
            "headers, and to your organisation's other sources in this mode. Confirming again without changes does "
            "nothing. Returns 400 for unknown columns, fields or settings, with the closest names. Returns 422 if two "
            "columns have a field that must be unique, or if required data has no column. Returns 409 while a run of the "
            "stream is open, or if the source is paused, blocked or disabled.",
            MappingService.confirm_mapping,
            body=wire.CONFIRMATION_BODY,
            rate="expensive",
            errors=("conflict", "unprocessable"),
            agent=AgentToolSettings(requires_approval=True),
            undo=UndoSupport(
                "The previous mapping is restored, and the snapshot is re-imported with it.",
                MappingService.undo_confirmation,
            ),
        ),
    ),
    handler_factories={
        MODEL_REQUEST_JOB: partial(MappingRequestJob, build_feed_settings=Replayer().build_feed_settings)
    },
)
