"""What an OAuth access token adds to a request of the API, beside an API key: the CPU of one that does nothing else.

`python -m benchmarks.oauth [ROUNDS]`. The application is in memory and called without a network; a token is looked up at most twice a
second, as a key is. The last lines are the
look-ups themselves in PostgreSQL, as the service does them for a credential that it has not just seen.
"""

import asyncio
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta

from domain.access.model import SCOPES
from domain.access.ports import KeyStore
from domain.access.usecases import secret_with
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from domain.oauth.model import ACCESS_PREFIX, App, AppKind, Family, Origin, Token, TokenKind
from domain.oauth.ports import AppStore, TokenStore
from domain.orgs.model import Organisation
from ports.unit_of_work import UnitOfWork
from tests.http.client import Client
from tests.http.fakes import OPERATOR, World, running
from tests.support import builders
from tests.support.postgres import postgres_backend

AT_ONCE = 500
LOOKS = 300


async def token_of(uow: UnitOfWork, store: TokenStore, world: World, org: Organisation) -> tuple[str, bytes]:
    """An access token of a machine app, and its digest."""
    id_, now, text = new_id("app"), builders.MOMENT, secret_with(ACCESS_PREFIX)
    app = App(id_, id_, AppKind.MACHINE, Origin.ORGANISATION, "bench", (), SCOPES, now, now, org.id)
    async with uow.begin(Tenant(org.id, True), OPERATOR) as tx:
        await tx[AppStore].add(app)
    family = Family(new_id("fam"), app.id, org.id, None, None, now, now + timedelta(days=9999))
    digest = world.access.digest(text)
    await store.issue(family, [Token(digest, family.id, TokenKind.ACCESS, SCOPES, None, now, family.expires_at)])
    return text, digest


async def seconds(client: Client) -> float:
    """CPU seconds a request."""
    for _ in range(50):
        await client.get("/v1/nothing")
    began = time.process_time()
    for _ in range(AT_ONCE):
        await client.get("/v1/nothing")
    return (time.process_time() - began) / AT_ONCE


async def look_ups(*ways: Callable[[], Awaitable[Mapping[bytes, object]]]) -> list[float]:
    """Median seconds of each look-up, in turn."""
    taken: list[list[float]] = [[] for _ in ways]
    for _ in range(LOOKS):
        for times, way in zip(taken, ways, strict=True):
            began = time.perf_counter()
            if not await way():
                raise SystemExit("what is looked up is not known")
            times.append(time.perf_counter() - began)
    return [statistics.median(times) for times in taken]


async def in_postgres(world: World) -> None:
    """The look-ups of a key and of a token."""
    async with postgres_backend() as backend:
        org = await backend.organisation()
        _, digest = await token_of(backend.uow, backend.token_store, world, org)
        key = builders.api_key(Tenant(org.id, True))
        async with backend.uow.begin(key.tenant, OPERATOR) as tx:
            await tx[KeyStore].add(key)
        of_key, of_token = await look_ups(
            lambda: backend.credentials.keys([key.digest]), lambda: backend.token_proofs.proofs([digest])
        )
    print(f"{of_key * 1e6:8.1f} µs a look-up of a key in PostgreSQL, twice a second for each busy one at most")
    print(f"{of_token * 1e6:8.1f} µs a look-up of a token")
    print(f"{(of_token - of_key) * 1e6:8.1f} µs more (bar: 30)")


async def main(rounds: int) -> None:
    """A line a figure, in microseconds."""
    async with running(areas=()) as world:
        text, _ = await token_of(world.uow, world.token_store, world, world.orgs["Elm"])
        clients = {"an API key": await world.client("Elm"), "an OAuth access token": world.stranger(text)}
        found: dict[str, list[float]] = {way: [] for way in clients}
        for _ in range(rounds):
            for way, client in clients.items():
                found[way].append(await seconds(client))
        key, token = (statistics.median(values) for values in found.values())
        for way, values in found.items():
            print(f"{statistics.median(values) * 1e6:8.1f} µs a request, {way} (least {min(values) * 1e6:.1f})")
        print(f"{(token - key) * 1e6:8.1f} µs more with a token (bar: 30)")
        await in_postgres(world)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 7))
