"""What every page of the console costs a large customer: a line for each (`make bench-console-pages`)."""

import argparse
import asyncio
import gzip
from collections.abc import Mapping

import aiohttp

from adapters.postgres.nodes.pool import Pool
from benchmarks.console import ADDRESS, PORT, Asking, ready
from benchmarks.ingest import line
from benchmarks.stack import Stack, stack
from domain.people.model import Method
from domain.people.usecases.sessions import SessionService, Visitor
from tests.support.console_large import Large, large
from tests.support.console_places import places_of

_CPU = 15.0
_BYTES = 120_000
"""The figures to meet: milliseconds of processor time, and bytes unpacked."""
_SAMPLE = ("catalogue.list_products", "runs.push", "sources.create")
"""Operations of the reference that stand for all, unless every one is asked for."""


class Walking(Asking):
    """Takes pages that lead on, or are not there, as they are."""

    async def _get(self, path: str, headers: Mapping[str, str] | None) -> bytes:
        while True:
            asked = self.session.get(ADDRESS + path, headers=headers, auto_decompress=False, allow_redirects=False)
            async with asked as answer:
                body = await answer.read()
                if answer.status != 429:
                    assert answer.status < 500, (path, answer.status)
                    return body
            await asyncio.sleep(0.2)


async def prepare(parts: Stack) -> tuple[str, Large]:
    """A large organisation, and the cookie of an owner."""
    organisation = await parts.organisation()
    dependencies = parts.container
    made = await large(dependencies, organisation)
    async with parts.container[Pool].owner() as link:
        await link.connection.execute("VACUUM ANALYZE")
    _, cookie = await dependencies[SessionService].begin(made.owner, [Method.PASSWORD], Visitor("127.0.0.1"))
    return cookie, made


async def pages(asking: Asking, made: Large, tries: int, *, every: bool) -> None:
    """Each page: what is over the figures to meet is marked."""
    over = 0
    for place in places_of(made):
        if "/reference/" in place and not every and not place.endswith(_SAMPLE):
            continue
        cpu, median, body = await asking.page(place, tries, {"accept-encoding": "gzip"})
        whole = gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body
        heavy = cpu > _CPU or len(whole) > _BYTES
        over += heavy
        text = f"CPU {cpu:6.1f} ms  median {median:6.1f} ms  {len(whole) / 1000:6.1f} KB{'  OVER' if heavy else ''}"
        line(place[:96], text)
    line("pages over 15 ms of CPU or 120 KB", str(over))


async def main(tries: int, *, every: bool) -> None:
    """All of them, at a process of its own."""
    async with stack(port=PORT) as parts:
        cookie, made = await prepare(parts)
        api = parts.process("api")
        try:
            await ready(api)
            async with aiohttp.ClientSession(headers={"cookie": f"joinery={cookie}"}) as session:
                await pages(Walking(session, api.pid), made, tries, every=every)
        finally:
            api.terminate()
            api.wait(20)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tries", type=int, default=20)
    parser.add_argument("--every", action="store_true", help="each operation's page of the reference, too")
    options = parser.parse_args()
    asyncio.run(main(options.tries, every=options.every))
