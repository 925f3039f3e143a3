"""The API's reference, where each operation can be tried: in test mode, as oneself or by a test key of one's own."""

from typing import Final

from markupsafe import Markup

from domain.kernel.errors import DomainError, NotFound
from entrypoints.console import trying
from entrypoints.console.page import Answer, Entry, Page
from entrypoints.console.refusals import Refused, refused
from entrypoints.console.visit import Visit
from entrypoints.operations.operation import Operation
from entrypoints.site.calls import curl
from entrypoints.site.limits import in_words
from entrypoints.site.markdown import paragraphs
from entrypoints.site.reference import WHO, url_of
from entrypoints.site.schemas import fields

PLACE: Final = "/console/developers/reference"


async def reference(visit: Visit) -> Answer:
    """Every operation, by what it is about, or those that a word leads to."""
    word = visit.query.get("q").casefold()
    areas = []
    for area in visit.console.pipeline.table.areas:
        rows = [row for row in area.operations if word in f"{row.summary} {row.path} {row.id} {row.method}".casefold()]
        if rows:
            areas.append({"title": area.title, "operations": rows})
    return visit.render("reference/list.html", areas=areas, q=visit.query.get("q"))


async def operation(visit: Visit) -> Answer:
    """One operation: what it takes and answers, a form to try it, and the answer to what was tried."""
    row = _operation(visit)
    if visit.asked.method != "POST":
        return _page(visit, row)
    if row.streams:
        raise NotFound("A stream has no end, so it cannot be tried on a page; copy the call.")
    try:
        tried = await trying.send(visit, trying.draft_of(row, visit.form))
    except DomainError as error:
        return _page(visit, row, wrong=refused(error, visit.request_id))
    return _page(visit, row, tried)


def _operation(visit: Visit) -> Operation:
    for area in visit.console.pipeline.table.areas:
        for row in area.operations:
            if row.id == visit.ids["operation"]:
                return row
    raise NotFound("There is no such operation.")


def _page(visit: Visit, row: Operation, tried: trying.Tried | None = None, wrong: Refused | None = None) -> Answer:
    """The page. Its own words are made by the site, which escapes what it is given."""
    return visit.render(
        "reference/operation.html",
        status=200 if wrong is None else wrong.status,
        row=row,
        described=Markup(paragraphs(row.description)),  # noqa: S704  the site's own text
        answers=Markup(fields(row.reply, bounded=False)) if row.reply and visit.query["part"] == "fields" else "",  # noqa: S704
        who=WHO[row.who],
        limit=in_words(row.rate),
        docs=url_of(row),
        inputs=trying.inputs_of(row),
        example=trying.example_of(row),
        call=curl(row, visit.dependencies.settings.base_url.rstrip("/")),
        form=visit.form,
        sent=visit.asked.method == "POST",
        tried=tried,
        refused=wrong,
        errors=wrong.fields if wrong is not None else {},
        may=row.scope is None or visit.may(row.scope),
    )


PAGES: Final = (
    Page(PLACE, reference, menu=Entry("Developers", "API reference")),
    Page(f"{PLACE}/<operation>", operation, methods=("GET", "POST"), menu="Developers"),
)
