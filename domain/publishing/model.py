"""Publication runs, changes of visibility, and what a vendor sees of its own catalogue."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, TypedDict

from domain.audit.model import AuditedFields
from domain.catalogue.model import Visibility
from domain.catalogue.publication import build_publishing_lane
from domain.jobs.model import NewJob
from domain.kernel.enums import StoredEnum
from domain.kernel.resource import audited, optional
from domain.kernel.schema import array, enum, id_schema, response_object, text, timestamp, with_title
from domain.kernel.tenancy import Tenant

EXECUTE_PUBLICATION = "publishing.execute"
"""Kind of the jobs that execute publication runs."""
WRITE_VIEW = "publishing.write_view"
"""Kind of the jobs that write the documents of a view that a new licence needs."""
MAX_PROBLEMS = 1_000
"""Maximum number of problems that a run stores."""
MAX_PRODUCTS = 1_000
"""Maximum number of products that a request can name."""


class PublicationKind(StoredEnum):
    """Kinds of publication runs."""

    PUBLISH = "publish"
    WITHDRAW = "withdraw"


class PublicationStatus(StoredEnum):
    """States of a publication run."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


OPEN = (PublicationStatus.QUEUED, PublicationStatus.RUNNING)


@dataclass(frozen=True, slots=True)
class PublicationProblem:
    """Product that a run did not publish: a code and a sentence."""

    product: str
    problem: str
    detail: str


@dataclass(frozen=True, slots=True)
class PublicationError:
    """Reason why a run failed: a code and a sentence."""

    code: str
    message: str


_STATUS = with_title(
    "publication_status",
    enum(
        PublicationStatus.SUCCEEDED, *(status for status in PublicationStatus if status != PublicationStatus.SUCCEEDED)
    ),
)
_PROBLEM = response_object(
    None,
    {
        "product": id_schema("prod"),
        "problem": with_title("publication_problem", enum("licence_basis")),
        "detail": text(
            "A source of the product has the licence basis `unknown`. Its data must not leave the organisation."
        ),
    },
)
_ERROR = response_object(
    None,
    {
        "code": text("internal_error", max_length=100),
        "message": text("The run failed several times.", max_length=2_000),
    },
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicationRun:
    """Run that publishes or withdraws products.

    Attributes:
        products: The products to examine; None for all.
        position: The last examined product, after which another attempt continues.
        done: Number of examined products.
        total: Number of products to examine.
    """

    id: Annotated[str, id_schema("pub")]
    kind: Annotated[PublicationKind, audited(with_title("publication_kind", enum(*PublicationKind)))]
    status: Annotated[PublicationStatus, audited(_STATUS)]
    problems: Annotated[
        tuple[PublicationProblem, ...],
        array(_PROBLEM, description=f"Products that were not published, at most {MAX_PROBLEMS:,}."),
    ] = ()
    error: Annotated[PublicationError | None, optional(_ERROR)] = None
    products: tuple[str, ...] | None = None
    position: str = ""
    done: int = 0
    total: int = 0
    version: int = 1
    created_at: Annotated[datetime, timestamp()]
    updated_at: datetime
    started_at: Annotated[datetime | None, optional(timestamp("When a worker started the run."))] = None
    completed_at: Annotated[datetime | None, optional(timestamp("When the run ended."))] = None

    @property
    def is_open(self) -> bool:
        """True if the run has not ended."""
        return self.status in OPEN


AUDITED = AuditedFields("publication_run", ("kind", "status"))


class PublicationRequest(TypedDict, total=False):
    """Body of a request that publishes or withdraws: the products; all if omitted."""

    products: list[str]


class VisibilityRequest(TypedDict):
    """Body of a request that lists or hides products."""

    products: list[str]
    visibility: Visibility


@dataclass(frozen=True, slots=True)
class VisibilityChange:
    """Result of a request that lists or hides products: numbers of changed and unchanged products, and unknown IDs."""

    changed: int
    unchanged: int
    not_found: Sequence[str]


@dataclass(frozen=True, slots=True)
class CatalogueCounts:
    """Numbers of products that are not merged into others, by visibility, and of variants."""

    products: int
    variants: int
    listed: int
    hidden: int


@dataclass(frozen=True, slots=True)
class Assessment:
    """Completeness of a catalogue.

    Attributes:
        products: Number of assessed products.
        score: Mean of the products' scores, 0 to 100.
        missing: Number of products that lack each field, by field.
        assessed_at: When the catalogue was assessed.
    """

    products: int
    score: int
    missing: Mapping[str, int] = field(default_factory=dict)
    assessed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class CatalogueVariant:
    """Variant of the vendor's own catalogue, with the fields that it lacks."""

    id: str
    product: str
    title: str | None
    sku: str | None
    gtin: str | None
    visibility: Visibility
    missing: Sequence[str]
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class CatalogueImage:
    """Stored image of the vendor's own catalogue, as one product uses it."""

    id: str
    product: str
    variants: Sequence[str]
    role: str | None
    position: int | None
    stored_url: str
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class VariantFilter:
    """Filter of the list of variants: visibility, words of title or brand or a SKU, and a missing field."""

    visibility: str | None = None
    q: str | None = None
    missing: str | None = None


def create_publication_job(run: PublicationRun, tenant: Tenant) -> NewJob:
    """Return the job that executes a run; runs of one organisation and mode are executed one after the other."""
    return NewJob(EXECUTE_PUBLICATION, build_publishing_lane(tenant), tenant, {"run": run.id}, key=run.id)


def create_view_job(view: str, tenant: Tenant) -> NewJob:
    """Return the job that writes the documents of a view."""
    return NewJob(WRITE_VIEW, build_publishing_lane(tenant), tenant, {"view": view}, key=f"{WRITE_VIEW}:{view}")
