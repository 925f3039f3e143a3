"""Vendors' catalogues: GET /v1/catalogue and below; POST /v1/catalogue/publish, /withdraw and /visibility."""

from typing import TypeAlias

from adapters.api_json import publishing as wire
from adapters.api_json.products import VISIBILITY
from domain.catalogue.publication import ASSESS_CATALOGUE, REFRESH_SOURCE
from domain.kernel.schema import text
from domain.orgs.model import VENDOR
from domain.publishing.model import (
    EXECUTE_PUBLICATION,
    WRITE_VIEW,
    VariantFilter,
)
from domain.publishing.usecases.execution import CatalogueAssessor, PublicationExecutor, SourceRefresher, ViewWriter
from domain.publishing.usecases.service import PublishingService
from entrypoints.operations.collection import Collection
from entrypoints.operations.operation import (
    AgentToolSettings,
    Area,
    Read,
    ReadContext,
    Reply,
    UndoSupport,
    Write,
    WriteContext,
)

PublishingReadContext: TypeAlias = ReadContext[PublishingService]
PublishingWriteContext: TypeAlias = WriteContext[PublishingService]


async def read_catalogue(context: PublishingReadContext) -> Reply:
    """Return the vendor's catalogue."""
    return context.build_resource_reply(wire.VENDOR_CATALOGUE, await context.service.get_catalogue(context.tx))


async def publish(context: PublishingWriteContext) -> Reply:
    """Queue a run that lists products."""
    run = await context.service.publish(context.tx, context.command)
    return context.build_created_reply(wire.PUBLICATION_RUN, run)


async def withdraw(context: PublishingWriteContext) -> Reply:
    """Queue a run that withdraws products."""
    run = await context.service.withdraw(context.tx, context.command)
    return context.build_created_reply(wire.PUBLICATION_RUN, run)


async def set_visibility(context: PublishingWriteContext) -> Reply:
    """List or hide products."""
    change = await context.service.set_visibility(context.tx, context.command)
    return context.build_resource_reply(wire.VISIBILITY_CHANGE, change)


VARIANTS = Collection(
    "publishing", wire.CATALOGUE_VARIANT, "catalogue", list_path="/v1/catalogue/variants", noun="variant"
)
IMAGES = Collection("publishing", wire.CATALOGUE_IMAGE, "catalogue", list_path="/v1/catalogue/images", noun="image")
RUNS = Collection("publishing", wire.PUBLICATION_RUN, "catalogue", noun="run")
_VARIANT_FILTERS = {
    "visibility": VISIBILITY,
    "q": text(
        "oak sideboard", min_length=2, max_length=100,
        description="Variants whose product's title and brand contain every word, or whose SKU is the text.",
    ),
    "missing": wire.MISSING_FIELD | {"description": "Variants that lack the field."},
}  # fmt: skip

AREA = Area(
    "publishing",
    "Publishing",
    "The catalogue of a vendor: what is published, what is missing, and which products are visible.",
    create_service=PublishingService,
    operations=(
        Read(
            id="publishing.read_catalogue",
            path="/v1/catalogue",
            summary="Read your catalogue",
            description="Returns the state of the vendor's catalogue: numbers of products, completeness, and what publishing "
            "requires. Completeness is assessed after runs and publications.",
            handler=read_catalogue,
            scope="catalogue:read",
            organisation_kind=VENDOR,
            reply=wire.VENDOR_CATALOGUE.schema,
        ),
        IMAGES.list(
            "List images of your catalogue",
            "Returns the stored images that products use, newest first.",
            PublishingService.list_images,
            organisation_kind=VENDOR,
            no_dataset_reason="The products of the export have the same images.",
        ),
        RUNS.list(
            "List publication runs",
            "Returns the runs that published or withdrew products, newest first.",
            no_dataset_reason="The audit log of the export has the runs.",
            organisation_kind=VENDOR,
        ),
        RUNS.read(
            "Read a publication run",
            "Returns the progress and the result of a publication run.",
            organisation_kind=VENDOR,
        ),
        Write(
            id="publishing.publish",
            method="POST",
            path="/v1/catalogue/publish",
            summary="Publish products",
            description="Queues a run that lists products, all if `products` is omitted. Every organisation can then read them "
            "with the field groups `base` and `retail`, and organisations with a licence further groups. Hidden products stay "
            "hidden. Requires a verified vendor profile and an accepted data agreement. With `Service-Dry-Run: explain`, the "
            "response states what would become visible, to whom, and with which fields. Products imported later are unlisted "
            "until they are published. Returns 409 while another run is open.",
            handler=publish,
            scope="catalogue:write",
            organisation_kind=VENDOR,
            body=wire.PUBLICATION_REQUEST,
            reply=wire.PUBLICATION_RUN.schema,
            preview={"publication": wire.PUBLICATION_PREVIEW},
            status=202,
            errors=("conflict", "brand_unverified"),
            agent=AgentToolSettings(requires_approval=True),
            undo="Other organisations may have read the products. Withdraw them instead.",
        ),
        Write(
            id="publishing.withdraw",
            method="POST",
            path="/v1/catalogue/withdraw",
            summary="Withdraw products",
            description="Queues a run that makes listed products unlisted, all if `products` is omitted. Returns 409 while another "
            "run is open.",
            handler=withdraw,
            scope="catalogue:write",
            organisation_kind=VENDOR,
            body=wire.PUBLICATION_REQUEST,
            reply=wire.PUBLICATION_RUN.schema,
            status=202,
            errors=("conflict",),
            agent=AgentToolSettings(requires_approval=True),
            undo="Publish the products again instead.",
        ),
        VARIANTS.list(
            "List variants of your catalogue",
            "Returns the variants of the vendor's catalogue with what retailers need and is missing, newest first. With "
            "filters, a page can have fewer items than `limit` although more follow.",
            PublishingService.list_variants,
            create_filter=VariantFilter,
            organisation_kind=VENDOR,
            query=_VARIANT_FILTERS,
            no_dataset_reason="The products of the export have the same variants.",
        ),
        Write(
            id="publishing.set_visibility",
            method="POST",
            path="/v1/catalogue/visibility",
            summary="List or hide products",
            description="Lists or hides 1 to 1,000 products of a published catalogue. A hidden product leaves the network at once. "
            "Returns 409 if the catalogue is not published, or if data of a product must not leave the organisation.",
            handler=set_visibility,
            scope="catalogue:write",
            organisation_kind=VENDOR,
            body=wire.VISIBILITY_REQUEST,
            reply=wire.VISIBILITY_CHANGE.schema,
            errors=("conflict", "brand_unverified", "unprocessable"),
            agent=AgentToolSettings(requires_approval=True),
            undo=UndoSupport("The products get their previous visibility.", PublishingService.undo_visibility),
        ),
    ),
    handler_factories={
        EXECUTE_PUBLICATION: PublicationExecutor,
        WRITE_VIEW: ViewWriter,
        REFRESH_SOURCE: SourceRefresher,
        ASSESS_CATALOGUE: CatalogueAssessor,
    },
)
