"""JSON of a vendor's catalogue, its variants and images, and publication runs."""

from typing import Any, Final

import msgspec

from adapters.api_json.products import VISIBILITY
from adapters.api_json.resource import Body, JsonResource, create_decoder
from domain.agreements.model import AgreementStanding
from domain.catalogue.licences import FIELD_GROUPS
from domain.catalogue.model import Visibility
from domain.kernel.resource import Field, computed, optional
from domain.kernel.schema import (
    Schema,
    array,
    boolean,
    enum,
    id_schema,
    integer,
    response_object,
    strict_object,
    text,
    timestamp,
    with_title,
)
from domain.publishing.completeness import REQUIREMENTS, compute_score
from domain.publishing.model import (
    MAX_PRODUCTS,
    CatalogueImage,
    CatalogueVariant,
    PublicationRequest,
    PublicationRun,
    VisibilityChange,
    VisibilityRequest,
)
from domain.publishing.usecases.service import VendorCatalogue

_PROGRESS = response_object(
    None,
    {
        "done": integer(1200, minimum=0, description="Products that the run has examined."),
        "total": integer(4800, minimum=0, description="Products to examine, counted at the start."),
    },
)
PUBLICATION_RUN = JsonResource.from_dataclass(
    PublicationRun,
    "publication_run",
    {"progress": computed(_PROGRESS, lambda run, _: {"done": run.done, "total": run.total})},
    path="/v1/catalogue/publication-runs/{id}",
)
MISSING_FIELD = with_title("missing_field", enum(*REQUIREMENTS))
_SCORE = integer(82, minimum=0, maximum=100, description="100 if nothing is missing.")
_COMPLETENESS = response_object(
    None, {"score": _SCORE, "missing": array(MISSING_FIELD, description="Missing fields, the most important first.")}
)
CATALOGUE_VARIANT = JsonResource[CatalogueVariant](
    "catalogue_variant",
    {
        "id": id_schema("var"),
        "product": id_schema("prod"),
        "title": optional(text("Hedda sofa", max_length=10_000)),
        "sku": optional(text("HD-300-GY", max_length=10_000)),
        "gtin": optional(text("4006381333931", max_length=40)),
        "visibility": VISIBILITY,
        "completeness": Field(
            _COMPLETENESS,
            lambda row, _: {"score": compute_score(row.missing), "missing": list(row.missing)},
            rendered=True,
        ),
        "updated_at": timestamp(),
    },
)
_MIN_PIXELS = 1_000
"""Minimum length of an image's longer side in pixels, below which an image counts as too small."""


def _list_problems(image: CatalogueImage) -> list[str]:
    return ["low_resolution"] if max(image.width, image.height) < _MIN_PIXELS else []


CATALOGUE_IMAGE = JsonResource[CatalogueImage](
    "catalogue_image",
    {
        "id": id_schema("img"),
        "product": id_schema("prod"),
        "variants": array(id_schema("var"), description="Variants of the product that use the image."),
        "role": optional(text("hero", max_length=100)),
        "position": optional(integer(1)),
        "stored_url": text("https://api.example/v1/media/img_01J8ZQ5T3V7XK2M9RB4CDW", max_length=2_000),
        "width": integer(2400, minimum=1),
        "height": integer(1600, minimum=1),
        "problems": computed(
            array(
                with_title("image_problem", enum("low_resolution")),
                description=f"`low_resolution`: the longer side has fewer than {_MIN_PIXELS:,} pixels.",
            ),
            lambda image, _: _list_problems(image),
        ),
    },
)
_CATALOGUE_COMPLETENESS = response_object(
    None,
    {
        "score": _SCORE,
        "missing": array(
            response_object(None, {"field": MISSING_FIELD, "products": integer(120, minimum=1)}),
            description="Fields that products lack, the most important first, with the number of products.",
        ),
    },
)


def _render_completeness(catalogue: VendorCatalogue) -> Any:
    if (assessment := catalogue.assessment) is None:
        return None
    missing = [
        {"field": name, "products": assessment.missing[name]} for name in REQUIREMENTS if name in assessment.missing
    ]
    return {"score": assessment.score, "missing": missing}


VENDOR_CATALOGUE = JsonResource[VendorCatalogue](
    "vendor_catalogue",
    {
        "id": id_schema("cat"),
        "profile": optional(id_schema("vnd", "The vendor profile.")),
        "published": computed(boolean(), lambda catalogue, _: catalogue.published_at is not None),
        "published_at": optional(timestamp("When the catalogue was published.")),
        "products": computed(integer(4800, minimum=0), lambda catalogue, _: catalogue.counts.products),
        "variants": computed(integer(9100, minimum=0), lambda catalogue, _: catalogue.counts.variants),
        "listed": computed(
            integer(4700, minimum=0, description="Products that other organisations can read."),
            lambda catalogue, _: catalogue.counts.listed,
        ),
        "hidden": computed(
            integer(3, minimum=0, description="Products that the vendor has hidden."),
            lambda catalogue, _: catalogue.counts.hidden,
        ),
        "completeness": optional(
            Field(_CATALOGUE_COMPLETENESS, lambda catalogue, _: _render_completeness(catalogue), rendered=True)
        ),
        "agreement": with_title("agreement_standing", enum(*AgreementStanding)),
        "verified": boolean(description="Whether the vendor profile is verified."),
        "last_run": optional(
            Field(
                PUBLICATION_RUN.schema,
                lambda catalogue, view: catalogue.last_run and PUBLICATION_RUN.render(catalogue.last_run, view),
                rendered=True,
            )
        ),
    },
)
VISIBILITY_CHANGE = JsonResource[VisibilityChange](
    "visibility_change",
    {
        "changed": integer(3, minimum=0),
        "unchanged": integer(0, minimum=0),
        "not_found": array(id_schema("prod"), description="IDs that do not exist."),
    },
)
_PRODUCTS = array(
    id_schema("prod"), min_items=1, max_items=MAX_PRODUCTS, description=f"1 to {MAX_PRODUCTS:,} products."
)
PUBLICATION_REQUEST: Final = Body(
    strict_object({"products": _PRODUCTS | {"description": f"1 to {MAX_PRODUCTS:,} products; all if omitted."}}),
    create_decoder(PublicationRequest),
    is_required=False,
)
VISIBILITY_REQUEST: Final = Body(
    strict_object(
        {"products": _PRODUCTS, "visibility": enum(Visibility.HIDDEN, Visibility.LISTED)}, ("products", "visibility")
    ),
    lambda value: msgspec.convert(value, VisibilityRequest),
)
_FIELD_GROUPS = array(with_title("field_group", enum(*FIELD_GROUPS)))
PUBLICATION_PREVIEW: Final[Schema] = response_object(
    None,
    {
        "products": integer(4700, minimum=0, description="Products that become visible."),
        "not_shareable": integer(
            12, minimum=0, description="Products that stay unlisted because of the licence basis of a source."
        ),
        "visible_to": text("every organisation", max_length=100),
        "field_groups": _FIELD_GROUPS,
        "licences": array(
            response_object(
                None,
                {
                    "holder": id_schema("org"),
                    "field_groups": _FIELD_GROUPS,
                },
            ),
            description="Licences of single organisations.",
        ),
    },
    description="What becomes visible, to whom, and with which groups of fields.",
)
