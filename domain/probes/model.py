"""Website checks (`Probe`), their reports and their states (docs/probes.md)."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, TypedDict

from domain.audit.model import AuditedFields
from domain.jobs.model import NewJob
from domain.kernel.enums import StoredEnum
from domain.kernel.paging import Filter
from domain.kernel.tenancy import Tenant

PROBE_JOB = "probes.carry_out"
"""The kind of the job that executes a probe."""
MAX_PROBES_PER_OPEN_STATUS = 20
"""Maximum number of a tenant's probes in each of the statuses `queued` and `running`."""
MAX_PROBE_CRASHES = 3
"""Number of consecutive attempts without a result after which a probe fails."""
MAX_PROBE_AGE = timedelta(hours=1)
"""Time after which a probe fails, regardless of the number of attempts."""


class ProbeStatus(StoredEnum):
    """Status of a probe."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


class RobotsState(StoredEnum):
    """State of the site's robots.txt (RFC 9309)."""

    PARSED = "parsed"
    MISSING = "missing"
    UNREACHABLE = "unreachable"
    DISALLOW_ALL = "disallow_all"


class Platform(StoredEnum):
    """Shop software of a website; `custom` if no known software was detected."""

    SHOPIFY = "shopify"
    WOOCOMMERCE = "woocommerce"
    BIGCOMMERCE = "bigcommerce"
    MAGENTO = "magento"
    SQUARESPACE = "squarespace"
    CUSTOM = "custom"


class AccessBlockKind(StoredEnum):
    """Kind of an access barrier."""

    BOT_CHALLENGE = "bot_challenge"
    LOGIN = "login"
    GEO_BLOCK = "geo_block"
    RATE_LIMIT = "rate_limit"


class Effort(StoredEnum):
    """Effort of connecting the site as a source."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    INFEASIBLE = "infeasible"


class ReadingMethod(StoredEnum):
    """Method by which the site's products can be read."""

    PLATFORM_FEED = "platform_feed"
    FILE = "file"
    STRUCTURED_DATA = "structured_data"
    PAGES = "pages"
    NONE = "none"


class FailureCode(StoredEnum):
    """Code of the reason why a probe has no report."""

    FETCH_FAILED = "fetch_failed"
    FETCH_REFUSED = "fetch_refused"
    TIMED_OUT = "timed_out"
    INTERNAL_ERROR = "internal_error"


@dataclass(frozen=True, slots=True)
class Robots:
    """File robots.txt of the site to which the URL finally leads.

    Attributes:
        crawl_delay_seconds: The required pause between two requests, or None.
        sitemaps: The URLs of sitemaps that robots.txt lists.
    """

    state: RobotsState
    crawl_delay_seconds: float | None = None
    sitemaps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Evidence:
    """One signal of a platform that was found on a site.

    Attributes:
        signal: The kind of text that was searched and the text that was found, such as `header x-shopify-stage`.
        weight: The probability (0 to 1) of the platform if this is the only signal.
    """

    platform: Platform
    signal: str
    weight: float


@dataclass(frozen=True, slots=True)
class AccessBlock:
    """Access barrier: its kind, and a sentence that states how the barrier was detected."""

    kind: AccessBlockKind
    detail: str


@dataclass(frozen=True, slots=True)
class PlatformFeed:
    """Machine-readable list of products on the site.

    Attributes:
        status: The HTTP status of the response.
        products: The number of products in the response, or None if the response is not a product list.
        total: The number of all products, if known.
        fields: The fields that at least one product has.
    """

    platform: Platform
    url: str
    status: int
    products: int | None = None
    total: int | None = None
    fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Sitemap:
    """Summary of the sitemaps that were read.

    Attributes:
        read: The URLs of the sitemaps.
        product_pages: The number of product pages that they list.
        truncated: Whether further product pages may exist.
    """

    read: tuple[str, ...] = ()
    product_pages: int = 0
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class SampledPage:
    """One product page of the sample.

    Attributes:
        status: The HTTP status of the response.
        products: The number of products in the structured data of the page.
    """

    url: str
    status: int
    products: int


