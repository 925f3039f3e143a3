"""Console pages of match pairs and merges: review, undo and preview of the undo."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
import pytest_asyncio

from domain.jobs.model import ClaimedJob, build_lane_name
from domain.jobs.ports import JobDispatcher
from domain.jobs.usecases.lane_processor import LEASE, LaneProcessor
from domain.jobs.usecases.portions import MAX_ATTEMPTS
from domain.kernel.tenancy import Tenant
from domain.matching.index import MATCHING_LANE
from domain.matching.model import MatchPair, PairEvidence
from domain.matching.usecases.merges import BULK_MERGE_JOB, BulkMergeJob, MergeService
from entrypoints.console.products import mark_differences
from tests.http.application import ApplicationHarness, run_application
from tests.http.browser import ConsoleBrowser
from tests.support.merged_catalogues import MergedCatalogue

pytestmark = pytest.mark.asyncio
HOSTILE = '"><script>alert(1)</script>'


@dataclass
class MatchingConsole:
    """Browser of an owner, and three open pairs, newest first."""

    application: ApplicationHarness
    owner: ConsoleBrowser
    pairs: list[MatchPair]

    @property
    def lane(self) -> str:
        """The lane of the jobs that merge pairs."""
        return build_lane_name(self.application.orgs["Fjord"].id, MATCHING_LANE)


@pytest_asyncio.fixture
async def harness() -> AsyncIterator[MatchingConsole]:
    async with run_application() as application:
        org = application.orgs["Fjord"]
        tenant = Tenant(org.id, True)
        shop = MergedCatalogue(application.uow, tenant)
        first, second = (
            await shop.create_source(catalogue=org.get_catalogue_id(True)),
            await shop.create_source(),
        )
        pairs = []
        for number in range(3):
            media = [
                {"url": "https://pictures.example/a.jpg", "role": "hero", "position": 1},
                {"url": "javascript:alert(1)", "role": "alternate"},
            ]
            ours = await shop.load_product(first, f"A{number}", "red", title=f"Oak bench {HOSTILE}", media=media)
            theirs = await shop.load_product(second, f"B{number}", "red", title="Bench oak")
            evidence = (
                PairEvidence("title", 3, 5.5, "alike", HOSTILE, "Oak bench"),
                PairEvidence("price", 1, -1.0, "far apart"),
            )
            conflicts = ("colour",) if number == 0 else ()
            pairs.append(
                await shop.create_pair(ours.variants[0], theirs.variants[0], evidence=evidence, conflicts=conflicts)
            )
            application.clock.set(application.clock.now() + timedelta(seconds=1))
        yield MatchingConsole(
            application, await application.open_browser(), sorted(pairs, key=lambda pair: pair.id, reverse=True)
        )


async def test_pairs_are_reviewed_in_order_and_undone(harness: MatchingConsole) -> None:
    owner, (first, second, third) = harness.owner, harness.pairs
    start = await owner.get("/console/matching/review")
    assert start.header("location") == f"/console/matching/pairs/{first.id}"
    page = await owner.follow(start)
    assert 'data-key="m"' in page.text and 'data-key="d"' in page.text and 'data-key="n"' in page.text
    assert 'data-key="k"' not in page.text, "it is the first"
    assert f'href="/console/matching/pairs/{second.id}"' in page.text
    merged = await owner.submit(page, f"/console/matching/pairs/{first.id}/merge")
    assert merged.header("location") == f"/console/matching/pairs/{second.id}?last={first.id}"
    page = await owner.follow(merged)
    assert "Items merged" in page.text and 'data-key="u"' in page.text
    again = await owner.submit(page, f"/console/matching/pairs/{first.id}/merge")
    assert again.status == 409 and 'role="alert"' in again.text
    undone = await owner.follow(await owner.submit(page, f"/console/matching/pairs/{first.id}/undo"))
    assert "Decision undone" in undone.text and "a person must decide" in undone.text
    dismissed = await owner.submit(undone, f"/console/matching/pairs/{second.id}/dismiss")
    assert (dismissed.header("location") or "").startswith(f"/console/matching/pairs/{third.id}")
    reopened = await owner.follow(
        await owner.submit(await owner.follow(dismissed), f"/console/matching/pairs/{second.id}/undo")
    )
    assert "Decision undone" in reopened.text
    for pair in harness.pairs:
        await owner.submit(reopened, f"/console/matching/pairs/{pair.id}/dismiss")
    assert "No matches to review" in (await owner.get("/console/matching/review")).text
    listed = await owner.get("/console/matching?status=dismissed")
    assert all(pair.id in listed.text for pair in harness.pairs)


async def test_likely_pairs_are_merged_in_bulk_and_undone(harness: MatchingConsole) -> None:
    owner, (third, second, first) = harness.owner, harness.pairs
    page = await owner.get("/console/matching/accept?min=90")
    assert page.status == 200 and "Merge 2 matches" in page.text
    assert second.id in page.text and third.id in page.text and first.id not in page.text, "the first has a conflict"
    assert "No matches" in (await owner.get("/console/matching/accept?min=95")).text
    started = await owner.submit(page, "/console/matching/accept", min="90")
    assert started.header("location") == "/console/merges"
    dispatcher = harness.application.dependencies[JobDispatcher]
    handlers = {BULK_MERGE_JOB: BulkMergeJob(harness.application.uow)}
    await LaneProcessor(dispatcher, handlers).process_lane(harness.lane)
    client = await harness.application.create_client()
    states = {pair["id"]: pair["status"] for pair in (await client.get("/v1/match-pairs")).json()["data"]}
    assert states == {first.id: "open", second.id: "merged", third.id: "merged"}
    entries = (await client.get("/v1/audit-events?action=matching.merge_pair")).json()["data"]
    assert {entry["actor"]["kind"] for entry in entries} == {"user"}
    undone = await client.post(f"/v1/audit-events/{entries[0]['id']}/undo")
    assert undone.status == 200, undone.text
    states = {pair["id"]: pair["status"] for pair in (await client.get("/v1/match-pairs")).json()["data"]}
    assert set(states.values()) == {"open"}


async def claim_bulk_merge(harness: MatchingConsole, browser: ConsoleBrowser) -> ClaimedJob:
    page = await browser.get("/console/matching/accept?min=90")
    await browser.submit(page, "/console/matching/accept", min="90")
    jobs = await harness.application.dependencies[JobDispatcher].claim(harness.lane, 10, LEASE)
    found: list[ClaimedJob] = [job for job in jobs if job.kind == BULK_MERGE_JOB]
    return found[0]


async def has_ended(harness: MatchingConsole, job: ClaimedJob) -> bool:
    return not await harness.application.dependencies[JobDispatcher].renew_lease(job, LEASE)


async def test_a_bulk_merge_of_a_person_who_has_left_ends(
    harness: MatchingConsole, caplog: pytest.LogCaptureFixture
) -> None:
    editor = await harness.application.open_browser(role="editor")
    job = await claim_bulk_merge(harness, editor)
    await harness.application.remove_member(editor.user, "Fjord")
    await BulkMergeJob(harness.application.uow)(job, asyncio.Event())
    assert await has_ended(harness, job) and "has left the organisation" in caplog.text
    client = await harness.application.create_client()
    assert {pair["status"] for pair in (await client.get("/v1/match-pairs")).json()["data"]} == {"open"}


class FailingMerges(MergeService):
    """Merges that always fail."""

    async def merge_pairs(self, *_: Any) -> Any:
        raise RuntimeError("pairs cannot be merged")


async def test_a_bulk_merge_has_a_limited_number_of_attempts(harness: MatchingConsole) -> None:
    job = await claim_bulk_merge(harness, harness.owner)
    handler = BulkMergeJob(harness.application.uow, FailingMerges())
    with pytest.raises(RuntimeError):
        await handler(job, asyncio.Event())
    dispatcher = harness.application.dependencies[JobDispatcher]
    for _ in range(MAX_ATTEMPTS - 1):
        await dispatcher.release(job, harness.application.clock.now())
        [job] = [one for one in await dispatcher.claim(harness.lane, 10, LEASE) if one.id == job.id]
    await handler(job, asyncio.Event())
    assert await has_ended(harness, job)


async def test_viewers_cannot_merge_in_bulk(harness: MatchingConsole) -> None:
    viewer = await harness.application.open_browser(role="viewer")
    assert (await viewer.get("/console/matching/accept")).status == 403
    page = await viewer.get("/console/matching")
    assert "/console/matching/accept" not in page.text
    assert (await viewer.submit(page, "/console/matching/accept", min="80")).status == 403


async def test_both_sides_are_shown_with_differences_evidence_and_conflicts(harness: MatchingConsole) -> None:
    pair = harness.pairs[-1]
    page = await harness.owner.get(f"/console/matching/pairs/{pair.id}")
    assert "The colours differ." in page.text and "far apart" in page.text and "<mark>" in page.text
    assert "<script>alert" not in page.text and "&lt;script&gt;" in page.text and "javascript:" not in page.text
    assert "pictures.example" not in (page.header("content-security-policy") or "") + page.text
    left, right = mark_differences("Oak bench red", "oak bench blue")
    assert list(left) == [("Oak bench", False), ("red", True)] and list(right) == [("oak bench", False), ("blue", True)]


async def test_a_merge_shows_the_effects_of_its_undo(harness: MatchingConsole) -> None:
    owner = harness.owner
    page = await owner.get(f"/console/matching/pairs/{harness.pairs[0].id}")
    await owner.submit(page, f"/console/matching/pairs/{harness.pairs[0].id}/merge")
    client = await harness.application.create_client()
    merges: Any = (await client.get("/v1/merges?kind=variant")).json()["data"]
    listed = await owner.get("/console/merges?kind=variant&status=applied")
    assert merges[0]["id"] in listed.text and "data-list-item>Bench oak</a>" in listed.text, "the item is named"
    assert '<option value="group">Groups of variants</option>' in listed.text, "merges can be filtered by each kind"
    one = await owner.get(f"/console/merges/{merges[0]['id']}")
    assert f"<dd><code>{merges[0]['merged']}" not in one.text, "the merged item is named as well"
    assert "Bench oak" in one.text and "Undo preview" in one.text and "undone" in one.text and "Undo merge" in one.text
    assert (await client.get(f"/v1/merges/{merges[0]['id']}")).json()["status"] == "applied"
    done = await owner.follow(await owner.submit(one, f"/console/merges/{merges[0]['id']}/undo"))
    assert "Merge undone. Both items are separate again." in done.text
    assert (await owner.submit(done, f"/console/merges/{merges[0]['id']}/undo")).status == 409


async def test_pairs_are_hidden_from_others_and_read_only_for_viewers(harness: MatchingConsole) -> None:
    pair = harness.pairs[0]
    other, viewer = await harness.application.open_browser("Oak"), await harness.application.open_browser(role="viewer")
    assert (await other.get(f"/console/matching/pairs/{pair.id}")).status == 404
    form = await other.get("/console/matching")
    assert (await other.submit(form, f"/console/matching/pairs/{pair.id}/merge")).status == 404
    assert (await other.submit(form, f"/console/matching/pairs/{pair.id}/undo")).status == 404
    page = await viewer.get(f"/console/matching/pairs/{pair.id}")
    assert page.status == 200 and 'data-key="m"' not in page.text
    assert (await viewer.submit(page, f"/console/matching/pairs/{pair.id}/merge")).status == 403
    judge = await viewer.get("/console/judge")
    assert "<form" not in judge.text.partition("<main")[2]
    assert (await viewer.submit(judge, "/console/judge", enabled="true")).status == 403
    assert (await harness.owner.post(f"/console/matching/pairs/{pair.id}/merge")).status == 403, (
        "without the form's token"
    )


async def test_the_judge_settings_are_changed(harness: MatchingConsole) -> None:
    owner = harness.owner
    form = await owner.get("/console/judge")
    assert "No language model is configured" in form.text
    fields = {"auto_merge_at": "97.5", "auto_dismiss_at": "90", "daily_budget": "2.50", "model": ""}
    saved = await owner.submit(form, "/console/judge", **fields)
    assert "Saved" in (await owner.follow(saved)).text
    now = (await (await harness.application.create_client()).get("/v1/matching/judge-settings")).json()
    assert (now["auto_merge_at"], now["daily_budget_micros"]) == (0.975, 2_500_000)
    wrong = await owner.submit(form, "/console/judge", **(fields | {"auto_merge_at": "much"}))
    assert wrong.status == 400 and 'value="much"' in wrong.text and 'aria-invalid="true"' in wrong.text
    off = await owner.submit(form, "/console/judge", enabled="true", **fields)
    assert off.status == 422
