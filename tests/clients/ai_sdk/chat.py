"""Chats of the AI SDK in a Node.js process, on conversations of a running service whose model is an imitated provider."""

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.flows.api_client import ApiClient
from tests.flows.service_processes import ServiceProcesses
from tests.support.providers import Provider, Reply, StreamPart, ToolCall

Step = StreamPart | Reply | Sequence[StreamPart]
"""Response of the model to one request."""


def search(query: str) -> ToolCall:
    """Return the call that makes tools available."""
    return ToolCall("search_tools", {"queries": [query]}, "call_search")


@dataclass
class Assistant:
    """Person who uses the assistant of a service whose model responds with `steps`."""

    services: ServiceProcesses
    provider: Provider
    api: ApiClient
    node_home: Path
    steps: list[Step] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Let the provider respond with the steps."""
        self.provider.answer = self._respond

    def _respond(self, _: Mapping[str, Any]) -> Reply:
        step = self.steps.pop(0)
        if isinstance(step, Reply):
            return step
        return self.provider.make_stream(
            *(step if isinstance(step, Sequence) and not isinstance(step, str) else [step])
        )

    @contextmanager
    def open_chat(
        self, conversation: str | None = None, port: int | None = None, **environment: str
    ) -> Iterator["Chat"]:
        """Open a chat on a conversation, by default a new one, through the process on a port."""
        conversation = conversation or str(self.api.post("/v1/assistant/conversations")["id"])
        env = {
            "JOINERY_URL": f"http://127.0.0.1:{port or self.services.port}",
            "JOINERY_TOKEN": str(self.api.secret),
            "CONVERSATION": conversation,
            **environment,
        }
        program = [str(self.node_home / "node_modules/node/bin/node"), "--no-warnings", "chat.mjs"]
        with subprocess.Popen(
            program, cwd=self.node_home, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process:
            try:
                yield Chat(process, conversation)
            finally:
                process.kill()


@dataclass
class Chat:
    """Chat of the AI SDK on one conversation."""

    process: "subprocess.Popen[str]"
    conversation: str
    state: dict[str, Any] = field(default_factory=dict)

    def start(self, method: str, argument: Any = None, *, wait_for: str = "") -> dict[str, Any]:
        """Call a method of the chat without waiting for its end; wait until the messages contain a text."""
        return self._send(start=method, argument=argument, wait=wait_for)

    def run(self, method: str, argument: Any = None) -> dict[str, Any]:
        """Call a method of the chat, wait for the end of the stream, and return the state."""
        return self._send(start=method, argument=argument)

    def finish(self) -> dict[str, Any]:
        """Wait for the end of all calls, and return the state."""
        return self._send()

    def _send(self, **command: Any) -> dict[str, Any]:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, "the chat ended; its error output is above"
        self.state = json.loads(line)
        return self.state
