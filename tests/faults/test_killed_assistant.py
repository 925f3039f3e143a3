"""API processes are killed, paused and stopped during turns of the assistant: approved changes are made once, and turns continue."""

import asyncio
import http.client
import json
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import psycopg
import pytest

from domain.assistant.usecases.turns import ALIVE_PERIOD
from tests.flows.api_client import ApiClient
from tests.flows.service_processes import ServiceProcesses, free_port, wait_until
from tests.postgres.databases import create_database
from tests.support.providers import KEY, Pause, Provider, Reply, StreamPart, ToolCall, provider

pytestmark = pytest.mark.soak
MESSAGE = {"message": {"text": "Do it."}}
APPROVAL = {"approvals": [{"id": "call_a", "approve": True}]}
LEASE_SECONDS = ALIVE_PERIOD.total_seconds() + 1
_BLOCKED = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%%sources%%'"


@dataclass
class Processes:
    """Two API processes on one database, of which tests end the first, and the provider of their model."""

    services: ServiceProcesses
    provider: Provider
    process: "subprocess.Popen[bytes]"
    first: ApiClient
    second: ApiClient
    threads: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(4))

    def script(self, *answers: Sequence[StreamPart]) -> None:
        """Let the model answer the next requests with these parts."""
        remaining = list(answers)

        def answer(_: Mapping[str, Any]) -> Reply:
            return self.provider.make_stream(*remaining.pop(0))

        self.provider.answer = answer

    def start_turn(self, client: ApiClient, path: str, body: Any, key: str = "two") -> "Future[tuple[int, bytes]]":
        """Run a turn; the result is the status and the received part of the stream."""
        return self.threads.submit(_receive, client, path, body, key)

    def create_conversation(self) -> str:
        """Return the path of the turns of a new conversation."""
        return f"/v1/assistant/conversations/{self.first.post('/v1/assistant/conversations')['id']}/turns"

    def propose(self, tool: str, arguments: Mapping[str, Any], query: str) -> str:
        """Return the path of a conversation in which a change waits for approval."""
        path = self.create_conversation()
        self.script([ToolCall("search_tools", {"queries": [query]}, "s")], [ToolCall(tool, arguments, "call_a")])
        status, received = self.start_turn(self.first, path, MESSAGE, "one").result()
        assert status == 200 and b"tool-approval-request" in received, received
        return path

    def propose_source(self, name: str) -> str:
        """Return the path of a conversation in which the creation of a source waits for approval."""
        source = {"name": name, "kind": "push", "config": {"currency": "usd"}, "licence_basis": "own_data"}
        return self.propose("sources_create", {"body": source}, "create a source")

    def count_sources(self, name: str) -> int:
        """Return the number of sources with a name."""
        return int(self.services.fetch_value("SELECT count(*) FROM sources WHERE name = %(name)s", name=name))

    @contextmanager
    def block_sources(self) -> Iterator[None]:
        """Lock the sources until the end of the context."""
        with psycopg.connect(self.services.database_url) as connection:
            connection.execute("LOCK TABLE sources IN ACCESS EXCLUSIVE MODE")
            yield

    def wait_until_blocked(self) -> None:
        """Wait until a process waits for the sources."""
        wait_until(lambda: self.services.fetch_value(_BLOCKED), "a process waits for the sources")

    def restart(self) -> None:
        """Start the first process again after its end."""
        self.services.processes.remove(self.process)
        self.process.wait(20)
        self.process = self.services.start_api()


