"""Refuses workbooks that would fill memory, before anything opens them: zip bombs, cells set far apart, texts shown too often."""

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from connectors.csv.archives import inflated, opened
from connectors.csv.shared_texts import SharedTexts
from connectors.csv.worksheets import Worksheet
from connectors.sdk.context import MIB, Limits
from connectors.sdk.errors import BadData

_LONGEST_TAG = 2 * MIB


def inspect(path: Path, limits: Limits) -> None:
    """Unpack every part once without keeping it. Raises BadData when reading the workbook would take too much.

    Every part is looked at, whatever its name: which of them are worksheets is told by the workbook itself, and may be
    any. A worksheet's cells count as the rectangle around them, because that is what reading one takes; a text that
    many cells share counts for each of them.
    """
    texts = SharedTexts(limits.sheet_cells)
    most_shared = 0
    with path.open("rb") as file, opened(path) as archive:
        left = limits.unpacked_bytes
        for entry in archive.infolist():
            sheet = Worksheet()
            for piece in _whole(inflated(file, entry, left)):
                left -= len(piece)
                sheet.look(piece)
                texts.look(piece)
            texts.end()
            _refuse_large(sheet, limits)
            most_shared = max(most_shared, sheet.shared)
        if most_shared * texts.longest > limits.unpacked_bytes:
            _refuse_repeated(file, archive, texts, limits)


def _refuse_large(sheet: Worksheet, limits: Limits) -> None:
    if sheet.cells > limits.sheet_cells:
        fault = f"a worksheet spans {sheet.cells:,} cells; at most {limits.sheet_cells:,} are read from a workbook"
        raise BadData(f"{fault}: save it as CSV and send that")


def _refuse_repeated(file: BinaryIO, archive: zipfile.ZipFile, texts: SharedTexts, limits: Limits) -> None:
    """Raise BadData when the texts that the cells of one worksheet share are too long, each counted for every cell."""
    for entry in archive.infolist():
        left = limits.unpacked_bytes
        for piece in _whole(inflated(file, entry, limits.unpacked_bytes)):
            left -= texts.shown_in(piece)
            if left < 0:
                raise BadData(
                    "the texts of a worksheet's cells are too long taken together; save it as CSV and send that"
                )


def _whole(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The same bytes in pieces that end where no tag is open, or is so after many megabytes."""
    held = b""
    for piece in pieces:
        text = held + piece
        cut = text.rfind(b"<")
        if cut < 0 or text.find(b">", cut) >= 0 or len(text) - cut > _LONGEST_TAG:
            cut = len(text)
        held = text[cut:]
        if cut:
            yield text[:cut]
    if held:
        yield held
