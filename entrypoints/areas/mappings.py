"""GET /v1/sources/{id}/mappings; GET /v1/mappings/{id}; POST /v1/mappings/{id}/confirm."""

from functools import partial

from adapters.wire import mappings as wire
from domain.mappings.asking import ASK
from domain.mappings.usecases import MappingAsking, MappingService
from domain.runs.usecases.service import Replayer
from entrypoints.operations.collection import Collection
from entrypoints.operations.operation import Area, Tool, Undoing

MAPPINGS = Collection("mappings", wire.MAPPING, "sources")

AREA = Area(
    "mappings",
    "Mappings",
    "Column mappings of a source's files: proposed by runs, confirmed by people.",
    service=lambda: MappingService(Replayer()),
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
            "Confirms the column mapping, with changes, and re-imports the source's newest snapshot with it: a run that stopped as "
            "needs_mapping continues. The confirmed mapping applies to further files of the source with these headers, and to your "
            "organisation's other sources in this mode. Confirming again without changes does nothing. Unknown columns, fields or "
            "settings: 400, with the closest names. A field assigned to two columns that must be unique, or no column with an item key: "
            "422. While a run is open, or if the source is not active: 409.",
            MappingService.confirm,
            body=wire.CONFIRM,
            rate="expensive",
            errors=("conflict", "unprocessable"),
            agent=Tool(approval=True),
            undo=Undoing(
                "The previous mapping is restored, and the snapshot is re-imported with it.", MappingService.take_back
            ),
        ),
    ),
    jobs={ASK: partial(MappingAsking, settings=Replayer().settings)},
)
