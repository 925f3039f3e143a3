"""Finds a text file's encoding by reading all of it once: the first odd byte may stand in the last row."""

import codecs
from dataclasses import dataclass
from pathlib import Path

_CHUNK = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Encoding:
    """`codec` is Python's name; `skip` are the bytes of the byte order mark; `broken` counts unreadable places."""

    codec: str
    skip: int = 0
    broken: int = 0


def detect(path: Path) -> Encoding:
    """UTF-16 by its mark or zero bytes, UTF-8 when it reads, mostly-UTF-8 with its broken places, else Windows-1252."""
    with path.open("rb") as file:
        head = file.read(4096)
    wide = _wide(head)
    if wide is not None:
        return wide
    skip = 3 if head.startswith(codecs.BOM_UTF8) else 0
    good, broken = _count(path)
    if not broken or good > broken or skip:
        return Encoding("utf-8", skip, broken)
    return Encoding("cp1252", skip)


def _wide(head: bytes) -> Encoding | None:
    if head.startswith(codecs.BOM_UTF16_LE):
        return Encoding("utf-16-le", 2)
    if head.startswith(codecs.BOM_UTF16_BE):
        return Encoding("utf-16-be", 2)
    half = max(len(head) // 2, 1)
    if head[1::2].count(0) > half * 0.6 and head[0::2].count(0) < half * 0.1:
        return Encoding("utf-16-le")
    if head[0::2].count(0) > half * 0.6 and head[1::2].count(0) < half * 0.1:
        return Encoding("utf-16-be")
    return None


def _count(path: Path) -> tuple[int, int]:
    """How many characters beyond ASCII read as UTF-8, and how many places do not."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    good = broken = 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            if chunk.isascii() and not decoder.getstate()[0]:
                continue
            text = decoder.decode(chunk)
            replaced = text.count("\ufffd") - chunk.count(b"\xef\xbf\xbd")
            broken += replaced
            good += len(text) - replaced - _ascii(text)
    tail = decoder.decode(b"", final=True)
    return good, broken + tail.count("\ufffd")


def _ascii(text: str) -> int:
    return len(text.encode("ascii", errors="ignore"))
