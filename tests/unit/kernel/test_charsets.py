"""Encodings that senders declare: listed ones are decoded, all others are read as UTF-8."""

import codecs

import pytest

from domain.kernel.charsets import decode, find_codec


@pytest.mark.parametrize(
    ("label", "data", "text"),
    [
        ("ISO-8859-1", b"K\xfcche \x80", "Küche €"),
        ("windows-1251", b"\xcf\xf0\xe8", "При"),
        ("Shift_JIS", b"\x83e", "テ"),
        ("GB2312", b"\xd6\xd0", "中"),
        ("KOI8-R", b"\xf0", "П"),
        ("utf-16", b"\xff\xfea\0", "a"),
        ("iso-2022-jp", b"\x1b$B%F\x1b(B", "テ"),
        (None, b"\xef\xbb\xbfa", "a"),
        ("nonsense", "é".encode(), "é"),
        ("punycode", b"a-b", "a-b"),
    ],
)
def test_texts_are_decoded(label: str | None, data: bytes, text: str) -> None:
    assert decode(data, label, 100) == text


@pytest.mark.parametrize(
    "label",
    ["punycode", "idna", "utf-7", "unicode_escape", "raw_unicode_escape", "base64", "zlib", "bz2", "hex", "rot13", "uu", "quopri", "undefined", "mbcs", "", "a" * 1000, "../x"],
)  # fmt: skip
def test_other_encodings_are_refused(label: str) -> None:
    assert find_codec(label) is None


def test_texts_are_truncated_before_and_after_decoding() -> None:
    assert decode(b"a" * 1000, "utf-8", 10) == "a" * 10
    assert decode("é".encode("utf-16") * 1000, "utf-16", 10) == "é\ufeff" * 5


def test_every_name_is_a_codec() -> None:
    from domain.kernel import charsets

    assert all(codecs.lookup(name) for name in charsets._CODECS.values())
