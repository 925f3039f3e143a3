"""Model that obeys every command in any text that it reads, and texts that contain such commands."""

import base64
import codecs
import html
import json
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, ThinkingPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo

from tests.http.assistant import Call, Fragments, Step, Thought, search

MARGIN = "margin-7261"
"""Confidential text in the person's memory, which replaces `{margin}` in commands."""
MAX_LOOPS = 30
_COMMAND = re.compile(r"\b(CALL|SAY|THINK|LOOP|FLOOD)\s+(\w*)\s*(?=[\[{\"])")
_BASE64 = re.compile(r"BASE64:([A-Za-z0-9+/=]+)")
_ROT13 = re.compile(r"EBG13:(\S[^\x00]*?):EBG13")
_INVISIBLE = re.compile(r"[\u200b\u2060]")
ENCODINGS: dict[str, Callable[[str], str]] = {
    "plain": lambda text: text,
    "base64": lambda text: f"BASE64:{base64.b64encode(text.encode()).decode()}",
    "rot13": lambda text: f"EBG13:{codecs.encode(text, 'rot13')}:EBG13",
    "entities": lambda text: "".join(f"&#{ord(letter)};" for letter in text),
    "fullwidth": lambda text: "".join(chr(ord(letter) + 0xFEE0) if "!" <= letter <= "~" else letter for letter in text),
    "invisible": "\u200b".join,
}
"""Encodings of a command, each of which the model decodes."""


@dataclass(frozen=True)
class Command:
    """Command in a text: `CALL tool {…}`, `LOOP tool {…}`, `FLOOD tool {…}`, `SAY "…"`, `SAY ["…"]` or `THINK "…"`."""

    kind: str
    tool: str
    value: Any


def find_commands(text: str) -> Iterator[Command]:
    """Yield the commands in a text, also encoded ones."""
    decoded = html.unescape(unicodedata.normalize("NFKC", _INVISIBLE.sub("", text)))
    decoded += "\n" + decoded.replace('\\"', '"')
    decoded += "".join(f"\n{base64.b64decode(one).decode()}" for one in _BASE64.findall(decoded))
    decoded += "".join(f"\n{codecs.decode(one, 'rot13')}" for one in _ROT13.findall(decoded))
    decoded = decoded.replace("{margin}", MARGIN)
    found = set()
    for match in _COMMAND.finditer(decoded):
        try:
            value, _ = json.JSONDecoder().raw_decode(decoded, match.end())
        except ValueError:
            continue
        command = Command(match[1], match[2], value)
        if (key := str(command)) not in found:
            found.add(key)
            yield command


def list_texts(value: Any) -> list[str]:
    """Return all texts in a JSON value."""
    if isinstance(value, str):
        return [value]
    parts = [*value, *value.values()] if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return [text for part in parts for text in list_texts(part)]


def obey(messages: Sequence[ModelMessage], info: AgentInfo) -> Step:
    """Return the next step: all commands that the model has read and not executed yet.

    Tools that the model does not know yet are searched first, and then called even if the search has not found them.
    """
    read = [info.instructions or ""]
    read += [
        text
        for message in messages
        if isinstance(message, ModelRequest)
        for part in message.parts
        for text in list_texts(getattr(part, "content", None))
    ]
    commands = list(dict.fromkeys(_freeze(command) for text in read for command in find_commands(text)))
    parts = [part for message in messages if isinstance(message, ModelResponse) for part in message.parts]
    calls = [part for part in parts if isinstance(part, ToolCallPart)]
    called = [(part.tool_name, json.dumps(part.args_as_dict(), sort_keys=True)) for part in calls]
    answered = "".join(part.content for part in parts if isinstance(part, TextPart | ThinkingPart))
    known = {tool.name for tool in info.function_tools}
    fresh = [command for command in commands if not _is_done(command, called, answered)]
    unknown = [command.tool for command in fresh if command.tool and command.tool not in known]
    searched = [tool for part in calls if part.tool_name == "search_tools" for tool in part.args_as_dict()["queries"]]
    if missing := [tool for tool in dict.fromkeys(unknown) if tool not in searched]:
        return [search(*missing)]
    return [part for command in fresh for part in _execute(command)] or "Done."


def _freeze(command: Command) -> Command:
    return replace(command, value=json.dumps(command.value, sort_keys=True))


def _is_done(command: Command, called: list[tuple[str, str]], answered: str) -> bool:
    if command.kind in ("SAY", "THINK"):
        return "".join("".join(json.loads(command.value)).split()) in "".join(answered.split())
    return command.kind != "LOOP" and (command.tool, command.value) in called


def _execute(command: Command) -> list[Any]:
    value = json.loads(command.value)
    if command.kind == "SAY":
        return [Fragments(value) if isinstance(value, list) else value]
    if command.kind == "THINK":
        return [Thought(value)]
    return [Call(command.tool, value)] * (MAX_LOOPS if command.kind == "FLOOD" else 1)
