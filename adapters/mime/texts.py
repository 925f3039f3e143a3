"""Decoding of texts in the headers of a message: the author, the subject, and the names of files."""

from email.errors import HeaderParseError
from email.header import decode_header
from email.message import Message
from email.utils import getaddresses, unquote

from adapters.mime.structure import has_parsable_parameters
from domain.kernel import charsets
from domain.mail.model import MAX_TEXT_CHARS, MessageUnreadable
from domain.sources.senders import normalise_address

_MAX_HEADER_CHARS = 8 * 1024
_MAX_NAME_CHARS = 1024
"""Maximum characters of a file name that are decoded; longer names are truncated.

Encoded words are decoded in quadratic time, and a message may contain many file names.
"""
_MAX_FROM_CHARS = 2 * 1024


def find_author(headers: "Message[str, str]") -> str:
    """Return the address of a message's author. Raises MessageUnreadable if there is no author or more than one."""
    fields = headers.get_all("from", [])
    if len(fields) != 1:
        raise MessageUnreadable(f"The message has {len(fields)} From headers; it must have exactly one.")
    text = str(fields[0])
    if len(text) > _MAX_FROM_CHARS:
        raise MessageUnreadable(f"The From header is longer than {_MAX_FROM_CHARS:,} characters.")
    try:
        found = getaddresses([text.replace("\n", " ")])
    except Exception as error:  # the standard library raises undocumented errors for some addresses
        raise MessageUnreadable("The From header cannot be read.") from error
    addresses = [address for _, address in found]
    if len(addresses) != 1 or normalise_address(_decode_raw_utf8(addresses[0])) is None:
        raise MessageUnreadable("The From header must name exactly one email address.")
    return normalise_address(_decode_raw_utf8(addresses[0])) or ""


def _decode_raw_utf8(text: str) -> str:
    """Return the text of a header with any raw bytes in it (surrogates) decoded as UTF-8."""
    try:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()


def decode_header_text(headers: "Message[str, str]", name: str) -> str:
    """Return the header `name` as decoded text on one line, with unprintable characters replaced."""
    value = headers.get(name)
    return "" if value is None else _decode_words(str(value))


def _decode_words(value: str) -> str:
    value = value[:_MAX_HEADER_CHARS]
    try:
        parts = decode_header(value)
    except (HeaderParseError, ValueError):
        return _clean_text(value)
    return _clean_text("".join(_decode_word(text, charset) for text, charset in parts))


def _decode_word(text: bytes | str, charset: str | None) -> str:
    return text if isinstance(text, str) else charsets.decode(text, charset, _MAX_HEADER_CHARS)


def _clean_text(text: str) -> str:
    line = " ".join(_decode_raw_utf8(text).split())
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in line)[:MAX_TEXT_CHARS]


def find_filename(headers: "Message[str, str]") -> str:
    """Return the file name of a part without folders, decoded by RFC 2231 or RFC 2047; empty if there is none."""
    if not (
        has_parsable_parameters(headers, "content-disposition") and has_parsable_parameters(headers, "content-type")
    ):
        return "unnamed"
    try:
        parameter = headers.get_param("filename", None, "content-disposition")
        if parameter is None:
            parameter = headers.get_param("name", None, "content-type")
        name = "" if parameter is None else _decode_parameter(parameter)
    except Exception:  # as above
        return ""
    return clean_filename(_decode_words(name[:_MAX_NAME_CHARS]))


def _decode_parameter(value: str | tuple[str | None, str | None, str]) -> str:
    """Decode the value of a header's parameter by RFC 2231."""
    # The standard library would accept any codec of Python.
    if isinstance(value, str):
        return unquote(value)
    charset, _, text = value
    if charset and charsets.find_codec(charset) is None:
        return text
    return charsets.decode(text[: _MAX_NAME_CHARS * 4].encode("latin-1", "replace"), charset, _MAX_NAME_CHARS)


def clean_filename(name: str) -> str:
    """Return the file name without folders and with unprintable characters replaced.

    Of a longer name, only the last 255 characters are returned. The result may be empty.
    """
    return _clean_text(name.replace("\\", "/").rpartition("/")[2])[-255:].strip()


def find_disposition(headers: "Message[str, str]") -> str:
    """Return the content disposition of a part, such as `attachment` or `inline`; empty if there is none."""
    return str(headers.get("content-disposition", "")).partition(";")[0].strip().lower()
