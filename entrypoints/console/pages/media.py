"""Pictures that are stored here: led to a link of the object store, valid for minutes, so that no page waits for links."""

from typing import Final

from entrypoints.console.page import Answer, Page
from entrypoints.console.visit import Visit
from entrypoints.http.exchange import Response

_SECONDS: Final = 600
"""For how long a browser keeps where a picture is; links are valid for almost 15 minutes."""


async def picture(visit: Visit) -> Answer:
    """The smallest rendition of at least that width, or the picture itself."""
    media = await visit.api.get(f"/v1/media/{visit.ids['id']}")
    width = visit.query.get("w", "1600")
    wanted = int(width) if width.isdecimal() and len(width) < 6 else 1600
    links = [(one["width"], one["url"]) for one in media["renditions"]]
    link = next((url for wide, url in links if wide >= wanted), media["download"]["url"])
    kept = b"private, max-age=%d" % _SECONDS
    return Response(302, [(b"location", link.encode("ascii", "ignore")), (b"cache-control", kept)])


PAGES: Final = (Page("/console/pictures/<id>", picture, scope="products:read"),)
