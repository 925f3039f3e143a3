"""Detection of data files by their content, because names and declared types of mailed files are often wrong."""

import re
from collections import Counter

from domain.kernel.enums import StoredEnum
from domain.mail.model import AttachmentNote

_HEAD = 64 * 1024
_LINES = 50
_DELIMITERS = "\t;,|"
_BINARY = re.compile("[\x00-\x08\x0e-\x19\x1b-\x1f]")
_QUOTED = re.compile(r'"[^"\n]*"')
_WEB = ("<!doctype html", "<html", "<head", "<body", "<div", "<table", "<meta", "<script", "<style", "<p", "<br")
_WORDS = ("begin:vcard", "begin:vcalendar", "-----begin pgp signature", "%!ps", "{\\rtf", "#!")
_SEALED = "-----begin pgp message"
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
_BOOKS = tuple(name.encode("utf-16-le") for name in ("Workbook", "Book\x00"))
_TNEF = b"\x78\x9f\x3e\x22"


class ContentKind(StoredEnum):
    """Kinds of data files: a plain file, or an archive of such files."""

    FILE = "file"
    ZIP = "zip"
    GZIP = "gzip"


def detect_kind(content: bytes) -> ContentKind | AttachmentNote:
    """Return the kind of data file that the content is, or the reason why it is not a data file."""
    if not content.strip(b"\x00 \t\r\n\xef\xbb\xbf"):
        return AttachmentNote.EMPTY
    if content.startswith(b"\x1f\x8b"):
        return ContentKind.GZIP
    if content.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return ContentKind.ZIP
    if content.startswith(b"\xd0\xcf\x11\xe0"):
        return _classify_compound_file(content)
    if content.startswith(_TNEF):
        return AttachmentNote.WINMAIL
    return _classify_text(_decode(content[:_HEAD]), is_complete=len(content) <= _HEAD)


def _classify_compound_file(content: bytes) -> ContentKind | AttachmentNote:
    if _ENCRYPTED in content:
        return AttachmentNote.ENCRYPTED
    return ContentKind.FILE if any(name in content for name in _BOOKS) else AttachmentNote.NOT_DATA


def _decode(head: bytes) -> str:
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return head.decode("utf-16", errors="replace")
    try:
        return head.decode("utf-8-sig")
    except UnicodeDecodeError:
        return head.decode("latin-1")


def _classify_text(text: str, *, is_complete: bool) -> ContentKind | AttachmentNote:
    if _BINARY.search(text):
        return AttachmentNote.NOT_DATA
    start = text.lstrip("\ufeff \t\r\n")
    low = start[:4096].lower()
    if low.startswith(_SEALED):
        return AttachmentNote.ENCRYPTED
    if low.startswith(_WORDS):
        return AttachmentNote.NOT_DATA
    if low.startswith("<"):
        return _classify_markup(low)
    if low.startswith(("{", "[")):
        return ContentKind.FILE
    return ContentKind.FILE if _is_table(start, is_complete=is_complete) else AttachmentNote.NOT_DATA


def _classify_markup(low: str) -> ContentKind | AttachmentNote:
    if low.startswith(_WEB) or "<html" in low:
        return AttachmentNote.WEB_PAGE
    return AttachmentNote.NOT_DATA if "<svg" in low else ContentKind.FILE


def _is_table(text: str, *, is_complete: bool) -> bool:
    """Return whether the text is a table of delimited values.

    At least two lines, and half of the first 50, must have the same number of one delimiter.
    """
    lines = text[:_HEAD].splitlines()
    if not is_complete:
        lines = lines[:-1]
    unquoted = [_QUOTED.sub("", line) for line in lines if line.strip()][:_LINES]
    if len(unquoted) < 2:
        return False
    for delimiter in _DELIMITERS:
        counts = Counter(line.count(delimiter) for line in unquoted)
        del counts[0]
        if counts and counts.most_common(1)[0][1] >= max(2, len(unquoted) / 2):
            return True
    return False