@dataclass(frozen=True, slots=True)
class PageSample:
    """Summary of the product pages that were read as a sample.

    Attributes:
        malformed_blocks: The number of structured data blocks that could not be parsed.
        coverage: The share (0 to 1) of sampled products that state each field in structured data.
    """

    pages: tuple[SampledPage, ...] = ()
    malformed_blocks: int = 0
    coverage: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Estimate:
    """Estimate of how the site can be connected.

    Attributes:
        kind: The kind of connection: the method by which the site's products can be read.
        reasons: The reasons as sentences.
    """

    effort: Effort
    kind: ReadingMethod
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProbeReport:
    """Report of a finished probe.

    Attributes:
        final_url: The URL after redirects.
        confidence: The confidence (0 to 1) in `platform`.
        requests: The number of requests that were sent.
        wall: The access barrier of the site, or None; `wall` is the name of this field in the API.
        disallowed: The URLs that were not requested because robots.txt forbids it.
        notes: Further findings as sentences.
    """

    final_url: str
    robots: Robots
    platform: Platform
    confidence: float
    estimate: Estimate
    requests: int
    evidence: tuple[Evidence, ...] = ()
    wall: AccessBlock | None = None
    feed: PlatformFeed | None = None
    sitemap: Sitemap | None = None
    sample: PageSample | None = None
    disallowed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProbeFailure:
    """Reason why a probe has no report: a code and a sentence."""

    code: FailureCode
    message: str


@dataclass(frozen=True, slots=True)
class Probe:
    """One check of a website.

    Attributes:
        url: The URL that the user has entered.
        proposal: The request body that creates a source for the website, or None.
        crashes: The number of consecutive attempts that ended without a result.
    """

    id: str
    url: str
    status: ProbeStatus
    created_at: datetime
    report: ProbeReport | None = None
    failure: ProbeFailure | None = None
    proposal: Mapping[str, Any] | None = None
    started_at: datetime | None = None
    completed_at: datetime | None = None
    crashes: int = 0

    @property
    def is_finished(self) -> bool:
        """True if the probe has succeeded or failed."""
        return self.completed_at is not None

    def has_exhausted_attempts(self, now: datetime) -> bool:
        """Return whether the probe must fail: after MAX_PROBE_CRASHES crashes, or MAX_PROBE_AGE after its start."""
        late = self.started_at is not None and now - self.started_at > MAX_PROBE_AGE
        return late or self.crashes >= MAX_PROBE_CRASHES

    def count_crash(self) -> "Probe":
        """Return the probe with its number of crashes incremented."""
        return replace(self, crashes=self.crashes + 1)

    def mark_running(self, now: datetime) -> "Probe":
        """Return the probe with the status `running`; the start time of the first attempt remains."""
        return replace(self, status=ProbeStatus.RUNNING, started_at=self.started_at or now)

    def mark_succeeded(self, report: ProbeReport, proposal: Mapping[str, Any] | None, now: datetime) -> "Probe":
        """Return the probe with the status `succeeded`, its report, and the proposed source or None."""
        return replace(self, status=ProbeStatus.SUCCEEDED, report=report, proposal=proposal, completed_at=now)

    def mark_failed(self, code: FailureCode, message: str, now: datetime) -> "Probe":
        """Return the probe with the status `failed` and the reason."""
        return replace(self, status=ProbeStatus.FAILED, failure=ProbeFailure(code, message), completed_at=now)


@dataclass(frozen=True, slots=True)
class ProbeFilter(Filter):
    """Filter of a list of probes; None means any status."""

    status: ProbeStatus | None = None


class NewProbe(TypedDict):
    """Data for a new probe: the URL of the website."""

    url: str


AUDITED_PROBE_FIELDS = AuditedFields("source_probe", ("url", "status", "failure"))


def create_probe_job(probe: Probe, host: str, tenant: Tenant) -> NewJob:
    """Return the job that executes the probe. Probes of one host are executed one after another."""
    return NewJob(PROBE_JOB, f"probe:{host}", tenant, {"probe": probe.id}, key=probe.id)
