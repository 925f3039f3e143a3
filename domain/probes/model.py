"""Source probes, their reports and their states (docs/probes.md)."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, TypedDict

from domain.audit.model import Audited
from domain.jobs.model import NewJob
from domain.kernel.enums import StoredEnum
from domain.kernel.paging import Filter
from domain.kernel.tenancy import Tenant

CARRY_OUT = "probes.carry_out"
"""The kind of job that executes a probe."""
OPEN_PROBES = 20
"""Maximum number of waiting probes of a tenant, and of running ones."""
DEATHS = 3
"""Maximum number of consecutive attempts that end without a result before a probe fails."""
LONGEST = timedelta(hours=1)
"""Time after which a probe is given up, however often it was started."""


class ProbeStatus(StoredEnum):
    """The status of a probe."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


class RobotsState(StoredEnum):
    """The state of the site's robots.txt (RFC 9309)."""

    PARSED = "parsed"
    MISSING = "missing"
    UNREACHABLE = "unreachable"
    DISALLOW_ALL = "disallow_all"


class Platform(StoredEnum):
    """The platform of a shop; `custom` is none of the known ones."""

    SHOPIFY = "shopify"
    WOOCOMMERCE = "woocommerce"
    BIGCOMMERCE = "bigcommerce"
    MAGENTO = "magento"
    SQUARESPACE = "squarespace"
    CUSTOM = "custom"


class WallKind(StoredEnum):
    """The kind of obstacle that blocks readers."""

    BOT_CHALLENGE = "bot_challenge"
    LOGIN = "login"
    GEO_BLOCK = "geo_block"
    RATE_LIMIT = "rate_limit"


class Effort(StoredEnum):
    """The effort of connecting the site as a source."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    INFEASIBLE = "infeasible"


class Way(StoredEnum):
    """The method of reading the site's products."""

    PLATFORM_FEED = "platform_feed"
    FILE = "file"
    STRUCTURED_DATA = "structured_data"
    PAGES = "pages"
    NONE = "none"


class FailureCode(StoredEnum):
    """The reason why a probe has no report."""

    FETCH_FAILED = "fetch_failed"
    FETCH_REFUSED = "fetch_refused"
    TIMED_OUT = "timed_out"
    INTERNAL_ERROR = "internal_error"


@dataclass(frozen=True, slots=True)
class Robots:
    """The robots.txt rules of the final site; `sitemaps` are those that they name."""

    state: RobotsState
    crawl_delay_seconds: float | None = None
    sitemaps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Evidence:
    """One sign of a platform; `weight` (0 to 1) is its probability on its own."""

    platform: Platform
    signal: str
    weight: float


@dataclass(frozen=True, slots=True)
class Wall:
    """The obstacle that blocks the probe, and how it was detected."""

    kind: WallKind
    detail: str


@dataclass(frozen=True, slots=True)
class PlatformFeed:
    """A machine-readable product list: status, numbers of products in the response and in total, fields."""

    platform: Platform
    url: str
    status: int
    products: int | None = None
    total: int | None = None
    fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Sitemap:
    """Summary of the sitemaps that were read: number of product pages, and whether there are more."""

    read: tuple[str, ...] = ()
    product_pages: int = 0
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class SampledPage:
    """One sampled product page, and the number of products in its structured data."""

    url: str
    status: int
    products: int


@dataclass(frozen=True, slots=True)
class Sample:
    """`coverage` is the share (0 to 1) of sampled products whose structured data has each field."""

    pages: tuple[SampledPage, ...] = ()
    malformed_blocks: int = 0
    coverage: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Estimate:
    """The effort of connecting the site, the method and the reasons."""

    effort: Effort
    kind: Way
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """The findings of a probe. `disallowed` are URLs that robots.txt forbids, which were not requested."""

    final_url: str
    robots: Robots
    platform: Platform
    confidence: float
    estimate: Estimate
    requests: int
    evidence: tuple[Evidence, ...] = ()
    wall: Wall | None = None
    feed: PlatformFeed | None = None
    sitemap: Sitemap | None = None
    sample: Sample | None = None
    disallowed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Failure:
    """The reason why there is no report: a machine-readable code and a sentence."""

    code: FailureCode
    message: str


@dataclass(frozen=True, slots=True)
class Probe:
    """One probe of a website. `proposal` is the body to create a source; `deaths` counts attempts that ended without a result."""

    id: str
    url: str
    status: ProbeStatus
    created_at: datetime
    report: Report | None = None
    failure: Failure | None = None
    proposal: Mapping[str, Any] | None = None
    started_at: datetime | None = None
    completed_at: datetime | None = None
    deaths: int = 0

    @property
    def over(self) -> bool:
        """Return whether the probe is finished."""
        return self.completed_at is not None

    def hopeless(self, now: datetime) -> bool:
        """Return whether the probe has used up its attempts or its time."""
        late = self.started_at is not None and now - self.started_at > LONGEST
        return late or self.deaths >= DEATHS

    def died(self) -> "Probe":
        """Return the probe after an attempt that ended without a result."""
        return replace(self, deaths=self.deaths + 1)

    def started(self, now: datetime) -> "Probe":
        """Return the probe as started by a worker, for the first time or after another worker died."""
        return replace(self, status=ProbeStatus.RUNNING, started_at=self.started_at or now)

    def succeeded(self, report: Report, proposal: Mapping[str, Any] | None, now: datetime) -> "Probe":
        """Return the probe with its report."""
        return replace(self, status=ProbeStatus.SUCCEEDED, report=report, proposal=proposal, completed_at=now)

    def failed(self, code: FailureCode, message: str, now: datetime) -> "Probe":
        """Return the probe as failed."""
        return replace(self, status=ProbeStatus.FAILED, failure=Failure(code, message), completed_at=now)


@dataclass(frozen=True, slots=True)
class ProbeFilter(Filter):
    """The filter of a list of probes."""

    status: ProbeStatus | None = None


class NewProbe(TypedDict):
    """A website to probe."""

    url: str


AUDITED = Audited("source_probe", ("url", "status", "failure"))


def job_of(probe: Probe, host: str, tenant: Tenant) -> NewJob:
    """Return the job that executes the probe; probes of one host execute one after another."""
    return NewJob(CARRY_OUT, f"probe:{host}", tenant, {"probe": probe.id}, key=probe.id)
