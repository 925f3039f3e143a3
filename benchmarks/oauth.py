"""CPU time of a request with an OAuth access token, compared with an API key: `python -m benchmarks.oauth [ROUNDS]`.

The application is in memory and called without a network. It looks up a token or key at most twice a second. The last
lines are the times of the look-ups in PostgreSQL, for credentials that are not cached.
"""

import asyncio
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta

from domain.access.model import SCOPES
from domain.access.ports import KeyStore
from domain.access.usecases import generate_secret
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from domain.oauth.model import ACCESS_PREFIX, App, AppKind, AppOrigin, Token, TokenFamily, TokenKind
from domain.oauth.ports import AppStore, TokenStore
from domain.orgs.model import Organisation
from ports.unit_of_work import UnitOfWork
from tests.http.application import OPERATOR, ApplicationHarness, run_application
from tests.http.client import Client
from tests.support import builders
from tests.support.postgres import postgres_backend

REQUESTS_PER_ROUND = 500
LOOK_UPS = 300


async def issue_token(
    uow: UnitOfWork, store: TokenStore, application: ApplicationHarness, org: Organisation
) -> tuple[str, bytes]:
    """Issue an access token of a new machine-to-machine app; return the token and its digest."""
    id_, now, token = new_id("app"), builders.MOMENT, generate_secret(ACCESS_PREFIX)
    app = App(id_, id_, AppKind.MACHINE, AppOrigin.ORGANISATION, "bench", (), SCOPES, now, now, org.id)
    async with uow.begin(Tenant(org.id, True), OPERATOR) as tx:
        await tx[AppStore].add(app)
    family = TokenFamily(new_id("fam"), app.id, org.id, None, None, now, now + timedelta(days=9999))
    digest = application.access.compute_digest(token)
    await store.add_family(family, [Token(digest, family.id, TokenKind.ACCESS, SCOPES, None, now, family.expires_at)])
    return token, digest


async def measure_request_seconds(client: Client) -> float:
    """Return the mean CPU seconds of a request."""
    for _ in range(50):
        await client.get("/v1/nothing")
    cpu_before = time.process_time()
    for _ in range(REQUESTS_PER_ROUND):
        await client.get("/v1/nothing")
    return (time.process_time() - cpu_before) / REQUESTS_PER_ROUND


async def measure_look_ups(*look_ups: Callable[[], Awaitable[Mapping[bytes, object]]]) -> list[float]:
    """Run the look-ups alternately; return the median seconds of each."""
    durations: list[list[float]] = [[] for _ in look_ups]
    for _ in range(LOOK_UPS):
        for look_up_durations, look_up in zip(durations, look_ups, strict=True):
            started = time.perf_counter()
            if not await look_up():
                raise SystemExit("the look-up found no credential")
            look_up_durations.append(time.perf_counter() - started)
    return [statistics.median(look_up_durations) for look_up_durations in durations]


async def compare_look_ups(application: ApplicationHarness) -> None:
    """Print the times of the look-ups of a key and of a token in PostgreSQL."""
    async with postgres_backend() as backend:
        org = await backend.organisation()
        _, digest = await issue_token(backend.uow, backend.token_store, application, org)
        key = builders.api_key(Tenant(org.id, True))
        async with backend.uow.begin(key.tenant, OPERATOR) as tx:
            await tx[KeyStore].add(key)
        key_seconds, token_seconds = await measure_look_ups(
            lambda: backend.credentials.find_keys([key.digest]), lambda: backend.token_proofs.find_tokens([digest])
        )
    print(f"{key_seconds * 1e6:8.1f} µs per look-up of an API key in PostgreSQL (at most twice a second per key)")
    print(f"{token_seconds * 1e6:8.1f} µs per look-up of an access token")
    print(f"{(token_seconds - key_seconds) * 1e6:8.1f} µs difference (target: at most 30)")


async def main(rounds: int) -> None:
    """Print the CPU microseconds of a request with each kind of credential, then the look-ups."""
    async with run_application(areas=()) as application:
        token_text, _ = await issue_token(
            application.uow, application.token_store, application, application.orgs["Elm"]
        )
        clients = {
            "an API key": await application.create_client("Elm"),
            "an OAuth access token": application.build_client(token_text),
        }
        durations: dict[str, list[float]] = {label: [] for label in clients}
        for _ in range(rounds):
            for label, client in clients.items():
                durations[label].append(await measure_request_seconds(client))
        key, token = (statistics.median(label_durations) for label_durations in durations.values())
        for label, label_durations in durations.items():
            print(
                f"{statistics.median(label_durations) * 1e6:8.1f} µs per request with {label} (minimum {min(label_durations) * 1e6:.1f})"
            )
        print(f"{(token - key) * 1e6:8.1f} µs difference (target: at most 30)")
        await compare_look_ups(application)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 7))
