"""Protocol between a process and its children: calls as length-prefixed MessagePack, decoded to declared types only.

A child works on hostile input, so none of its messages can run code in the parent.
"""

import errno
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import GenericAlias
from typing import Any, get_args, get_origin, get_type_hints

import msgspec

LENGTH = 8
"""Bytes of a message's length, big-endian, before each."""


class Call(msgspec.Struct, tag=True, frozen=True):
    """A request to call the named function; with `cpu`, the child has so many seconds of CPU time from now on."""

    function: str
    arguments: msgspec.Raw
    cpu: int = 0


class CallbackResult(msgspec.Struct, tag=True, frozen=True):
    """The result of the callback."""

    value: msgspec.Raw


class CallbackRequest(msgspec.Struct, tag=True, frozen=True):
    """A request to call the callback, the function that was passed as an argument."""

    arguments: msgspec.Raw


class Returned(msgspec.Struct, tag=True, frozen=True):
    """The result of the called function."""

    value: msgspec.Raw


class Raised(msgspec.Struct, tag=True, frozen=True):
    """The exception of the called function: the name of its class, its arguments, and the line that raised it."""

    kind: str
    arguments: msgspec.Raw
    place: str


Functions = Mapping[str, Callable[..., Any]]
"""Functions by the names that the parent uses."""
encode = msgspec.msgpack.Encoder().encode
decode = msgspec.msgpack.decode
to_parent = msgspec.msgpack.Decoder(CallbackRequest | Returned | Raised).decode
_to_child = msgspec.msgpack.Decoder(Call | CallbackResult).decode


@dataclass(frozen=True, slots=True)
class Signature:
    """The types of a function's parameters and result.

    `callback` is the position of the parameter that is a function; `callback_arguments` and `callback_result` are the types
    of that function.
    """

    arguments: Any
    result: Any
    callback: int | None = None
    callback_arguments: Any = None
    callback_result: Any = None

    @classmethod
    def of(cls, function: Callable[..., Any]) -> "Signature":
        """Read the annotations of a function whose parameters are plain values, dataclasses, and at most one function."""
        hints = get_type_hints(function)
        result, kinds = hints.pop("return"), list(hints.values())
        callback = next((at for at, kind in enumerate(kinds) if get_origin(kind) is Callable), None)
        if callback is None:
            return cls(_tuple_of(kinds), result)
        parameters, answer = get_args(kinds[callback])
        kinds[callback] = None
        return cls(_tuple_of(kinds), result, callback, _tuple_of(parameters), answer)


def _tuple_of(kinds: Iterable[Any]) -> Any:
    return GenericAlias(tuple, tuple(kinds))


def framed(message: msgspec.Struct) -> Sequence[bytes]:
    """Return the message's length and the message."""
    body = encode(message)
    return len(body).to_bytes(LENGTH), body


def serve(connection: socket.socket, functions: Functions, allow_cpu: Callable[[int], None]) -> None:
    """Execute the parent's calls one after the other, until it closes the connection."""
    while (body := _received(connection)) is not None:
        call = _to_child(body)
        assert isinstance(call, Call)
        if call.cpu:
            allow_cpu(call.cpu)
        function = functions[call.function]
        signature = Signature.of(function)
        arguments = list(decode(call.arguments, type=signature.arguments))
        if signature.callback is not None:
            arguments[signature.callback] = lambda *values, declared=signature: _call_back(connection, declared, values)
        _send(connection, _result(function, arguments))


def _result(function: Callable[..., Any], arguments: list[Any]) -> Returned | Raised:
    try:
        return Returned(msgspec.Raw(encode(function(*arguments))))
    except OSError as error:
        return Raised("OSError", _raw(error.errno or errno.EIO, error.strerror or ""), _place(error))
    except Exception as error:
        try:
            return Raised(type(error).__name__, _raw(*error.args), _place(error))
        except TypeError:
            return Raised(type(error).__name__, _raw(), _place(error))


def _raw(*values: Any) -> msgspec.Raw:
    return msgspec.Raw(encode(values))


def _place(error: BaseException) -> str:
    """Return the file and line that raised the error, without any value."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "?" if trace is None else f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"


def _call_back(connection: socket.socket, signature: Signature, arguments: tuple[Any, ...]) -> Any:
    _send(connection, CallbackRequest(_raw(*arguments)))
    body = _received(connection)
    if body is None:
        raise SystemExit  # the parent exited or closed the connection
    answer = _to_child(body)
    assert isinstance(answer, CallbackResult)
    return decode(answer.value, type=signature.callback_result)


def _send(connection: socket.socket, message: msgspec.Struct) -> None:
    for part in framed(message):
        connection.sendall(part)


def _received(connection: socket.socket) -> bytes | None:
    """Return the body of the next message; None when the other side closes the connection."""
    head = _exactly(connection, LENGTH)
    return None if head is None else _exactly(connection, int.from_bytes(head))


def _exactly(connection: socket.socket, length: int) -> bytes | None:
    received = bytearray()
    while len(received) < length:
        part = connection.recv(min(length - len(received), 1 << 20))
        if not part:
            return None
        received += part
    return bytes(received)
