"""Detection of a file's format by its content, because file names and content types of vendors are often wrong."""

import json
import re
from pathlib import Path

from connectors.csv.archives import inflate_entry, open_archive
from connectors.sdk.context import MIB
from connectors.sdk.errors import BadData
from connectors.sdk.readers.schema_org import MAX_PAGE_CHARS
from connectors.sdk.readers.x12 import is_x12

_HEAD_BYTES = 64 * 1024
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")

_FORMAT_NAMES = {
    "json": "JSON",
    "json_ld": "JSON-LD",
    "jsonl": "JSON Lines",
    "xml": "XML",
    "xlsx": "an Excel workbook (XLSX)",
}
_ODS = b"application/vnd.oasis.opendocument.spreadsheet"

_REFUSED_SIGNATURES = (
    (b"%PDF", "the file is a PDF; send the table as CSV or XLSX"),
    (b"\x89PNG", "the file is an image (PNG), not a table"),
    (b"\xff\xd8\xff", "the file is an image (JPEG), not a table"),
    (b"GIF8", "the file is an image (GIF), not a table"),
    (b"Rar!", "the file is a RAR archive; send the file inside it"),
    (b"7z\xbc\xaf", "the file is a 7z archive; send the file inside it"),
    (b"\x1f\x8b", "the file is a gzip archive in an archive; send the unpacked file"),
    (b"\x78\x9f\x3e\x22", "the file is winmail.dat from Outlook; send the attachment as a file"),
)


_SCHEMA_ORG = re.compile(r'"@context"\s*:\s*"https?://schema\.org')


def detect_format(path: Path, format: str | None) -> str:
    """Return the format of a file: csv, x12, html, json, jsonl, json_ld or xml, or for a workbook xlsx, xls, xlsb or ods.

    `format` is the source's setting `format`, which decides between text formats. Raises BadData for any other format.
    """
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    if not head.strip(b"\x00 \t\r\n\xef\xbb\xbf"):
        raise BadData("the file is empty")
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _detect_zip_format(path)
    if head.startswith(b"\xd0\xcf\x11\xe0"):
        with path.open("rb") as file:
            if _ENCRYPTED in file.read(MIB):
                raise BadData("the file is password-protected; send it without a password")
        return "xls"
    message = next((message for signature, message in _REFUSED_SIGNATURES if head.startswith(signature)), None)
    if message:
        raise BadData(message)
    return "x12" if is_x12(head) else _detect_text_format(head, path.stat().st_size, format)


def _detect_zip_format(path: Path) -> str:
    with open_archive(path) as archive:
        entries = archive.infolist()[:5000]
    names = [entry.filename.lower().replace("\\", "/") for entry in entries]
    if "mimetype" in names:
        with path.open("rb") as file:
            kind = next(inflate_entry(file, entries[names.index("mimetype")], _HEAD_BYTES), b"")
        if kind.strip().startswith(_ODS):
            return "ods"
        raise BadData("the file is an OpenDocument file without a worksheet; send the table as ODS, XLSX or CSV")
    if any(name.endswith("workbook.bin") for name in names):
        return "xlsb"
    if "[content_types].xml" in names:
        if any(name.startswith("xl/") for name in names):
            return "xlsx"
        raise BadData("the file is an Office document without a worksheet; send the table as CSV or XLSX")
    raise BadData("the file is a zip archive in an archive; send the unpacked file")


def _detect_text_format(head: bytes, size: int, format: str | None) -> str:
    text = head.decode("utf-16" if head.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8", errors="replace")
    text = text.lstrip("\ufeff \t\r\n")
    if text.startswith("<"):
        return _detect_markup_format(text, format)
    if text.startswith(("{", "[")) and format not in {"csv", "tsv"}:
        detected = "jsonl" if format == "jsonl" else _detect_json_format(text)
        is_document = format is None and detected == "json" and size <= MAX_PAGE_CHARS
        return "json_ld" if format == "json_ld" or (is_document and _SCHEMA_ORG.search(text)) else detected
    if format in _FORMAT_NAMES:
        raise BadData(f"the file is not {_FORMAT_NAMES[format]}; correct or remove config.format")
    return "csv"


def _detect_markup_format(text: str, format: str | None) -> str:
    """Return the format xml, or html for a web page whose JSON-LD is read. Raises BadData for any other web page."""
    start = text[:4096].lower()
    if "<html" in start or start.startswith(("<!doctype html", "<head", "<body", "<div", "<script")):
        if format == "json_ld" or "application/ld+json" in text:
            return "html"
        raise BadData("the file is a web page (HTML), perhaps a sign-in page, not a feed")
    return "xml"


def _detect_json_format(text: str) -> str:
    first, _, rest = text.partition("\n")
    if first.startswith("{") and rest.lstrip().startswith("{"):
        try:
            json.loads(first)
        except (ValueError, RecursionError):
            return "json"
        return "jsonl"
    return "json"
