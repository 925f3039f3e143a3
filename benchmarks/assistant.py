"""Time that the service adds to a turn of the assistant, and memory of open streams (`make bench-assistant`).

The model is the imitated provider of the tests, in a process of its own, with OpenAI's API. Turns alternate with requests directly
to the provider.
"""

import argparse
import asyncio
import multiprocessing
import os
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import httpx2

from adapters.pydantic_ai.providers import ModelServer
from adapters.pydantic_ai.transport import create_http_client
from benchmarks.ingest import print_figure
from benchmarks.stack import AUDIT_CONTEXT, Stack, running_stack
from benchmarks.write import wait_until_ready
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from domain.orgs.model import Member
from domain.orgs.ports import OrgStore
from domain.people.model import User
from domain.people.ports import People
from domain.people.usecases.sessions import SessionService
from ports.clock import Clock
from ports.unit_of_work import UnitOfWork
from tests.support.providers import KEY, Pause, Reply, provider

WORDS = 50
"""Words of an answer; each is a part of the stream."""
PAUSES = {"Hello.": 0.0, "Slowly.": 0.02, "Wait.": 600.0}
"""Seconds between the words of the answer to a message."""
TURNS_PER_ORGANISATION = 10
MODEL = "small-1"
_MIB = 1 << 20


def _serve_provider(connection: Connection) -> None:
    """Run the provider, and send its URL; end when the connection is closed."""
    with provider("openai") as running:

        def answer(body: Mapping[str, Any]) -> Reply:
            pause = PAUSES[body["messages"][-1]["content"]]
            parts = [("table ", Pause(pause)) for _ in range(WORDS)] if pause else [("table " * WORDS,)]
            return running.make_stream(*(part for group in parts for part in group))

        running.answer = answer
        connection.send(running.url)
        connection.poll(None)


@contextmanager
def running_provider() -> Iterator[str]:
    """Run the provider in a process; yield its URL."""
    connection, other = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_serve_provider, args=(other,), daemon=True)
    process.start()
    try:
        yield connection.recv()
    finally:
        process.terminate()
        process.join()


async def create_client(stack: Stack) -> httpx2.AsyncClient:
    """Create an organisation with an owner; return a client with the owner's token."""
    parts, organisation = stack.dependencies, await stack.create_organisation()
    now = parts[Clock].now()
    user = await parts[People].add(User(new_id("usr"), f"{new_id('usr')[4:]}@bench.test", "Ada", now, now))
    async with parts[UnitOfWork].begin(Tenant(organisation.id, True), AUDIT_CONTEXT) as tx:
        await tx[OrgStore].add_member(Member(user.id, organisation.id, user.email, "owner", now))
    _, token = await parts[SessionService].create_token(user, organisation.id)
    return httpx2.AsyncClient(
        base_url=f"http://127.0.0.1:{stack.settings.port}",
        headers={"Authorization": f"Bearer {token}"},
        timeout=120,
        trust_env=False,
    )


async def create_conversation(client: httpx2.AsyncClient) -> str:
    """Create a conversation; return the path of its turns."""
    response = await client.post("/v1/assistant/conversations", headers={"Idempotency-Key": new_id("req")})
    assert response.status_code == 201, response.text
    return f"/v1/assistant/conversations/{response.json()['id']}/turns"


async def measure_stream(
    client: httpx2.AsyncClient, path: str, body: Any, is_text: Callable[[str], bool], *, is_complete: bool = True
) -> tuple[float, float]:
    """Send a request; return the seconds until the first text and until the end, or only until the text."""
    started, first = time.perf_counter(), None
    headers = {"Idempotency-Key": new_id("req")}
    async with client.stream(
        "POST", path, json=body, headers=headers if path.startswith("/v1/assistant") else {}
    ) as response:
        assert response.status_code == 200, await response.aread()
        async for line in response.aiter_lines():
            if first is None and is_text(line):
                first = time.perf_counter() - started
                if not is_complete:
                    await asyncio.Event().wait()
    assert first is not None
    return first, time.perf_counter() - started


