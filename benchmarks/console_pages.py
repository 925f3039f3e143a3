"""CPU time and size of every console page for an organisation with much data (`make bench-console-pages`)."""

import argparse
import asyncio
import gzip
from collections.abc import Mapping

import aiohttp

from adapters.postgres.nodes.pool import Pool
from benchmarks.console import ADDRESS, PORT, ConsoleRequests, wait_for_api
from benchmarks.ingest import print_figure
from benchmarks.stack import Stack, running_stack
from domain.people.model import AuthMethod
from domain.people.usecases.sessions import ClientInfo, SessionService
from tests.support.console_large import LargeOrganisation, create_large_organisation
from tests.support.console_paths import build_paths

_MAX_CPU_MS = 15.0
_MAX_BYTES = 120_000
"""Targets for one page: CPU milliseconds, and uncompressed bytes."""
_SAMPLE_OPERATIONS = ("catalogue.list_products", "runs.push", "sources.create")
"""Operations whose pages of the API reference are measured; with `--every`, the pages of all operations are."""


class LenientConsoleRequests(ConsoleRequests):
    """Client that accepts redirects and client errors as results."""

    async def _get(self, path: str, headers: Mapping[str, str] | None) -> bytes:
        while True:
            request = self.session.get(ADDRESS + path, headers=headers, auto_decompress=False, allow_redirects=False)
            async with request as response:
                body = await response.read()
                if response.status != 429:
                    assert response.status < 500, (path, response.status)
                    return body
            await asyncio.sleep(0.2)


async def prepare(stack: Stack) -> tuple[str, LargeOrganisation]:
    """Create an organisation with much data; return the session cookie of an owner, and what was created."""
    organisation = await stack.create_organisation()
    dependencies = stack.dependencies
    large_organisation = await create_large_organisation(dependencies, organisation)
    async with stack.dependencies[Pool].connect_as_owner() as pooled:
        await pooled.driver_connection.execute("VACUUM ANALYZE")
    _, cookie = await dependencies[SessionService].start(
        large_organisation.owner, [AuthMethod.PASSWORD], ClientInfo("127.0.0.1")
    )
    return cookie, large_organisation


async def measure_pages(
    requests: ConsoleRequests, large_organisation: LargeOrganisation, requests_per_page: int, *, all_operations: bool
) -> None:
    """Print CPU time, median time and size of each page; mark pages that exceed a target."""
    over_count = 0
    for path in build_paths(large_organisation):
        if "/reference/" in path and not all_operations and not path.endswith(_SAMPLE_OPERATIONS):
            continue
        cpu, median, body = await requests.measure_page(path, requests_per_page, {"accept-encoding": "gzip"})
        content = gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body
        is_over = cpu > _MAX_CPU_MS or len(content) > _MAX_BYTES
        over_count += is_over
        text = f"CPU {cpu:6.1f} ms  median {median:6.1f} ms  {len(content) / 1000:6.1f} KB{'  OVER' if is_over else ''}"
        print_figure(path[:96], text)
    print_figure("pages over 15 ms CPU or 120 KB", str(over_count))


async def main(requests_per_page: int, *, all_operations: bool) -> None:
    """Run the measurement against a new API process."""
    async with running_stack(port=PORT) as stack:
        cookie, large_organisation = await prepare(stack)
        api = stack.start_process("api")
        try:
            await wait_for_api(api)
            async with aiohttp.ClientSession(headers={"cookie": f"joinery={cookie}"}) as session:
                await measure_pages(
                    LenientConsoleRequests(session, api.pid),
                    large_organisation,
                    requests_per_page,
                    all_operations=all_operations,
                )
        finally:
            api.terminate()
            api.wait(20)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tries", type=int, default=20)
    parser.add_argument(
        "--every", action="store_true", help="measure the API reference's page of every operation, not only of three"
    )
    options = parser.parse_args()
    asyncio.run(main(options.tries, all_operations=options.every))
