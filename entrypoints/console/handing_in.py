"""A file that a browser sent, handed in to a source by the API's own steps: announce, bytes, complete."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

from entrypoints.console.forms import Upload
from entrypoints.console.visit import Visit

_SLICE: Final = 256 << 10
_TYPES: Final = {
    "csv": "text/csv",
    "tsv": "text/tab-separated-values",
    "json": "application/json",
    "xml": "application/xml",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}


def name_of(upload: Upload) -> str:
    """The file's name alone, as uploads take it."""
    plain = upload.name.replace("\\", "/").rpartition("/")[2]
    return "".join(char for char in plain if char.isprintable()).strip().lstrip(".")[-200:] or "file"


def type_of(name: str) -> str:
    """The media type by the name's end; what a file is, its bytes tell."""
    return _TYPES.get(name.rpartition(".")[2].lower(), "application/octet-stream")


async def pieces_of(upload: Upload) -> AsyncIterator[bytes]:
    """Its bytes, read from the disk beside the event loop."""
    while piece := await asyncio.to_thread(upload.file.read, _SLICE):
        yield piece


async def handed_in(
    visit: Visit,
    source: str,
    name: str,
    size: int,
    store: Callable[[str], Awaitable[None]],
    *,
    accept_shrink: bool = False,
) -> str:
    """The run that reads it; `store` puts the bytes to the upload of that id. Raises Refused."""
    announced = {"filename": name, "content_type": type_of(name), "bytes": size}
    upload = await visit.api.post(f"/v1/sources/{source}/uploads", announced)
    now = await visit.api.get(f"/v1/uploads/{upload['id']}")
    if now["status"] == "pending":
        await store(upload["id"])
    body = {"accept_shrink": True} if accept_shrink else {}
    run: str = (await visit.api.post(f"/v1/uploads/{upload['id']}/complete", body))["run"]
    return run
