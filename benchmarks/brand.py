"""Response times of the directory's filters with many profiles (`make bench-brand ARGS=1000000`)."""

import asyncio
import random
import statistics
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import psycopg

from adapters.postgres.brand import PROFILES, list_terms, list_word_rows
from benchmarks.ingest import print_figure
from benchmarks.stack import Stack, running_stack
from domain.brand.model import DirectoryFilter, ProfileStatus, VendorProfile
from domain.brand.ports import VendorProfileStore
from domain.kernel.ids import new_id
from domain.kernel.paging import PageRequest
from domain.kernel.tenancy import Tenant
from ports.unit_of_work import UnitOfWork

_SYLLABLES = "ba be bi bo da do el fa fi fjor ga go ha hel ik ka ko la li lo ma mi mo na no oak or pa ra ri ro sa sta ta ti to va".split()
_COMMON = {"home": 0.2, "furniture": 0.2, "design": 0.1, "studio": 0.05, "sofa": 0.03, "hara": 0.02, "oak": 0.01}
"""Common words of names, with the fraction of profiles whose names contain each. `hara` has many similar words."""
_EXCLUSIVE = ("north", "south", "souths")
"""Common words, two of them similar. Each is in the names of a tenth of the profiles, and no name contains two."""
_TERM_TABLES = {"vendor_profile_terms": "term, profile", "vendor_words": "deletion, word"}
_CLAIMED, _VERIFIED = 0.01, 0.1
"""Fraction of the profiles that are claimed, and of these that are verified."""
_SAMPLES, _MAX_SECONDS = 300, 20
_BATCH = 5_000
_NOW = datetime.now(UTC)


def _invent_word(number: int) -> str:
    """Return an invented word, a different one for each number."""
    word = ""
    while number or not word:
        number, place = divmod(number, len(_SYLLABLES))
        word += _SYLLABLES[place]
    return word


def _create_profile(rng: random.Random, number: int) -> VendorProfile:
    """Return a profile whose name has a word of its own, sometimes another invented one, and some common ones."""
    brand = _invent_word(number * 7 + 100_000)
    words = [brand] + ([_invent_word(rng.randrange(50_000))] if rng.random() < 0.3 else [])
    words += [word for word, share in _COMMON.items() if rng.random() < share]
    words += _EXCLUSIVE[number % 10 : number % 10 + 1]
    catalogue = new_id("cat")
    status = ProfileStatus.CLAIMED if rng.random() < _CLAIMED else ProfileStatus.UNCLAIMED
    verified = status is ProfileStatus.CLAIMED and rng.random() < _VERIFIED
    return VendorProfile(
        id=new_id("vnd"), name=" ".join(words).title(), slug=f"slug-{number}", brands=(brand,),
        website_domain=f"www.{brand}{number}.example", status=status, catalogue=catalogue, created_at=_NOW,
        updated_at=_NOW, holder=new_id("org") if verified else None, is_gathered=True, service_catalogue=catalogue,
        verified=verified,
    )  # fmt: skip


def _create_batches(count: int) -> Iterator[list[VendorProfile]]:
    rng = random.Random(7)
    for start in range(0, count, _BATCH):
        yield [_create_profile(rng, number) for number in range(start, min(start + _BATCH, count))]


