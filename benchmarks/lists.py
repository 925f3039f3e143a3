"""What pages of long lists cost: each list, each filter, the first page and the ten-thousandth (`make bench-read`)."""

import statistics
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import aiohttp

from adapters.postgres.nodes.connecting import Connection
from adapters.postgres.nodes.pool import Pool
from adapters.wire.cursors import Cursors, context_of
from benchmarks.filling import CATEGORIES, GTIN, RARE, fill, made_id, make_past_days
from benchmarks.ingest import line
from benchmarks.stack import CALL, Stack
from domain.access.usecases import AccessService, KeyRequest
from domain.kernel.tenancy import Tenant
from domain.secrets.keys import WorkingKeys
from ports.unit_of_work import UnitOfWork

SMALL, OTHERS = 1_000, 50
"""Rows of each of the other organisations, and how many there are: half of them older than the large one."""
PAGE, DEEP = 20, 10_000
_TRIES = 25
Filters = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Asked:
    """A list: its operation, its path and the ids in it, the table that its keys come from, and what to filter it by."""

    operation: str
    path: str
    table: str
    filters: Filters = field(default_factory=dict)
    ids: Mapping[str, str] = field(default_factory=dict)
    key: str = "id"


@dataclass(frozen=True)
class Large:
    """The organisation with many rows, and its key."""

    tenant: Tenant
    secret: str
    rows: int
    today: datetime


