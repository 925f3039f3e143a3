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
    "What the columns of a source's files mean: proposed by runs, confirmed by people.",
    service=lambda: MappingService(Replayer()),
    operations=(
        MAPPINGS.list(
            "List a source's mappings",
            "What the columns mean of each header set that the source's files have had, newest first.",
            MappingService.list_mappings,
            path="/v1/sources/{id}/mappings",
            dataset="mappings",
        ),
        MAPPINGS.read(
            "Read a mapping",
            "What each column of one header set means and what that rests on, with a few rows of the file.",
        ),
        MAPPINGS.write(
            "confirm",
            "Confirm a mapping",
            "Confirms what the columns mean, with changes, and reads the newest snapshot of the source by it: a "
            "run that stopped as needs_mapping goes on from there. What is confirmed serves the source's next files of these "
            "headers, and the other sources of your organisation in this mode. Confirming again without changes starts nothing. "
            "Columns, fields or settings that there are not: 400, with the closest names. A field that two columns cannot both "
            "have, or no column that names the items: 422. While a run is open, or the source is not active: 409.",
            MappingService.confirm,
            body=wire.CONFIRM,
            rate="expensive",
            errors=("conflict", "unprocessable"),
            agent=Tool(approval=True),
            undo=Undoing("The mapping is as before, and the snapshot is read by it again.", MappingService.take_back),
        ),
    ),
    jobs={ASK: partial(MappingAsking, settings=Replayer().settings)},
)
