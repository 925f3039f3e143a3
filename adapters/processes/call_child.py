"""The child's side of a call: runs one function, sends its result and exits."""

import socket
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from adapters.processes.call_messages import (
    Call,
    CallbackRequest,
    CallbackResult,
    Raised,
    Returned,
    Signature,
    decode,
    to_child,
)
from adapters.processes.fork_server import allow_cpu
from adapters.processes.messages import encode, framed, receive_message

Functions = Mapping[str, Callable[..., Any]]
"""Functions by the names that the parent uses."""


def serve(connection: socket.socket, functions: Functions) -> None:
    """Execute the call that the parent sends."""
    call = to_child(_received(connection))
    assert isinstance(call, Call)
    allow_cpu(call.cpu)
    function = functions[call.function]
    signature = Signature.of(function)
    arguments = list(decode(call.arguments, type=signature.arguments))
    if signature.callback is not None:
        arguments[signature.callback] = lambda *given: _call_back(connection, signature, given)
    for part in framed(_result(function, arguments)):
        connection.sendall(part)


def _result(function: Callable[..., Any], arguments: list[Any]) -> Returned | Raised:
    try:
        return Returned(msgspec.Raw(encode(function(*arguments))))
    except Exception as error:
        kind = "OSError" if isinstance(error, OSError) else type(error).__name__
        return Raised(kind, tuple(text for text in error.args if isinstance(text, str)))


def _call_back(connection: socket.socket, signature: Signature, arguments: tuple[Any, ...]) -> Any:
    for part in framed(CallbackRequest(msgspec.Raw(encode(arguments)))):
        connection.sendall(part)
    answer = to_child(_received(connection))
    assert isinstance(answer, CallbackResult)
    return decode(answer.value, type=signature.callback_result)


def _received(connection: socket.socket) -> bytes:
    message = receive_message(connection)
    if message is None:
        raise SystemExit  # the parent exited or closed the connection
    return message
