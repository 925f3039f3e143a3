"""File names of pictures, and the addresses that they have below the place that a source's settings name."""

import re
from typing import Final
from urllib.parse import quote, unquote

_ENDING: Final = re.compile(r"\.(?:jpe?g|png|webp|gif|tiff?|avif|bmp|svg|mp4|mov|webm|m4v|pdf)(?![^\W_])", re.I)
_BARE_PERCENT: Final = re.compile(r"%(?![0-9a-fA-F]{2})")
_OF_PATHS: Final = "%!$&'()*+,;=@-._~"
_OF_QUERIES: Final = "%!$&'()*+,;=@-._~:/?"


def address_below(base: str, name: str) -> str | None:
    """The address of a file below `base` (http or https), percent-encoded; None for what is no name of one file there.

    A name has one ending of a picture, film or document, and perhaps folders before it and a query behind it. What could lead
    elsewhere is no such name: an absolute path, `..` however written, what may begin with a host. Escapes (`%20`) stay.
    """
    if not base.lower().startswith(("http://", "https://")):
        return None
    path, mark, query = name.strip().replace("\\", "/").removeprefix("./").partition("?")
    endings = [found.end() for found in _ENDING.finditer(path)]
    folders, _, _ = path.rpartition("/")
    if endings != [len(path)] or "." in folders.partition("/")[0] or not all(map(_is_plain, path.split("/"))):
        return None
    try:
        told = quote(_BARE_PERCENT.sub("%25", path), safe=f"/{_OF_PATHS}")
        asked = quote(_BARE_PERCENT.sub("%25", query), safe=_OF_QUERIES)
    except UnicodeEncodeError:
        return None
    return f"{base.rstrip('/')}/{told}{mark}{asked}"


def _is_plain(part: str) -> bool:
    """Whether a part of a path names something in its folder, also for who unescapes it, once or twice."""
    for read in (part, unquote(part), unquote(unquote(part))):
        if not read.strip() or read.strip() in (".", "..") or "/" in read or "\\" in read or not read.isprintable():
            return False
    return True
