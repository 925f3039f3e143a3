"""A source probe, the report that it comes to, and the states it goes through (docs/probes.md)."""

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
"""The kind of job that carries a probe out."""
OPEN_PROBES = 20
"""How many probes of one tenant may wait, and how many may run, at once."""
DEATHS = 3
"""How many attempts in a row may end without a word before a probe fails."""
LONGEST = timedelta(hours=1)
"""After which a probe is given up, however often it was begun."""


class ProbeStatus(StoredEnum):
    """Where a probe stands."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


class RobotsState(StoredEnum):
    """What the site's robots.txt (RFC 9309) came to."""

    PARSED = "parsed"
    MISSING = "missing"
    UNREACHABLE = "unreachable"
    DISALLOW_ALL = "disallow_all"


class Platform(StoredEnum):
    """What a shop is built on; `custom` is none of those that are known."""

    SHOPIFY = "shopify"
    WOOCOMMERCE = "woocommerce"
    BIGCOMMERCE = "bigcommerce"
    MAGENTO = "magento"
    SQUARESPACE = "squarespace"
    CUSTOM = "custom"


class WallKind(StoredEnum):
    """What keeps readers out."""

    BOT_CHALLENGE = "bot_challenge"
    LOGIN = "login"
    GEO_BLOCK = "geo_block"
    RATE_LIMIT = "rate_limit"


class Effort(StoredEnum):
    """How much it takes to connect the site as a source."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    INFEASIBLE = "infeasible"


class Way(StoredEnum):
    """By what the site's products would be read."""

    PLATFORM_FEED = "platform_feed"
    FILE = "file"
    STRUCTURED_DATA = "structured_data"
    PAGES = "pages"
    NONE = "none"


class FailureCode(StoredEnum):
    """Why a probe came to no report."""

    FETCH_FAILED = "fetch_failed"
    FETCH_REFUSED = "fetch_refused"
    TIMED_OUT = "timed_out"
    INTERNAL_ERROR = "internal_error"


@dataclass(frozen=True, slots=True)
class Robots:
    """The rules of the site that the URL led to; `sitemaps` are those that they name."""

    state: RobotsState
    crawl_delay_seconds: float | None = None
    sitemaps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Evidence:
    """One sign of a platform; `weight` (0 to 1) is how sure it is by itself."""

    platform: Platform
    signal: str
    weight: float


@dataclass(frozen=True, slots=True)
class Wall:
    """What keeps the probe out, and by what that was seen."""

    kind: WallKind
    detail: str


@dataclass(frozen=True, slots=True)
class PlatformFeed:
    """A list of products for machines: how it answered, how many products the answer has and the whole has, their fields."""

    platform: Platform
    url: str
    status: int
    products: int | None = None
    total: int | None = None
    fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Sitemap:
    """The sitemaps that were read, how many product pages they list, and whether there is more in them than was read."""

    read: tuple[str, ...] = ()
    product_pages: int = 0
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class SampledPage:
    """One page that was read as a product's, and how many products its structured data states."""

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
    """How much it takes to connect the site, by what, and why."""

    effort: Effort
    kind: Way
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """What a probe found. `disallowed` are addresses that it would have read and robots.txt forbids; they were not asked."""

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
    """Why there is no report: a code a program can use and a sentence for a person."""

    code: FailureCode
    message: str


@dataclass(frozen=True, slots=True)
class Probe:
    """One look at a website. `proposal` is a body that makes a source of it; `deaths` counts attempts that ended without a word."""

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
        """Whether there is nothing left to do."""
        return self.completed_at is not None

    def hopeless(self, now: datetime) -> bool:
        """Whether another attempt would lead nowhere, or come too late."""
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
        """There will be no report."""
        return replace(self, status=ProbeStatus.FAILED, failure=Failure(code, message), completed_at=now)


@dataclass(frozen=True, slots=True)
class ProbeFilter(Filter):
    """Which probes are looked for."""

    status: ProbeStatus | None = None


class NewProbe(TypedDict):
    """A website to look at."""

    url: str


AUDITED = Audited("source_probe", ("url", "status", "failure"))


def job_of(probe: Probe, host: str, tenant: Tenant) -> NewJob:
    """Return the job that executes the probe; probes of one host execute one after another."""
    return NewJob(CARRY_OUT, f"probe:{host}", tenant, {"probe": probe.id}, key=probe.id)