async def _insert_profiles(connection: psycopg.AsyncConnection[Any], count: int) -> list[VendorProfile]:
    """Insert profiles with their search keys; return a sample of them. Keys are created after the rows, which is faster."""
    columns, sample = ("livemode", *PROFILES.stored_columns), list[VendorProfile]()
    for table in _TERM_TABLES:
        await connection.execute(f"ALTER TABLE {table} DROP CONSTRAINT {table}_pkey".encode())
    known = set[str]()
    for batch in _create_batches(count):
        rows = ((True, *PROFILES.build_params(profile).values()) for profile in batch)
        await _copy(connection, f"vendor_profiles ({', '.join(columns)})", rows)
        terms = ((True, term, profile.id) for profile in batch for term in list_terms(profile))
        await _copy(connection, "vendor_profile_terms (livemode, term, profile)", terms)
        words = {row for profile in batch for row in list_word_rows(profile) if row[1] not in known}
        await _copy(connection, "vendor_words (livemode, deletion, word)", ((True, *row) for row in words))
        known.update(word for _, word in words)
        sample.append(batch[len(batch) // 2])
    for table, key in _TERM_TABLES.items():
        await connection.execute(f"ALTER TABLE {table} ADD PRIMARY KEY (livemode, {key})".encode())
    return sample


async def _copy(connection: psycopg.AsyncConnection[Any], target: str, rows: Iterable[Sequence[Any]]) -> None:
    async with connection.cursor() as cursor, cursor.copy(f"COPY {target} FROM STDIN".encode()) as copy:
        for row in rows:
            await copy.write_row(row)


def _exchange_letters(word: str) -> str:
    return word[:2] + word[3] + word[2] + word[4:] if len(word) > 4 else word


def _build_filters(sample: Sequence[VendorProfile]) -> Mapping[str, list[DirectoryFilter]]:
    """Return filters by label, several of each kind."""
    words = [profile.name.split()[0].lower() for profile in sample]
    return {
        "q, one word": [DirectoryFilter(q=word) for word in words],
        "q, one word with exchanged letters": [DirectoryFilter(q=_exchange_letters(word)) for word in words],
        "q, a whole name": [DirectoryFilter(q=profile.name) for profile in sample],
        "q, a common word": [DirectoryFilter(q=word) for word in _COMMON],
        "q, two common words": [DirectoryFilter(q="sofa oak"), DirectoryFilter(q="design studio")],
        "q, three common words": [DirectoryFilter(q="home furniture design"), DirectoryFilter(q="studio sofa oak")],
        "q, a common word with many similar ones": [DirectoryFilter(q="hara oak"), DirectoryFilter(q="studio hara")],
        "q, common words that no profile has together": [DirectoryFilter(q="north south")],
        "q, a rare and a common word": [DirectoryFilter(q=f"{word} design") for word in words],
        "q, unknown": [DirectoryFilter(q="zzyzx quux")],
        "domain": [DirectoryFilter(domain=profile.website_domain) for profile in sample],
        "q and domain": [DirectoryFilter(q=profile.name, domain=profile.website_domain) for profile in sample],
        "status of few": [DirectoryFilter(status=ProfileStatus.CLAIMED)],
        "status of few, verified": [DirectoryFilter(status=ProfileStatus.CLAIMED, verified=True)],
        "q of a common word and status of few": [DirectoryFilter(q="oak", status=ProfileStatus.CLAIMED)],
        "q of a common word and status of most": [DirectoryFilter(q="oak", status=ProfileStatus.UNCLAIMED)],
        "q of a common word, verified": [DirectoryFilter(q="home", verified=True)],
        "q of a rare word and status of most": [
            DirectoryFilter(q=word, status=ProfileStatus.UNCLAIMED) for word in words
        ],
        "no filter": [DirectoryFilter()],
    }


async def _measure(stack: Stack, label: str, filters: Sequence[DirectoryFilter], *, backwards: bool = False) -> None:
    """Print the times of the first two pages, or of the last two (`backwards`)."""
    uow, tenant = stack.dependencies[UnitOfWork], Tenant("org_bench", True)
    times, found, end = [], 0, time.perf_counter() + _MAX_SECONDS
    for number in range(_SAMPLES):
        if time.perf_counter() > end:
            break
        request = PageRequest(20, None, backwards)
        for _ in range(2):
            started = time.perf_counter()
            async with uow.begin_reading(tenant) as tx:
                page = await tx[VendorProfileStore].page(request, filters[number % len(filters)])
            times.append((time.perf_counter() - started) * 1000)
            found += len(page.items)
            if page.next_key is None:
                break
            request = PageRequest(20, page.next_key, backwards)
    times.sort()
    p95 = times[int(len(times) * 0.95)]
    print_figure(label, f"median {statistics.median(times):.1f} ms, p95 {p95:.1f} ms, {found / len(times):.1f} found")


async def main(count: int) -> None:
    """Measure the filters of the directory."""
    async with running_stack() as stack:
        # the owner's policies do not permit COPY
        url = stack.env["JOINERY_DATABASE_URL"].replace("//joinery@", "//postgres@")
        async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
            await connection.execute("SET synchronous_commit = off")
            await connection.execute("SET session_replication_role = replica")  # the holders do not exist
            started = time.perf_counter()
            sample = await _insert_profiles(connection, count)
            await connection.execute("VACUUM ANALYZE vendor_profiles, vendor_profile_terms, vendor_words")
            print_figure(f"{count:,} profiles", f"{time.perf_counter() - started:.0f} s")
            for table in ("vendor_profiles", "vendor_profile_terms", "vendor_words"):
                cursor = await connection.execute(
                    "SELECT reltuples::bigint, pg_total_relation_size(oid) FROM pg_class WHERE relname = %s", (table,)
                )
                for rows, size in await cursor.fetchall():
                    print_figure(table, f"{rows:,} rows, {size / 2**20:,.0f} MiB")
        for label, filters in _build_filters(sample).items():
            await _measure(stack, label, filters)
        for label in ("q, a common word", "q, two common words"):
            await _measure(stack, f"{label}, last pages", _build_filters(sample)[label], backwards=True)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000))
