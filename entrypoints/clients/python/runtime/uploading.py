"""Hands a file in: announced, sent to its own address, completed."""

import mimetypes
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Generic, TypeVar

from .core import Core
from .groups import AsyncGroup, Group
from .steps import Steps
from .tables import MEDIA_TYPES

U = TypeVar("U")


def uploaded(
    core: Core, source: str, path: Path, properties: Mapping[str, str | None], accept_shrink: bool | None
) -> Steps[Any]:
    """The completed upload; its `run` reads the file."""
    size = path.stat().st_size
    kind = properties["content_type"] or MEDIA_TYPES.get(path.suffix.lower()[1:]) or mimetypes.guess_type(path.name)[0]
    announced = {
        "filename": properties["filename"] or path.name,
        "content_type": kind or "application/octet-stream",
        "bytes": size,
    }
    upload = yield from core.call(
        "POST", "/v1/sources/{}/uploads", (source,), body=announced, keyed=True, needs=("id", "target")
    )
    yield from core.put(upload["target"]["url"], upload["target"]["headers"], path, size)
    body = None if accept_shrink is None else {"accept_shrink": accept_shrink}
    return (yield from core.call("POST", "/v1/uploads/{}/complete", (upload["id"],), body=body, keyed=True))


class UploadFiles(Group, Generic[U]):
    """`upload_file` of `client.sources`."""

    def upload_file(
        self,
        source: str,
        path: "str | os.PathLike[str]",
        *,
        filename: str | None = None,
        content_type: str | None = None,
        accept_shrink: bool | None = None,
    ) -> U:
        """Hand a file in and have it read; the answer's `run` is what to wait for. Raises JoineryError, OSError."""
        properties = {"filename": filename, "content_type": content_type}
        made: U = self._run(uploaded(self._core, source, Path(path), properties, accept_shrink))
        return made


class AsyncUploadFiles(AsyncGroup, Generic[U]):
    """`upload_file` of `client.sources`."""

    async def upload_file(
        self,
        source: str,
        path: "str | os.PathLike[str]",
        *,
        filename: str | None = None,
        content_type: str | None = None,
        accept_shrink: bool | None = None,
    ) -> U:
        """Hand a file in and have it read; the answer's `run` is what to wait for. Raises JoineryError, OSError."""
        properties = {"filename": filename, "content_type": content_type}
        made: U = await self._run(uploaded(self._core, source, Path(path), properties, accept_shrink))
        return made
