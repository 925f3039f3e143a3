"""Files read from messages of every structure, and notes about messages that cannot be read reliably."""

import base64
import gzip
import io
import time
import zipfile
from email.message import EmailMessage
from email.policy import SMTP

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.mime.archives import MAX_UNPACKED_BYTES
from adapters.mime.reader import parse_message
from adapters.mime.structure import MAX_LEVELS
from domain.mail.model import AttachmentNote, MessageUnreadable

CSV = b"SKU,Price\nA1,10\nA2,20\n"
HEAD = b"From: Feeds <feeds@vendor.example>\r\nMIME-Version: 1.0\r\n"
MIXED = HEAD + b"Content-Type: multipart/mixed; boundary=b\r\n\r\n"


def list_files(raw: bytes) -> list[tuple[str, bytes | None, str | None]]:
    return [(file.filename, file.content, file.note) for file in parse_message(raw).files]


def build_part(headers: str, body: bytes) -> bytes:
    return b"--b\r\n" + headers.replace("\n", "\r\n").encode() + b"\r\n\r\n" + body + b"\r\n"


def build_multipart(*parts: bytes) -> bytes:
    return MIXED + b"".join(parts) + b"--b--\r\n"


def build_attachment(content: bytes, name: str = "a.csv", declared: str = "application/octet-stream") -> bytes:
    head = f'Content-Type: {declared}\nContent-Disposition: attachment; filename="{name}"\nContent-Transfer-Encoding: base64'
    return build_part(head, base64.encodebytes(content).replace(b"\n", b"\r\n"))


def zip_files(files: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return packed.getvalue()


@pytest.mark.parametrize(
    "declared", ["text/csv", "application/vnd.ms-excel", "image/png", "text/plain", "audio/x", "x"]
)
def test_the_content_of_a_file_determines_its_type(declared: str) -> None:
    assert list_files(build_multipart(build_attachment(CSV, "picture.png", declared))) == [("picture.png", CSV, None)]


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("filename*=UTF-8''Best%C3%A4nde%20%E2%80%93%20K%C3%BCche.csv", "Bestände – Küche.csv"),
        ("filename*0*=UTF-8''Best%C3%A4; filename*1=nde.csv", "Bestände.csv"),
        ('filename="=?utf-8?Q?Best=C3=A4nde=2Ecsv?="', "Bestände.csv"),
        ('filename="=?iso-8859-1?B?S/xjaGUuY3N2?="', "Küche.csv"),
        ('filename="..\\\\..\\\\etc/passwd.csv"', "passwd.csv"),
        ("filename*=nonsense''a%FFb.csv", "aÿb.csv"),
        ('filename="=?x-unknown?Q?a?="', "a"),
    ],
)
def test_file_names_are_read_in_every_encoding(header: str, name: str) -> None:
    [(found, content, _)] = list_files(
        build_multipart(build_part(f"Content-Type: text/csv\nContent-Disposition: attachment; {header}", CSV))
    )
    assert (found, content) == (name, CSV)


def test_the_text_of_a_message_is_not_data() -> None:
    message = EmailMessage(policy=SMTP)
    message["From"], message["Subject"] = "feeds@vendor.example", "Preise für Frühling"
    message.set_content("SKU,Price\nA1,10\nA2,20\n")
    message.add_alternative("<p>SKU</p>", subtype="html")
    message.add_attachment(CSV, maintype="text", subtype="csv", filename="prices.csv")
    found = parse_message(message.as_bytes())
    assert found.subject == "Preise für Frühling" and [file.filename for file in found.files] == ["prices.csv"]


def test_a_message_can_be_a_table() -> None:
    assert list_files(HEAD + b"Content-Type: text/csv\r\n\r\n" + CSV) == [("part 1", CSV, None)]


def test_forwarded_messages_are_searched() -> None:
    inner = build_multipart(build_attachment(CSV)).replace(b"=b\r\n", b"=c\r\n").replace(b"--b", b"--c")
    forwarded = build_multipart(build_part("Content-Type: message/rfc822", inner))
    assert list_files(forwarded) == [("a.csv", CSV, None)]
    assert parse_message(forwarded).sender == "feeds@vendor.example"


def test_duplicate_data_is_read_once() -> None:
    assert [file.note for file in parse_message(build_multipart(build_attachment(CSV), build_attachment(CSV, "b.csv"))).files] == [
        None, AttachmentNote.DUPLICATE,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("content", "note"),
    [
        (b"\x89PNG\r\n\x1a\n" + bytes(50), "not_data"),
        (b"\xff\xd8\xff\xe0" + bytes(50), "not_data"),
        (b"%PDF-1.7\n%\xe2\xe3", "not_data"),
        (b"BEGIN:VCARD\nN:A;B;C\nFN:A;B;C\nEND:VCARD\n", "not_data"),
        (b"BEGIN:VCALENDAR\nA;B:C\nD;E:F\n", "not_data"),
        (b"Dear all,\nplease find attached the list.\nIt is new.\nRegards\n", "not_data"),
        (b"-----BEGIN PGP MESSAGE-----\n\nhQ,a\nb,c\n", "encrypted"),
        (b"<html><body><table><tr><td>1</td></tr></table>", "web_page"),
        (b"<!DOCTYPE HTML><p>", "web_page"),
        (b"\x78\x9f\x3e\x22\x00\x01winmail", "winmail"),
        (b"\r\n \r\n", "empty"),
        (b"", "empty"),
        (b"\xd0\xcf\x11\xe0" + bytes(100) + "EncryptedPackage".encode("utf-16-le"), "encrypted"),
        (b"\xd0\xcf\x11\xe0" + bytes(100) + "WordDocument".encode("utf-16-le"), "not_data"),
        (b"SKU,Price\n", "not_data"),
    ],
)
def test_attachments_without_data_are_reported(content: bytes, note: str) -> None:
    assert list_files(build_multipart(build_attachment(content, "data.csv", "text/csv"))) == [("data.csv", None, note)]


