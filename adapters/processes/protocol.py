"""Protocol of function calls between a parent process and a child: MessagePack with a length prefix.

A child processes untrusted input. Messages are therefore decoded to declared types only, and can run no code in the
parent.
"""

import errno
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import GenericAlias
from typing import Any, get_args, get_origin, get_type_hints

import msgspec

PREFIX_BYTES = 8
"""Number of bytes of the length prefix before each message, which is big-endian."""


class Call(msgspec.Struct, tag=True, frozen=True):
    """Request of the parent to call a function in the child.

    Attributes:
        function: Name of the function.
        arguments: Encoded arguments.
        cpu: Seconds of CPU time that the child may use from now on; 0 leaves the limit unchanged.
    """

    function: str
    arguments: msgspec.Raw
    cpu: int = 0


class CallbackResult(msgspec.Struct, tag=True, frozen=True):
    """Return value of a callback, which the parent sends to the child."""

    value: msgspec.Raw


class CallbackRequest(msgspec.Struct, tag=True, frozen=True):
    """Request of the child to call the callback: the function that is an argument of the current call."""

    arguments: msgspec.Raw


class Returned(msgspec.Struct, tag=True, frozen=True):
    """Return value of the called function, which the child sends to the parent."""

    value: msgspec.Raw


class Raised(msgspec.Struct, tag=True, frozen=True):
    """Exception that the called function raised.

    Attributes:
        kind: Name of the exception's class.
        arguments: Encoded arguments of the exception.
        place: File and line that raised the exception.
    """

    kind: str
    arguments: msgspec.Raw
    place: str


Functions = Mapping[str, Callable[..., Any]]
"""Functions that a child provides, by the names that the parent uses in calls."""
encode = msgspec.msgpack.Encoder().encode
decode = msgspec.msgpack.decode
decode_for_parent = msgspec.msgpack.Decoder(CallbackRequest | Returned | Raised).decode
_decode_for_child = msgspec.msgpack.Decoder(Call | CallbackResult).decode


@dataclass(frozen=True, slots=True)
class CallSignature:
    """Types of a function's parameters and result.

    Attributes:
        arguments: Tuple type of the parameters.
        result: Type of the result.
        callback_index: Index of the parameter that is a function; None without such a parameter.
        callback_arguments: Tuple type of the callback's parameters.
        callback_result: Type of the callback's result.
    """

    arguments: Any
    result: Any
    callback_index: int | None = None
    callback_arguments: Any = None
    callback_result: Any = None

    @classmethod
    def from_function(cls, function: Callable[..., Any]) -> "CallSignature":
        """Return the signature of a function from its annotations; at most one parameter may be a Callable."""
        hints = get_type_hints(function)
        result, kinds = hints.pop("return"), list(hints.values())
        callback = next((at for at, kind in enumerate(kinds) if get_origin(kind) is Callable), None)
        if callback is None:
            return cls(_build_tuple_type(kinds), result)
        parameters, callback_result = get_args(kinds[callback])
        kinds[callback] = None
        return cls(_build_tuple_type(kinds), result, callback, _build_tuple_type(parameters), callback_result)


def _build_tuple_type(kinds: Iterable[Any]) -> Any:
    return GenericAlias(tuple, tuple(kinds))


def frame_message(message: msgspec.Struct) -> Sequence[bytes]:
    """Encode a message; return the bytes of its length prefix and of its body."""
    body = encode(message)
    return len(body).to_bytes(PREFIX_BYTES), body


def serve(connection: socket.socket, functions: Functions, allow_cpu: Callable[[int], None]) -> None:
    """Execute the parent's calls in a child, one after another, until the parent closes the connection.

    Args:
        connection: Socket to the parent.
        functions: Functions that the parent may call, by name.
        allow_cpu: Function that sets the seconds of CPU time that the process may use from now on.
    """
    while (body := _receive_message(connection)) is not None:
        call = _decode_for_child(body)
        assert isinstance(call, Call)
        if call.cpu:
            allow_cpu(call.cpu)
        function = functions[call.function]
        signature = CallSignature.from_function(function)
        arguments = list(decode(call.arguments, type=signature.arguments))
        if signature.callback_index is not None:
            arguments[signature.callback_index] = partial(_request_callback, connection, signature)
        _send_message(connection, _execute_call(function, arguments))


def _execute_call(function: Callable[..., Any], arguments: list[Any]) -> Returned | Raised:
    try:
        return Returned(msgspec.Raw(encode(function(*arguments))))
    except OSError as error:
        return Raised(
            "OSError", _encode_values(error.errno or errno.EIO, error.strerror or ""), _describe_location(error)
        )
    except Exception as error:
        try:
            return Raised(type(error).__name__, _encode_values(*error.args), _describe_location(error))
        except TypeError:
            return Raised(type(error).__name__, _encode_values(), _describe_location(error))


def _encode_values(*values: Any) -> msgspec.Raw:
    return msgspec.Raw(encode(values))


def _describe_location(error: BaseException) -> str:
    """Return the file and the line number that raised an error, as text."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "?" if trace is None else f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"


def _request_callback(connection: socket.socket, signature: CallSignature, *arguments: Any) -> Any:
    """Make the parent call the callback of the current call; return the callback's result."""
    _send_message(connection, CallbackRequest(_encode_values(*arguments)))
    body = _receive_message(connection)
    if body is None:
        raise SystemExit  # the parent exited or closed the connection
    result = _decode_for_child(body)
    assert isinstance(result, CallbackResult)
    return decode(result.value, type=signature.callback_result)


def _send_message(connection: socket.socket, message: msgspec.Struct) -> None:
    for part in frame_message(message):
        connection.sendall(part)


def _receive_message(connection: socket.socket) -> bytes | None:
    """Receive and return the body of the next message; return None if the other process has closed the connection."""
    prefix = _receive_exactly(connection, PREFIX_BYTES)
    return None if prefix is None else _receive_exactly(connection, int.from_bytes(prefix))


def _receive_exactly(connection: socket.socket, length: int) -> bytes | None:
    received = bytearray()
    while len(received) < length:
        part = connection.recv(min(length - len(received), 1 << 20))
        if not part:
            return None
        received += part
    return bytes(received)
