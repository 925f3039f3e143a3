"""Console pages about the health of sources: failures, schedules, history and the scorecard."""

import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import Any

import pytest
import pytest_asyncio

from domain.runs.model import Run, RunError, RunErrorCode
from domain.runs.ports import RunStore
from entrypoints.console import rendering
from tests.http.application import OPERATOR
from tests.http.browser import ConsoleBrowser
from tests.http.sources import FILE_SOURCE, SourceHarness, open_source_harness
from tests.support import builders
from tests.support.merged_catalogues import MergedCatalogue

pytestmark = pytest.mark.asyncio
HOSTILE = '"><script>alert(1)</script><img src=x onerror=y>'
CLOCK_IS_AT = datetime(2026, 11, 20, 13, 8, tzinfo=UTC)
"""A Friday."""


@pytest_asyncio.fixture
async def harness(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[SourceHarness]:
    async with open_source_harness() as harness:
        assert harness.application.clock.now() == CLOCK_IS_AT
        monkeypatch.setattr(rendering, "CLOCK", harness.application.clock)
        yield harness


async def add_runs(harness: SourceHarness, source: str, *runs: dict[str, Any]) -> list[Run]:
    """Add ended runs of the source, oldest first; `hours` is their age."""
    made = []
    for fields in runs:
        at = CLOCK_IS_AT - timedelta(hours=fields.pop("hours", 0))
        more = {"status": "succeeded", "created_at": at, "started_at": at, "finished_at": at + timedelta(seconds=90)}
        made.append(builders.run(source, **(more | fields)))
    async with harness.application.uow.begin(harness.tenant, OPERATOR) as tx:
        for run in made:
            await tx[RunStore].add(run)
    return made


def failure(message: str, hours: float) -> dict[str, Any]:
    return {"status": "failed", "error": RunError(RunErrorCode.FETCH_FAILED, message), "hours": hours}


async def read_text(browser: ConsoleBrowser, path: str) -> str:
    """Return the text of the main part of a page, without markup."""
    page = await browser.get(path)
    assert page.status == 200, page.text
    assert "<script>alert" not in page.text and "<img src=x" not in page.text
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", page.text.partition("<main")[2])))


async def test_a_failed_import_is_shown_everywhere_until_one_succeeds(harness: SourceHarness) -> None:
    owner, source = await harness.application.open_browser(), await harness.create_source(name="Lindgren")
    message = f"The address answered 404. {HOSTILE}"
    runs = await add_runs(
        harness, source["id"], {"hours": 80, "stats": {"rows": 9}}, failure("x", 70), failure(message, 2)
    )
    assert (await harness.load_source(source["id"])).status == "active"
    page = f"/console/sources/{source['id']}"
    assert "Failed 2 times since Tuesday: The address answered 404." in await read_text(owner, page)
    assert "Lindgren: last run failed" in await read_text(owner, "/console")
    failed, succeeded = [await read_text(owner, f"/console/runs/{run.id}") for run in (runs[2], runs[0])]
    assert "Try again" in failed and "Re-import" not in failed and "Try again" not in succeeded
    for path in ("/console", "/console/sources", page):
        text = await read_text(owner, path)
        assert "Active Failed" in text and "The address answered 404." in text, path
    assert "Needs attention 1" in await read_text(owner, "/console/sources?status=attention")
    await add_runs(harness, source["id"], {"hours": 1, "stats": {"rows": 9}})
    for path in ("/console", "/console/sources", page):
        text = await read_text(owner, path)
        assert "Active Failed" not in text and "last run failed" not in text, path
    assert "4 runs in the last 30 days, 2 failed. The last one succeeded." in await read_text(owner, page)


async def test_the_history_shows_rows_problems_and_ages_by_day(harness: SourceHarness) -> None:
    owner = await harness.application.open_browser()
    source = await harness.create_source(schedule={"interval_minutes": 1440})
    assert "No runs in the last 30 days." in await read_text(owner, f"/console/sources/{source['id']}")
    await add_runs(
        harness,
        source["id"],
        {"hours": 72, "stats": {"rows": 1200, "problems": 7, "products_created": 30, "offers_changed": 4}},
        {"hours": 24, "stats": {"unchanged_feed": 1, "problems": 7}},
    )
    page = await owner.get(f"/console/sources/{source['id']}")
    assert "<title>Nov 17: 1,200</title>" in page.text and "<title>Nov 19: 1,200</title>" in page.text
    assert "<title>Nov 17: 34</title>" in page.text and "<title>Nov 19: 7</title>" in page.text
    assert "<title>Nov 18: 1,200</title>" not in page.text, "nothing was imported on this day"
    # on November 18, the data of the 17th was up to 35 hours old
    assert "Age of the data: 34.8 hr, 2026-11-18 00:00:00" in unescape(page.text).replace("\xa0", " ")
    assert "2 runs in the last 30 days, none failed." in page.text


async def test_the_schedule_has_a_page_of_its_own(harness: SourceHarness) -> None:
    owner, source = await harness.application.open_browser(), await harness.create_source(name=HOSTILE)
    await harness.change_source(source["id"], catalogue_at=CLOCK_IS_AT)
    path = f"/console/sources/{source['id']}"
    form = await owner.get(f"{path}/schedule")
    assert "No run is scheduled." in form.text and "data-detect-zone" in form.text
    assert 'value="request" checked' in form.text

    async def save(page: Any, **fields: str) -> Any:
        defaults = {"version": page.field("version"), "interval_minutes": "60", "times": "6:30, 18:00"}
        return await owner.submit(page, f"{path}/schedule", **(defaults | {"time_zone": "Europe/Berlin"} | fields))

    saved = await owner.follow(await save(form, frequency="daily"))
    assert "Saved" in saved.text and "data-detect-zone" not in saved.text and 'value="daily" checked' in saved.text
    assert "Next run: today 18:00 (Europe/Berlin)" in await read_text(owner, f"{path}/schedule")
    text = await read_text(owner, path)
    assert "today 18:00 (Europe/Berlin)" in text and "Every day at 06:30 and 18:00 (Europe/Berlin)" in text
    assert "today 18:00 (Europe/Berlin)" in await read_text(owner, "/console/sources")
    stored = (await harness.client.get(f"/v1/sources/{source['id']}")).json()
    assert stored["schedule"] == {"adaptive": False, "at": ["06:30", "18:00"], "time_zone": "Europe/Berlin"}
    weekly = await owner.follow(await save(saved, frequency="weekdays", times="06:30"))
    assert "Monday 06:30 (Europe/Berlin)" in await read_text(owner, path)
    assert "Monday to Friday at 06:30 (Europe/Berlin)" in await read_text(owner, path)
    chosen = await owner.follow(await save(weekly, frequency="custom", times="06:30", weekdays="sat"))
    assert "tomorrow 06:30 (Europe/Berlin)" in await read_text(owner, path)
    late = await save(weekly, frequency="request")
    assert late.status == 412 and "another person changed this source" in late.text
    for fields, error in (
        ({"times": "25:00"}, "f-times-error"),
        ({"times": ""}, "f-times-error"),
        ({"time_zone": HOSTILE}, "f-time_zone-error"),
        ({"frequency": "interval", "interval_minutes": "2"}, "f-interval_minutes-error"),
    ):
        wrong = await save(chosen, **({"frequency": "daily"} | fields))
        assert wrong.status == 400 and f'id="{error}"' in wrong.text and "<script>alert" not in wrong.text, fields
    hourly = await owner.follow(await save(chosen, frequency="interval"))
    assert (await harness.load_source(source["id"])).schedule.interval_minutes == 60
    await save(hourly, frequency="request")
    assert (await harness.load_source(source["id"])).next_pull is None
    assert "Only on request" in await read_text(owner, path)


async def test_only_pulled_sources_have_schedules(harness: SourceHarness) -> None:
    owner = await harness.application.open_browser()
    made = (await harness.client.post("/v1/sources", FILE_SOURCE)).json()
    assert "/schedule" not in (await owner.get(f"/console/sources/{made['id']}")).text
    form = await owner.get(f"/console/sources/{made['id']}/settings")
    sent = await owner.submit(
        form, f"/console/sources/{made['id']}/schedule", frequency="daily", times="06:30", time_zone="UTC"
    )
    assert sent.status == 422
    viewer = await harness.application.open_browser(role="viewer")
    source = await harness.create_source()
    assert "/schedule" not in (await viewer.get(f"/console/sources/{source['id']}")).text
    assert (await viewer.get(f"/console/sources/{source['id']}/schedule")).status == 403
    other = await harness.application.open_browser("Oak")
    assert (await other.get(f"/console/sources/{source['id']}/schedule")).status == 404


async def test_the_list_is_sorted_by_attention_filtered_and_searched(harness: SourceHarness) -> None:
    owner = await harness.application.open_browser()
    names = [f"Vendor {letter}" for letter in "ABCDEFGHI"]
    made = {name: await harness.create_source(name=name) for name in names}
    assert 'id="source-search"' not in (await owner.get("/console/sources")).text
    harness.application.database.execute("UPDATE plans SET meters = '{}'")
    for name in ("Oak", HOSTILE):
        made[name] = await harness.create_source(name=name)
    await add_runs(harness, made["Vendor G"]["id"], failure("No.", 1))
    await harness.change_source(made["Vendor C"]["id"], status="paused")
    page = await owner.get("/console/sources")
    assert 'id="source-search"' in page.text and "<script>alert" not in page.text
    shown = re.findall(r">(Vendor .|Oak)</a>", page.text)
    assert shown[0] == "Vendor G" and sorted(shown[1:]) == sorted(
        ["Oak", *(name for name in names if name != "Vendor G")]
    )
    paused = await owner.get("/console/sources?status=paused")
    assert re.findall(r">(Vendor .|Oak)</a>", paused.text) == ["Vendor C"]
    found = await owner.get("/console/sources?q=vendor%20g")
    assert re.findall(r">(Vendor .|Oak)</a>", found.text) == ["Vendor G"]
    for query in ("q=%22%3E%3Cscript%3Ealert(1)%3C/script%3E", "status=%22%3E%3Cscript%3Ealert(1)", "q=nothing"):
        assert "<script>alert" not in (await owner.get(f"/console/sources?{query}")).text
    assert "No sources found" in (await owner.get("/console/sources?q=nothing")).text


async def test_the_scorecard_compares_sources(harness: SourceHarness) -> None:
    owner = await harness.application.open_browser()
    assert "No sources yet" in await read_text(owner, "/console/sources/scorecard")
    catalogue = MergedCatalogue(harness.application.uow, harness.tenant)
    good = await harness.create_source(name="Good", schedule={"interval_minutes": 1440})
    bad = await harness.create_source(name=HOSTILE, schedule={"interval_minutes": 1440})
    await harness.create_source(name="Never")
    image = [{"url": "https://pictures.example/a.jpg", "role": "hero", "position": 1}]
    good_source, bad_source = await harness.load_source(good["id"]), await harness.load_source(bad["id"])
    for number in range(4):
        await catalogue.load_product(good_source, f"G{number}", "red", title="Oak", media=image)
        await catalogue.load_product(bad_source, f"B{number}", "red", title="Elm", media=image if number else [])
    await add_runs(
        harness, good["id"], *({"hours": 24 * day, "stats": {"rows": 500, "problems": 1}} for day in (2, 1, 0))
    )
    await add_runs(harness, bad["id"], {"hours": 120, "stats": {"rows": 100, "problems": 5}}, failure("No.", 24))
    page = await owner.get("/console/sources/scorecard")
    assert page.status == 200 and "<script>alert" not in page.text
    rows = re.findall(r"<tr><th scope=\"row\">.*?</tr>", page.text, re.DOTALL)
    texts = [re.sub(r"[\s\xa0]+", " ", unescape(re.sub(r"<[^>]+>", " ", row))).strip() for row in rows]
    by_name = {
        name: next(text for text in texts if text.startswith(start))
        for name, start in (("good", "Good"), ("bad", HOSTILE[:2]), ("never", "Never"))
    }
    assert re.search(r"^Good 4 \d+% 2 0 of 3 100% 0 \d+% 0%$", by_name["good"]), by_name
    assert re.search(r" Failed 4 \d+% 50 1 of 2 30% 0 ", by_name["bad"]), by_name
    assert by_name["never"] == "Never 0 – – 0 of 0 – 0 – –"
    shares = [text for text in texts if text.startswith("Good")][1], [text for text in texts if HOSTILE[:2] in text][1]
    assert "100%" in shares[0] and "75%" in shares[1], "images"
    assert f"/console/catalogue?source={good['id']}&amp;availability=out_of_stock" in page.text
    for sort, first in (
        ("-problems", HOSTILE[:2]),
        ("problems", "Good"),
        ("-name", "Never"),
        ("on_time", HOSTILE[:2]),
        ("x", HOSTILE[:2]),
    ):
        sorted_page = await owner.get(f"/console/sources/scorecard?sort={sort}")
        row = re.findall(r"<tr><th scope=\"row\">(.*?)</a>", sorted_page.text, re.DOTALL)[0]
        assert unescape(re.sub(r"<[^>]+>", "", row)).startswith(first), sort
        assert ("aria-sort" in sorted_page.text) == (sort != "x")
    assert "Good" not in (await (await harness.application.open_browser("Oak")).get("/console/sources/scorecard")).text