def _receive(client: ApiClient, path: str, body: Any, key: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", client.port, timeout=90)
    headers = {"Authorization": f"Bearer {client.secret}", "Content-Type": "application/json", "Idempotency-Key": key}
    received = b""
    try:
        connection.request("POST", path, json.dumps(body), headers)
        answer = connection.getresponse()
        while data := answer.read1(65536):
            received += data
    except (OSError, http.client.HTTPException):
        return 0, received
    finally:
        connection.close()
    return answer.status, received


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    """Run the processes."""
    with provider("openai") as running:
        env = {
            "JOINERY_MODELS": "openai",
            "JOINERY_MODELS_URL": running.url,
            "JOINERY_MODELS_KEY": KEY,
            "JOINERY_MODEL": "small-1",
            "JOINERY_MODEL_PRICES": "small-1=1/1",
        }
        database_url = asyncio.run(create_database("assistant"))
        services = ServiceProcesses(database_url, tmp_path_factory.mktemp("assistant"), env)
        port = free_port()
        try:
            process = services.start_api()
            services.start("second", ("-m", "entrypoints.cli.main", "api"), JOINERY_PORT=str(port))
            token = services.create_token(services.create_organisation())
            first, second = ApiClient(services.port, token), ApiClient(port, token)
            wait_until(second.is_ready, "the second process is ready", within=40)
            yield Processes(services, running, process, first, second)
        finally:
            services.stop(number=signal.SIGKILL)


def test_a_killed_process_during_a_change(processes: Processes) -> None:
    path = processes.propose_source("Killed during")
    with processes.block_sources():
        turn = processes.start_turn(processes.first, path, APPROVAL)
        processes.wait_until_blocked()
        processes.process.kill()
        assert turn.result()[0] == 0
    time.sleep(LEASE_SECONDS)
    processes.script(["Created."])
    status, received = processes.start_turn(processes.second, path, APPROVAL).result()
    processes.restart()
    assert status == 200 and b"[DONE]" in received and processes.count_sources("Killed during") == 1


def test_a_killed_process_after_a_change(processes: Processes) -> None:
    source = processes.first.create_source("push", name="Before", licence_basis="own_data", config={"currency": "usd"})
    arguments = {"id": source, "if_match": "*", "body": {"name": "After"}}
    path = processes.propose("sources_update", arguments, "change a source")
    processes.script(["Chan", Pause()])
    turn = processes.start_turn(processes.first, path, APPROVAL)
    wait_until(lambda: processes.count_sources("After"), "the change is made")
    time.sleep(1)
    processes.process.kill()
    assert turn.result()[0] == 0
    assert processes.start_turn(processes.second, path, APPROVAL).result()[0] == 0, "the process counts as running"
    processes.second.patch_source(source, name="Later")
    processes.script(["Changed."])
    status, received = processes.start_turn(processes.second, path, APPROVAL).result()
    processes.restart()
    assert status == 200 and b"Changed." in received and b"[DONE]" in received
    assert processes.count_sources("Later") == 1, "the change is not made again"


def test_a_paused_process_during_a_change(processes: Processes) -> None:
    path = processes.propose_source("Paused")
    processes.script(["Created."])
    with processes.block_sources():
        turn = processes.start_turn(processes.first, path, APPROVAL)
        processes.wait_until_blocked()
        processes.process.send_signal(signal.SIGSTOP)
    time.sleep(LEASE_SECONDS)
    status, received = processes.start_turn(processes.second, path, APPROVAL).result()
    assert status == 409 and b"idempotency_request_in_progress" in received
    processes.process.send_signal(signal.SIGCONT)
    status, received = turn.result()
    assert status == 200 and b"[DONE]" in received and processes.count_sources("Paused") == 1
    status, repeated = processes.start_turn(processes.second, path, APPROVAL).result()
    assert status == 200 and repeated.endswith(received[-200:]), "the frames of the first turn precede"


def test_a_paused_process_during_an_answer(processes: Processes) -> None:
    path = processes.create_conversation()
    processes.script(["Old ", Pause(4), "frames ", Pause()], ["New."])
    old = processes.start_turn(processes.first, path, MESSAGE)
    time.sleep(2)
    processes.process.send_signal(signal.SIGSTOP)
    follower = processes.start_turn(processes.second, path, MESSAGE)
    time.sleep(LEASE_SECONDS)
    status, received = processes.start_turn(processes.second, path, MESSAGE).result()
    assert status == 200 and b"New." in received and b"[DONE]" in received
    processes.process.send_signal(signal.SIGCONT)
    for interrupted in (old, follower):
        assert interrupted.result()[0] == 0 and b"[DONE]" not in interrupted.result()[1]
    for client in (processes.first, processes.second):
        assert processes.start_turn(client, path, MESSAGE).result() == (200, received)


def test_a_stopped_process(processes: Processes) -> None:
    path = processes.create_conversation()
    processes.script(["Old ", Pause()], ["New."])
    old = processes.start_turn(processes.first, path, MESSAGE)
    time.sleep(2)
    processes.process.terminate()
    processes.process.wait(30)
    assert old.result()[0] == 0
    status, received = processes.start_turn(processes.second, path, MESSAGE).result()
    processes.restart()
    assert status == 200 and b"New." in received and b"[DONE]" in received
    [(spent, used)] = processes.services.fetch_rows(
        "SELECT (SELECT sum(allowance_micros) FROM assistant_spend), (SELECT sum(cost_micros) FROM model_uses)"
    )
    assert spent == used
