"""Decoding of bytes in the character encoding that a sender has stated.

Some of Python's codecs take quadratic time (punycode, idna), decompress (zlib, bz2) or keep state (utf-7), and Python
caches every unknown name for ever. Labels are therefore looked up here, among common encodings that are decoded in linear
time (https://encoding.spec.whatwg.org/#names-and-labels).
"""

import re

_SEPARATORS = re.compile(r"[-_ .:()]")
_LONGEST_LABEL = 40
_ALIASES = {
    "unicode11utf8": "utf-8", "utf8mb4": "utf-8", "utf8sig": "utf-8-sig", "unicode": "utf-16", "ucs2": "utf-16",
    "usascii": "cp1252", "ascii": "cp1252", "latin1": "cp1252", "l1": "cp1252", "iso88591": "cp1252",
    "latin2": "iso8859-2", "latin5": "iso8859-9", "latin9": "iso8859-15", "cyrillic": "iso8859-5", "greek": "iso8859-7",
    "macintosh": "mac_roman", "macroman": "mac_roman", "xmacroman": "mac_roman", "maccyrillic": "mac_cyrillic", "xmaccyrillic": "mac_cyrillic",
    "koi8": "koi8-r", "gb2312": "gb18030", "gbk": "gb18030", "xgbk": "gb18030", "cp936": "gb18030", "euccn": "gb18030",
    "big5": "big5hkscs", "cp950": "big5hkscs", "cnbig5": "big5hkscs",
    "sjis": "cp932", "shiftjis": "cp932", "xsjis": "cp932", "ms932": "cp932", "windows31j": "cp932",
    "xeucjp": "euc_jp", "ksc5601": "cp949", "euckr": "cp949", "windows949": "cp949", "uhc": "cp949",
    "iso2022jp": "iso2022_jp", "csiso2022jp": "iso2022_jp", "windows874": "cp874", "tis620": "cp874", "iso885911": "cp874", "iso88598i": "iso8859-8",
}  # fmt: skip
_NAMES = (
    "utf-8", "utf-16", "utf-16-le", "utf-16-be", "gb18030", "big5hkscs", "cp932", "euc_jp", "cp949", "cp874", "koi8-r", "koi8-u",
    "mac_roman", "mac_cyrillic", "cp437", "cp850", "cp852", "cp855", "cp858", "cp866",
    *(f"iso8859-{part}" for part in (2, 3, 4, 5, 6, 7, 8, 9, 10, 13, 14, 15, 16)),
    *(f"cp{page}" for page in range(1250, 1259)),
)  # fmt: skip
_CODECS = {
    **{_SEPARATORS.sub("", name): name for name in _NAMES},
    **{f"windows{page}": f"cp{page}" for page in range(1250, 1259)},
    **_ALIASES,
}


def find_codec(label: str | None) -> str | None:
    """Return the name of the Python codec for the label of an encoding, such as `latin1`; None if it is not supported."""
    if not label or len(label) > _LONGEST_LABEL:
        return None
    return _CODECS.get(_SEPARATORS.sub("", label.strip().lower()))


def decode(data: bytes, label: str | None, max_chars: int) -> str:
    """Decode bytes in the encoding with the label, or in UTF-8 if the encoding is not supported.

    At most `max_chars` characters are returned. Bytes that cannot be decoded are replaced by U+FFFD.
    """
    codec = find_codec(label) or "utf-8-sig"
    return data[: 4 * max_chars + 4].decode(codec, "replace")[:max_chars]
