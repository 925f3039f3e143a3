"""The child's side of a call: run one function, send its result, exit."""

import socket
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from adapters.processes.call_messages import Answer, Ask, Call, Raised, Returned, Signature, decode, to_child
from adapters.processes.fork_server import allow_cpu
from adapters.processes.messages import encode, framed, receive_message

Functions = Mapping[str, Callable[..., Any]]
"""By the names that the parent calls them by."""


def serve(connection: socket.socket, functions: Functions) -> None:
    """Make the one call that the parent sends."""
    call = to_child(_received(connection))
    assert isinstance(call, Call)
    allow_cpu(call.cpu)
    function = functions[call.function]
    signature = Signature.of(function)
    arguments = list(decode(call.arguments, type=signature.arguments))
    if signature.callback is not None:
        arguments[signature.callback] = lambda *given: _asked(connection, signature, given)
    for part in framed(_result(function, arguments)):
        connection.sendall(part)


def _result(function: Callable[..., Any], arguments: list[Any]) -> Returned | Raised:
    try:
        return Returned(msgspec.Raw(encode(function(*arguments))))
    except Exception as error:
        kind = "OSError" if isinstance(error, OSError) else type(error).__name__
        return Raised(kind, tuple(text for text in error.args if isinstance(text, str)))


def _asked(connection: socket.socket, signature: Signature, arguments: tuple[Any, ...]) -> Any:
    for part in framed(Ask(msgspec.Raw(encode(arguments)))):
        connection.sendall(part)
    answer = to_child(_received(connection))
    assert isinstance(answer, Answer)
    return decode(answer.value, type=signature.answered)


def _received(connection: socket.socket) -> bytes:
    message = receive_message(connection)
    if message is None:
        raise SystemExit  # the parent is gone, or wants nothing more
    return message