@pytest.mark.parametrize(
    "content",
    [
        CSV,
        CSV.replace(b",", b"\t"),
        CSV.replace(b",", b";"),
        CSV.replace(b",", b"|"),
        CSV.decode().encode("utf-16"),
        b"\xef\xbb\xbf" + CSV,
        "Größe;Preis\nTür;10\n".encode("cp1252"),
        b"Vendor price list\n\nvalid from May\nSKU,Price,Name\n" + b'a,1,"x, y"\n' * 10,
        b'{"products": []}',
        b'[{"sku": 1}]',
        b'<?xml version="1.0"?><items/>',
        b"<items><item/></items>",
        b"\xd0\xcf\x11\xe0" + bytes(100) + "Workbook".encode("utf-16-le"),
        zip_files({"[Content_Types].xml": b"<x/>", "xl/workbook.xml": b"<x/>"}),
    ],
)
def test_data_formats_are_recognised(content: bytes) -> None:
    assert list_files(build_multipart(build_attachment(content, "x"))) == [("x", content, None)]


def test_damaged_encodings_are_reported_and_not_guessed() -> None:
    """Half of a table would withdraw the other half."""
    whole = base64.b64encode(CSV)
    head = 'Content-Disposition: attachment; filename="a.csv"\nContent-Transfer-Encoding: '
    for body in (whole[:-3], whole[:8] + b"!" + whole[8:], whole + b"\r\n-- \r\nfooter of a list"):
        assert list_files(build_multipart(build_part(head + "base64", body))) == [("a.csv", None, "damaged")]
    assert list_files(build_multipart(build_part(head + "quoted-printable", b"SKU,Price\r\nA=ZZ,1\r\nB,2"))) == [
        ("a.csv", None, "damaged")
    ]
    assert list_files(build_multipart(build_part(head + "x-uuencode", CSV))) == [("a.csv", None, "damaged")]
    [(_, content, _)] = list_files(
        build_multipart(build_part(head + "quoted-printable", b"SKU,Pr=\r\nice\r\nA=3D1,10\r\nB,2\r\n"))
    )
    assert content is not None and content.startswith(b"SKU,Price\nA=1,10\n")


def test_a_truncated_message_is_not_read() -> None:
    raw = build_multipart(build_attachment(CSV), build_attachment(CSV.replace(b"A", b"B"), "b.csv"))
    cut = raw[: raw.rindex(b"\r\n--b--")]
    assert list_files(cut) == [("a.csv", CSV, None), ("b.csv", None, "damaged")]


def test_archives_are_unpacked_within_bounds() -> None:
    other = CSV.replace(b"A", b"B")
    packed = zip_files({"in/a.csv": CSV, "__MACOSX/in/._a.csv": b"x", "b.txt": other, "logo.png": b"\x89PNG\r\n\x1a\n"})
    assert list_files(build_multipart(build_attachment(packed, "all.zip"))) == [
        ("a.csv", CSV, None), ("b.txt", other, None), ("logo.png", None, "not_data"),
    ]  # fmt: skip
    assert list_files(build_multipart(build_attachment(gzip.compress(CSV), "a.csv.gz"))) == [("a.csv", CSV, None)]
    assert list_files(build_multipart(build_attachment(gzip.compress(CSV)[:-6], "a.gz"))) == [("a.gz", None, "damaged")]
    assert list_files(build_multipart(build_attachment(packed[:-30], "all.zip"))) == [("all.zip", None, "damaged")]
    assert list_files(build_multipart(build_attachment(zip_files({"inner.zip": packed}), "o.zip"))) == [
        ("inner.zip", None, "not_data")
    ]


def test_archive_bombs_are_reported() -> None:
    bomb = zip_files({f"{number}.csv": bytes(20 * 1024 * 1024) for number in range(3)})
    assert {note for _, _, note in list_files(build_multipart(build_attachment(bomb, "bomb.zip")))} == {"too_large"}
    assert list_files(build_multipart(build_attachment(gzip.compress(bytes(MAX_UNPACKED_BYTES + 1)), "b.gz"))) == [
        ("b.gz", None, "too_large")
    ]
    many = zip_files({f"{number}": b"x" for number in range(1001)})
    assert list_files(build_multipart(build_attachment(many, "many.zip"))) == [("many.zip", None, "too_large")]