async def measure_overhead(stack: Stack, url: str, message: str, turns: int) -> None:
    """Print the times of turns with a message, of requests directly to the provider, and the difference."""
    direct_body = {
        "model": MODEL,
        "messages": [{"role": "user", "content": message}],
        "max_completion_tokens": 4000,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    direct: list[tuple[float, float]] = []
    through: list[tuple[float, float]] = []
    async with (
        await create_client(stack) as client,
        create_http_client(ModelServer("openai", url), {"Authorization": f"Bearer {KEY}"}) as provider_client,
    ):
        for _ in range(turns + 1):
            direct.append(
                await measure_stream(
                    provider_client, f"{url}/chat/completions", direct_body, lambda line: '"content": "table' in line
                )
            )
            path = await create_conversation(client)
            body = {"message": {"text": message}}
            through.append(await measure_stream(client, path, body, lambda line: '"type":"text-delta"' in line))
    print_figure(f"{PAUSES[message]} s between words: first turn", _format_times(through[0]))
    medians = [
        [statistics.median(one[index] for one in all_times[1:]) for index in (0, 1)] for all_times in (direct, through)
    ]
    print_figure("  provider directly: first text, whole answer", _format_times(medians[0]))
    print_figure("  turn: first text, whole turn", _format_times(medians[1]))
    print_figure("  added by the service", _format_times([b - a for a, b in zip(*medians, strict=True)]))


def _format_times(seconds: Any) -> str:
    return "   ".join(f"{1e3 * value:8.1f} ms" for value in seconds)


async def measure_memory(stack: Stack, pid: int, streams: int) -> None:
    """Print the resident memory of the API per turn that waits for the model."""
    clients = [await create_client(stack) for _ in range(-(-streams // TURNS_PER_ORGANISATION))]
    body, before = {"message": {"text": "Wait."}}, _read_resident_bytes(pid)
    tasks = []
    received = 0

    def is_text(line: str) -> bool:
        nonlocal received
        received += '"type":"text-delta"' in line
        return '"type":"text-delta"' in line

    for number in range(streams):
        client = clients[number % len(clients)]
        path = await create_conversation(client)
        tasks.append(asyncio.create_task(measure_stream(client, path, body, is_text, is_complete=False)))
    while received < streams:
        await asyncio.sleep(0.1)
        assert not any(task.done() for task in tasks), [task for task in tasks if task.done()]
    after = _read_resident_bytes(pid)
    print_figure(
        f"resident memory with {streams} open turns",
        f"{after / _MIB:8.1f} MiB   before {before / _MIB:.1f} MiB   per turn {(after - before) / streams / 1024:.0f} KiB",
    )
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    for client in clients:
        await client.aclose()


def _read_resident_bytes(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


async def main(turns: int, streams: int) -> None:
    """Run all measurements with a new database."""
    print_figure("load average before", " ".join(f"{load:.2f}" for load in os.getloadavg()))
    with running_provider() as url:
        async with running_stack(
            JOINERY_MODELS="openai",
            JOINERY_MODELS_URL=url,
            JOINERY_MODELS_KEY=KEY,
            JOINERY_MODEL=MODEL,
            JOINERY_MODEL_PRICES=f"{MODEL}=0/0",
        ) as stack:
            api = stack.start_process("api")
            try:
                await wait_until_ready(stack.settings.port)
                for message in ("Hello.", "Slowly."):
                    await measure_overhead(stack, url, message, turns)
                await measure_memory(stack, api.pid, streams)
            finally:
                api.terminate()
                api.wait()


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--turns", type=int, default=30)
    options.add_argument("--streams", type=int, default=100)
    given = options.parse_args()
    asyncio.run(main(given.turns, given.streams))