async def prepare(parts: Stack, rows: int) -> Large:
    """An organisation with so many offers, events, deliveries, request logs and runs among fifty small ones."""
    today = datetime.now(UTC)
    large = await parts.organisation("Large")
    made = [await parts.organisation(f"Small {number}") for number in range(OTHERS)]
    async with parts.container[Pool].owner() as link:
        await link.connection.execute("SET synchronous_commit = off")
        await make_past_days(link.connection, today.date())
        for number, organisation in enumerate([*made[: OTHERS // 2], large, *made[OTHERS // 2 :]]):
            started = time.perf_counter()
            count = rows if organisation is large else SMALL
            await fill(link.connection, organisation.id, organisation.catalogue(True), count, today.date())
            if organisation is large:
                line(
                    f"{rows:,} rows of one organisation",
                    f"{time.perf_counter() - started:.1f} s, after {number} small ones",
                )
        await link.connection.execute("VACUUM ANALYZE")
    tenant = Tenant(large.id, True)
    async with parts.container[UnitOfWork].begin(tenant, CALL) as tx:
        _, secret = await parts.container[AccessService].issue_key(tx, KeyRequest("bench"))
    return Large(tenant, secret, rows, today)


def _codes(source: str) -> dict[str, dict[str, Any]]:
    """Filters by codes: one, a hundred, none, and such as very many have."""
    return {
        "sku": {"sku": ["SKU-77"]},
        "sku, a hundred": {"sku": [f"SKU-{number * 997}" for number in range(100)]},
        "sku, none": {"sku": ["none"]},
        "mpn, of every third": {"mpn": ["MANY"]},
        "mpn, a hundred and the frequent": {"mpn": ["MANY", *(f"M-{number}" for number in range(99))]},
        "gtin": {"gtin": ["78"]},
        "gtin, of every fourth": {"gtin": [GTIN]},
        "external_id, a hundred": {"external_id": [f"{kind}{number * 997}" for number in range(50) for kind in "PV"]},
        "sku and the frequent gtin": {"sku": [f"SKU-{number * 997}" for number in range(100)], "gtin": [GTIN]},
        "mpn and gtin, both frequent": {"mpn": ["MANY"], "gtin": [GTIN]},
        "gtin and source, both frequent": {"gtin": [GTIN], "source": source},
    }


def lists(large: Large) -> Iterator[Asked]:
    """Each list with each of its filters: a value that many rows have, and one that a single row has, or none."""
    day, now = large.today.date(), large.today.replace(microsecond=0)
    sources = {"frequent": made_id("src", 0, day), "rare": made_id("src", RARE, day)}
    endpoint = made_id("whe", 0, day)
    since = {
        "updated_since, all": {"updated_since": now - timedelta(days=100)},
        "updated_since, one": {"updated_since": now - timedelta(hours=6)},
        "updated_since, the oldest tenth": {"updated_since": now - timedelta(hours=36)},
    }
    by_source = {f"source, {name}": {"source": id} for name, id in sources.items()}
    stock = {
        "availability, frequent": {"availability": "in_stock"},
        "availability, rare": {"availability": "preorder"},
        "availability, none": {"availability": "discontinued"},
    }
    codes = _codes(sources["frequent"])
    variants = [made_id("var", number * 997, day, large.rows // 2) for number in range(100)]
    offers = [made_id("ofr", number * 997, day, large.rows) for number in range(100)]
    yield Asked(
        "catalogue.list_offers",
        "/v1/offers",
        "offers",
        {
            **by_source,
            **stock,
            **since,
            "variant": {"variant": made_id("var", 9, day, large.rows // 2)},
            "product": {"product": made_id("prod", 9, day, large.rows // 5)},
            **codes,
            "id, a hundred": {"id": offers},
            "source and availability": {"source": sources["frequent"], "availability": "preorder"},
        },
    )
    yield Asked(
        "catalogue.list_products",
        "/v1/products",
        "products",
        {
            **by_source,
            **stock,
            **since,
            "status, frequent": {"status": "active"},
            "status, rare": {"status": "discontinued"},
            "brand": {"brand": "brand7"},
            "brand, rare": {"brand": "alone"},
            "category": {"category": CATEGORIES[0]},
            "category, rare": {"category": CATEGORIES[1]},
            "q=sofa": {"q": "sofa"},
            "q=walnut sofa": {"q": "walnut sofa"},
            "q=halden alone sofa": {"q": "halden alone sofa"},
            "q, a SKU": {"q": "sku77"},
            **codes,
            "id, a hundred": {"id": [made_id("prod", number * 997, day, large.rows // 5) for number in range(100)]},
            "variant, a hundred": {"variant": variants},
            "offer, a hundred": {"offer": offers},
            "category and brand": {"category": CATEGORIES[0], "brand": "brand7"},
        },
    )
    for name, id in sources.items():
        yield Asked("runs.list", f"/v1/sources/{id}/runs", f"runs of a {name} source", ids={"id": id})
    yield Asked(
        "webhooks.list_deliveries",
        f"/v1/webhook-endpoints/{endpoint}/deliveries",
        "webhook_deliveries",
        {
            "status, frequent": {"status": "succeeded"},
            "status, rare": {"status": "failed"},
            "status, none": {"status": "pending"},
            "type, frequent": {"type": "offer.changed"},
            "type, rare": {"type": "source.blocked"},
            "type, none": {"type": "product.merged"},
            "event": {"event": made_id("evt", 7, day, large.rows)},
            "status and type": {"status": "failed", "type": "offer.changed"},
        },
        ids={"id": endpoint},
    )
    yield Asked("request_logs.list", "/v1/request-logs", "request_logs", key="position")
    yield Asked("sources.list", "/v1/sources", "sources")
    yield Asked("webhooks.list", "/v1/webhook-endpoints", "webhook_endpoints")


class Pages:
    """Asks for pages over one kept connection, and tells how long they take."""

    def __init__(self, base: str, large: Large, cursors: Cursors, looking: Connection) -> None:
        self._base, self._large, self._cursors, self._looking = base, large, cursors, looking
        self._headers = {"Authorization": f"Bearer {large.secret}"}

    async def all(self) -> None:
        """Every figure."""
        async with aiohttp.ClientSession(headers=self._headers) as session:
            for asked in lists(self._large):
                key = await self._deep(asked)
                for name, query in {"plain": {}, **asked.filters}.items():
                    await self._figure(session, asked, name, query, key)
            await self._events(session)

    async def _deep(self, asked: Asked) -> str | None:
        """The key at which the ten-thousandth page of the plain list begins, or the last page of a shorter one."""
        table = asked.table.partition(" ")[0]
        own = f"FROM {table} WHERE org = %s" + (" AND source = %s" if table == "runs" else "")
        values = (self._large.tenant.org, *(asked.ids.values() if table == "runs" else ()))
        [count] = await self._row(f"SELECT count(*) {own}", values)
        if count <= PAGE:
            return None
        offset = min(PAGE * DEEP, count - PAGE) - 1
        [key] = await self._row(f"SELECT {asked.key} {own} ORDER BY {asked.key} DESC OFFSET {offset} LIMIT 1", values)
        return str(key)

    async def _row(self, statement: str, values: tuple[Any, ...]) -> tuple[Any, ...]:
        row = await (await self._looking.execute(statement.encode(), values)).fetchone()
        assert row is not None
        return row

    async def _figure(
        self, session: aiohttp.ClientSession, asked: Asked, name: str, query: Mapping[str, Any], key: str | None
    ) -> None:
        """One line: the first page and the deep one, each beside the plain first page, asked in turn."""
        given = {name: _text(value) for name, value in query.items()}
        pages = {"first": f"{asked.path}?{urlencode(given)}"}
        if key is not None:
            cursor = self._cursors.sign(context_of(asked.operation, self._large.tenant, asked.ids, query), key)
            pages["deep"] = f"{asked.path}?{urlencode({**given, 'starting_after': cursor})}"
        told = []
        for page, path in pages.items():
            took, plain, rows = await self._time(session, path, asked.path)
            told.append(f"{page} {took:6.2f} ms, {rows:>2} rows, ratio {took / plain:5.2f}")
        line(f"{asked.table}: {name}", "   ".join(told))

    async def _time(self, session: aiohttp.ClientSession, path: str, beside: str) -> tuple[float, float, int]:
        """Milliseconds of one path and of another, asked in turn, and the rows of the first.

        The lower quartile of some answers after as many have had the database settle on a plan: others work here, too.
        """
        times: dict[str, list[float]] = {path: [], beside: []}
        rows = 0
        for _ in range(_TRIES):
            for asked in (beside, path):
                began = time.perf_counter()
                async with session.get(self._base + asked) as answer:
                    answer.raise_for_status()
                    body = await answer.json()
                times[asked].append((time.perf_counter() - began) * 1000)
                rows = len(body["data"])
        own, other = (statistics.quantiles(times[one][_TRIES // 2 :], n=4)[0] for one in (path, beside))
        return own, other, rows

    async def _events(self, session: aiohttp.ClientSession) -> None:
        """The log, from its beginning and from as far as ten thousand pages reach; and its newest events."""
        for name, query in {
            "plain": {},
            "type, frequent": {"types": "offer.changed"},
            "type, rare": {"types": "source.blocked"},
        }.items():
            for path, size in (("/v1/changes", 1000), ("/v1/changes/recent", PAGE)):
                pages = {"first": {}, "deep": await self._walked(session, path, query)}
                plain = f"{path}?limit={size}"
                told = []
                for page, at in pages.items():
                    took, other, rows = await self._time(
                        session, f"{path}?{urlencode({**query, 'limit': size, **at})}", plain
                    )
                    told.append(f"{page} {took:6.2f} ms, {rows:>4} rows, ratio {took / other:5.2f}")
                line(f"{path}: {name}, pages of {size}", "   ".join(told))

    async def _walked(self, session: aiohttp.ClientSession, path: str, query: Mapping[str, str]) -> dict[str, str]:
        """The cursor that stands behind so many events, or where they end."""
        way, limit = ("cursor", 1000) if path == "/v1/changes" else ("starting_after", 100)
        at: dict[str, str] = {}
        for _ in range(PAGE * DEEP // limit):
            async with session.get(f"{self._base}{path}?{urlencode({**query, 'limit': limit, **at})}") as answer:
                answer.raise_for_status()
                page = await answer.json()
            if not page["next_cursor"] or not page["data"]:
                break
            at = {way: page["next_cursor"]}
        return at


def _text(value: Any) -> str:
    """A filter's value as the address has it."""
    if isinstance(value, datetime):
        return value.isoformat()
    return ",".join(value) if isinstance(value, list) else str(value)


async def list_figures(parts: Stack, base: str, large: Large) -> None:
    """Every figure of the lists."""
    async with parts.container[Pool].owner() as link:
        await Pages(base, large, Cursors(parts.container[WorkingKeys].cursors), link.connection).all()
