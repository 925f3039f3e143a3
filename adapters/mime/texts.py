"""Texts in a message's headers: its author, its subject, the names of its files."""

from email.errors import HeaderParseError
from email.header import decode_header
from email.message import Message
from email.utils import getaddresses, unquote

from adapters.mime.structure import has_parameters
from domain.kernel import charsets
from domain.mail.model import LONGEST_TEXT, MessageUnreadable
from domain.sources.senders import address_of

_LONGEST = 8 * 1024
_LONGEST_NAME = 1024
"""Encoded words are parsed in quadratic time, and a message may have a thousand names."""
_LONGEST_FROM = 2 * 1024


def author_of(headers: "Message[str, str]") -> str:
    """Return the address of the one author. Raises MessageUnreadable for none and for several."""
    fields = headers.get_all("from", [])
    if len(fields) != 1:
        raise MessageUnreadable(f"The message has {len(fields)} From headers; it must have one.")
    text = str(fields[0])
    if len(text) > _LONGEST_FROM:
        raise MessageUnreadable("The From header is too long to be read.")
    try:
        found = getaddresses([text.replace("\n", " ")])
    except Exception as error:  # the standard library raises undocumented errors for some addresses
        raise MessageUnreadable("The From header cannot be read.") from error
    addresses = [address for _, address in found]
    if len(addresses) != 1 or address_of(_whole(addresses[0])) is None:
        raise MessageUnreadable("The From header does not name one address.")
    return address_of(_whole(addresses[0])) or ""


def _whole(text: str) -> str:
    """Return the text decoded as UTF-8, if a header contains raw UTF-8."""
    try:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()


def header_text(headers: "Message[str, str]", name: str) -> str:
    """Return a header as text: encoded words decoded, one line, nothing unprintable."""
    value = headers.get(name)
    return "" if value is None else _decoded(str(value))


def _decoded(value: str) -> str:
    value = value[:_LONGEST]
    try:
        parts = decode_header(value)
    except (HeaderParseError, ValueError):
        return _clean(value)
    return _clean("".join(_word(text, charset) for text, charset in parts))


def _word(text: bytes | str, charset: str | None) -> str:
    return text if isinstance(text, str) else charsets.decode(text, charset, _LONGEST)


def _clean(text: str) -> str:
    whole = " ".join(_whole(text).split())
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in whole)[:LONGEST_TEXT]


def filename_of(headers: "Message[str, str]") -> str:
    """Return the file's name without folders (RFC 2231, RFC 2047, plain); empty if there is none."""
    if not (has_parameters(headers, "content-disposition") and has_parameters(headers, "content-type")):
        return "unnamed"
    try:
        given = headers.get_param("filename", None, "content-disposition")
        if given is None:
            given = headers.get_param("name", None, "content-type")
        name = "" if given is None else _parameter(given)
    except Exception:  # as above
        return ""
    return plain_name(_decoded(name[:_LONGEST_NAME]))


def _parameter(value: str | tuple[str | None, str | None, str]) -> str:
    """Decode a parameter's value, as the standard library's decoding of RFC 2231 accepts any codec of Python."""
    if isinstance(value, str):
        return unquote(value)
    charset, _, text = value
    if charset and charsets.codec_of(charset) is None:
        return text
    return charsets.decode(text[: _LONGEST_NAME * 4].encode("latin-1", "replace"), charset, _LONGEST_NAME)


def plain_name(name: str) -> str:
    """Return the last part of a path, printable and bounded in length."""
    return _clean(name.replace("\\", "/").rpartition("/")[2])[-255:].strip()


def disposition_of(headers: "Message[str, str]") -> str:
    """Return `attachment`, `inline` or another word; empty if there is none."""
    return str(headers.get("content-disposition", "")).partition(";")[0].strip().lower()