def test_encrypted_archives_are_reported() -> None:
    packed = bytearray(zip_files({"a.csv": CSV}))
    packed[6] |= 1
    packed[packed.index(b"PK\x01\x02") + 8] |= 1
    assert list_files(build_multipart(build_attachment(bytes(packed), "a.zip"))) == [("a.csv", None, "encrypted")]


def test_nesting_is_bounded() -> None:
    inner = b"Content-Type: text/csv\r\n\r\n" + CSV
    for level in range(MAX_LEVELS + 1):
        boundary = f"x{level}".encode()
        head = b"Content-Type: multipart/mixed; boundary=" + boundary + b"\r\n\r\n--" + boundary + b"\r\n"
        inner = head + inner + b"\r\n--" + boundary + b"--\r\n"
    with pytest.raises(MessageUnreadable, match="deep"):
        parse_message(HEAD + inner)


def test_hostile_structures_take_linear_time() -> None:
    """Twice the size takes about twice the time: the bound of ten times excludes quadratic time."""

    def measure_seconds(count: int) -> float:
        hostile = [
            MIXED + b"--b" * count + b"\r\n",
            MIXED + b"--b \t" * count,
            MIXED + b"\r\n--b\r\n" * 900 + b"--b" + b" " * count,
            build_multipart(build_part("Content-Type: message/rfc822", b"Content-Type: " + b"a/" * 1000))
            + b"=" * count,
            build_multipart(
                build_part("Content-Transfer-Encoding: quoted-printable\nContent-Type: text/csv", b"=\t" * count)
            ),
            HEAD + b'Content-Type: text/csv; name="' + b"\\" * 30_000 + b'"\r\n\r\n' + b'"' * count,
        ]
        start = time.process_time()
        for raw in hostile:
            try:
                parse_message(raw)
            except MessageUnreadable:
                continue
        return time.process_time() - start

    measure_seconds(1000)
    assert measure_seconds(400_000) < 20 * max(measure_seconds(100_000), 0.05)


@pytest.mark.parametrize(
    "words",
    [
        "=?utf-7?Q?+2AA-?=",
        "=?utf-8?Q?a=00b?=",
        "=?rot13?Q?a?=",
        "=?undefined?Q?a?=",
        "=?idna?Q?xn--a?=",
        "=?utf-8?B?AAA?=",
        "\udcff",
    ],
)
def test_invalid_characters_are_replaced(words: str) -> None:
    raw = f'{HEAD.decode()}Subject: {words}\r\nContent-Type: text/csv; name="{words}"\r\n\r\n'.encode(
        "utf-8", "surrogateescape"
    )
    found = parse_message(raw + CSV)
    for text in (found.subject, found.files[0].filename):
        assert text.isprintable() and text.encode()


def test_names_in_archives_are_made_printable() -> None:
    [(name, content, _)] = list_files(
        build_multipart(build_attachment(zip_files({"in/a\x01\u202eb.csv": CSV}), "a.zip"))
    )
    assert (name, content) == ("a\ufffd\ufffdb.csv", CSV)


@pytest.mark.parametrize(
    "header", ["Content-Type: text/csv", "Content-Type: text/csv\nContent-Disposition: attachment"]
)
def test_parameters_without_a_number_are_not_read(header: str) -> None:
    """The file is still read, without a name."""
    hostile = build_part(header + '; name="' + ";" * 60_000, CSV)
    start = time.process_time()
    assert [(name, note) for name, _, note in list_files(build_multipart(*[hostile] * 100))] == [("unnamed", None)] + [
        ("unnamed", "duplicate")
    ] * 99
    assert list_files(
        HEAD + b"Content-Type: multipart/mixed; boundary=b; x=" + b";" * 60_000 + b"\r\n\r\n" + hostile
    ) == [("unnamed", None, "damaged")]
    assert time.process_time() - start < 30


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.binary(max_size=60),
            st.sampled_from([
                b"From: a@b.example\r\n", b"Content-Type: multipart/mixed; boundary=b\r\n", b"\r\n\r\n", b"\r\n--b\r\n",
                b"\r\n--b--\r\n", b"Content-Type: message/rfc822\r\n", b"Content-Transfer-Encoding: base64\r\n", CSV,
                b"Content-Disposition: attachment; filename*0*=utf-8''%\r\n", b"Subject: =?utf-8?B?/w==?=\r\n",
                b"PK\x03\x04", b"\x1f\x8b\x08", b"=?x?Q?\xff?=", b"From: =?utf-16?Q?a?= <a@b.example>\r\n",
            ]),
        ),
        max_size=25,
    )
)  # fmt: skip
def test_any_message_is_read_or_reported_as_unreadable(pieces: list[bytes]) -> None:
    for raw in (b"".join(pieces), HEAD + b"".join(pieces)):
        try:
            found = parse_message(raw)
        except MessageUnreadable as refused:
            assert str(refused).isprintable() and refused.subject.isprintable()
            continue
        assert found.sender.count("@") == 1
        for text in (found.subject, found.message_id, *(file.filename for file in found.files)):
            text.encode("utf-8")
            assert "\0" not in text
