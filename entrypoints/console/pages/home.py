"""The first page: what changed today, what needs a person, how fresh each source is, and what of the quota is used."""

from typing import Final

from entrypoints.console.page import Answer, Entry, Page
from entrypoints.console.visit import Visit


async def home(visit: Visit) -> Answer:
    """The first page."""
    sources = (await visit.api.get("/v1/sources", limit=100))["data"] if visit.may("sources:read") else []
    return visit.render("home/home.html", sources=sources)


PAGES: Final = (Page("/console", home, menu=Entry("Home", "Home")),)
