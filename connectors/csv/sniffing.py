"""Format detection by content, as names and content types of vendors' files are often wrong."""

import json
from pathlib import Path

from connectors.csv.archives import inflated, opened
from connectors.sdk.context import MIB
from connectors.sdk.errors import BadData
from connectors.sdk.readers.x12 import is_x12

_HEAD = 64 * 1024
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")

_NOT_PLAIN = {
    "json": "JSON",
    "json_ld": "JSON-LD",
    "jsonl": "JSON Lines",
    "xml": "XML",
    "xlsx": "an Excel workbook (XLSX)",
}
_ODS = b"application/vnd.oasis.opendocument.spreadsheet"

_REFUSED = (
    (b"%PDF", "this is a PDF; send the table as CSV or XLSX"),
    (b"\x89PNG", "this is a picture (PNG), not a table"),
    (b"\xff\xd8\xff", "this is a picture (JPEG), not a table"),
    (b"GIF8", "this is a picture (GIF), not a table"),
    (b"Rar!", "this is a RAR archive; send the file inside it"),
    (b"7z\xbc\xaf", "this is a 7z archive; send the file inside it"),
    (b"\x1f\x8b", "this is a gzip archive in an archive; send the file inside it"),
    (b"\x78\x9f\x3e\x22", "this is winmail.dat from Outlook; send the attachment as a file"),
)


def sniff(path: Path, format: str | None) -> str:
    """Return one of csv, x12, html, json, jsonl, xml, or of the workbooks xlsx, xls, xlsb, ods.

    `format` is the source's config.format, which decides between text formats. Raises BadData that names the detected
    format if it is none of these.
    """
    with path.open("rb") as file:
        head = file.read(_HEAD)
    if not head.strip(b"\x00 \t\r\n\xef\xbb\xbf"):
        raise BadData("the file is empty")
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _zip_kind(path)
    if head.startswith(b"\xd0\xcf\x11\xe0"):
        with path.open("rb") as file:
            if _ENCRYPTED in file.read(MIB):
                raise BadData("the workbook is locked with a password; save it without one and send that")
        return "xls"
    refused = next((sentence for magic, sentence in _REFUSED if head.startswith(magic)), None)
    if refused:
        raise BadData(refused)
    return "x12" if is_x12(head) else _text_kind(head, format)


def _zip_kind(path: Path) -> str:
    with opened(path) as archive:
        entries = archive.infolist()[:5000]
    names = [entry.filename.lower().replace("\\", "/") for entry in entries]
    if "mimetype" in names:
        with path.open("rb") as file:
            kind = next(inflated(file, entries[names.index("mimetype")], _HEAD), b"")
        if kind.strip().startswith(_ODS):
            return "ods"
        raise BadData("this is an OpenDocument file without a worksheet; send the table as ODS, XLSX or CSV")
    if any(name.endswith("workbook.bin") for name in names):
        return "xlsb"
    if "[content_types].xml" in names:
        if any(name.startswith("xl/") for name in names):
            return "xlsx"
        raise BadData("this is an Office document without a worksheet; send the table as CSV or XLSX")
    raise BadData("this is a zip archive in an archive; send the file inside it")


def _text_kind(head: bytes, format: str | None) -> str:
    text = head.decode("utf-16" if head.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8", errors="replace")
    text = text.lstrip("\ufeff \t\r\n")
    if text.startswith("<"):
        return _markup_kind(text, format)
    if text.startswith(("{", "[")) and format not in {"csv", "tsv"}:
        return "jsonl" if format == "jsonl" else _json_kind(text)
    if format in _NOT_PLAIN:
        raise BadData(f"this is not {_NOT_PLAIN[format]} as the source's settings say")
    return "csv"


def _markup_kind(text: str, format: str | None) -> str:
    """Return xml, or html for a web page if the settings request JSON-LD. Raises BadData for any other web page."""
    start = text[:4096].lower()
    if "<html" in start or start.startswith(("<!doctype html", "<head", "<body", "<div", "<script")):
        if format == "json_ld":
            return "html"
        raise BadData("this is a web page (HTML), perhaps a sign-in page, not a feed")
    return "xml"


def _json_kind(text: str) -> str:
    first, _, rest = text.partition("\n")
    if first.startswith("{") and rest.lstrip().startswith("{"):
        try:
            json.loads(first)
        except (ValueError, RecursionError):
            return "json"
        return "jsonl"
    return "json"
