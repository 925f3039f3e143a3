"""Console pages of agents: proposals with their proof, decisions, proposals on the home page, and the agents' settings."""

import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from domain.agents.model import AgentKind, create_agent
from domain.catalogue import categories
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from domain.proposals.model import Proof, ProofCounts, ProofSample, Proposal, ProposalKind, Subject
from domain.proposals.ports import ProposalStore
from tests.http.application import ApplicationHarness, run_application
from tests.http.test_console_pages import check_markup
from tests.support import builders
from tests.support.console_seed import seed_console

pytestmark = pytest.mark.asyncio
PROPOSALS, AGENTS = "/console/proposals", "/console/agents"
SOFAS = next(entry for entry in categories.category_by_id().values() if entry.slug == "sofas")


@pytest_asyncio.fixture
async def application() -> AsyncIterator[ApplicationHarness]:
    async with run_application() as application:
        yield application


async def _add_proposals(application: ApplicationHarness) -> tuple[Proposal, Proposal]:
    """Add a note about a source, and category rules with a proof."""
    seeded = await seed_console(application)
    tenant, source = Tenant(application.orgs["Fjord"].id, True), seeded.sources[0]
    agent, subject = create_agent(tenant, AgentKind.CATEGORY).id, Subject("source", source)
    triage = create_agent(tenant, AgentKind.TRIAGE).id
    note = builders.proposal(triage, subject, source=source, summary="The run <b>failed</b>.")
    proof = Proof(None, ProofCounts(9, 2, 7), ProofCounts(9, 8, 1), (ProofSample("<Sofas>", None, SOFAS.id),))
    rules = builders.proposal(
        agent,
        Subject("source", source),
        source=source,
        kind=ProposalKind.CATEGORY_RULES,
        operation="runs.set_categories",
        summary="Add a rule.",
        change={"rules": []},
        proof=proof,
    )
    async with application.uow.begin(tenant, builders.CALL) as tx:
        for proposal in (note, rules):
            await tx[ProposalStore].add(proposal)
    return note, rules


async def test_home_and_list_show_proposals_with_their_proof(application: ApplicationHarness) -> None:
    note, rules = await _add_proposals(application)
    browser = await application.open_browser()
    for place in ("/console", PROPOSALS):
        page = await browser.get(place)
        check_markup(page.text)
        text = page.text.partition(f'id="{rules.id}"')[2].partition("</section>")[0]
        assert re.search(r"Without a category.*?<del>.*?7</del><ins>.*?1</ins>", text, re.S)
        assert "&lt;Sofas&gt;" in text and " › ".join(SOFAS.path) in text and SOFAS.id not in text
        assert f"{PROPOSALS}/{rules.id}/accept" in text and f"{PROPOSALS}/{note.id}/accept" not in page.text
        assert "The run &lt;b&gt;failed&lt;/b&gt;." in page.text
    viewer = await application.open_browser(role="viewer")
    assert "/accept" not in (await viewer.get("/console")).text
    assert note.id not in (await (await application.open_browser("Oak")).get(PROPOSALS)).text


async def test_a_decision_returns_to_its_page(application: ApplicationHarness) -> None:
    note, rules = await _add_proposals(application)
    browser = await application.open_browser()
    page = await browser.get("/console")
    sent = await browser.submit(page, f"{PROPOSALS}/{note.id}/reject", next="/console", reason="Not useful.")
    assert sent.header("location") == "/console"
    assert note.id not in (await browser.follow(sent)).text
    dismissed = await browser.get(f"{PROPOSALS}?status=dismissed")
    assert "Not useful." in dismissed.text and "/reject" not in dismissed.text
    accepted = await browser.submit(page, f"{PROPOSALS}/{rules.id}/accept", next="https://evil.test/")
    assert accepted.status in (303, 409, 422), accepted.text
    again = await browser.submit(page, f"{PROPOSALS}/{note.id}/accept", next="/console")
    assert again.status == 409 and "dismissed" in again.text
    other = await application.open_browser("Oak")
    foreign = await other.submit(await other.get("/console"), f"{PROPOSALS}/{rules.id}/reject")
    assert foreign.status == 404


async def test_admins_change_the_settings_of_agents(application: ApplicationHarness) -> None:
    browser = await application.open_browser()
    page = await browser.get(AGENTS)
    check_markup(page.text)
    assert page.text.count('action="/console/agents/agt_') == len(AgentKind)
    assert page.text.count('name="daily_budget"') == 1, "only the category agent uses a language model"
    tenant = Tenant(application.orgs["Fjord"].id, True)
    category, triage = (f"{AGENTS}/{create_agent(tenant, kind).id}" for kind in (AgentKind.CATEGORY, AgentKind.TRIAGE))
    saved = await browser.submit(page, category, autonomy="off", daily_budget="0.50", model="")
    text = (await browser.follow(saved)).text
    assert "Settings saved" in text and 'value="off" selected' in text and 'value="0.50"' in text
    assert (await browser.submit(page, triage, autonomy="off")).status == 303
    refused = await browser.submit(page, category, autonomy="off", daily_budget="little")
    assert refused.status == 400 and 'value="little"' in refused.text
    viewer = await application.open_browser(role="viewer")
    assert "<form" not in (await viewer.get(AGENTS)).text.partition("<main")[2]


async def test_many_groups_do_not_displace_other_proposals_on_the_home_page(application: ApplicationHarness) -> None:
    note, rules = await _add_proposals(application)
    tenant = Tenant(application.orgs["Fjord"].id, True)
    agent = create_agent(tenant, AgentKind.GROUPING).id
    async with application.uow.begin(tenant, builders.CALL) as tx:
        for number in range(101):
            await tx[ProposalStore].add(
                builders.proposal(
                    agent, Subject("product", f"prod_{number}"), kind=ProposalKind.VARIANT_GROUP,
                    operation="matching.group_products", change={"title": "Lund", "variants": {}},
                )
            )  # fmt: skip
    home = (await (await application.open_browser()).get("/console")).text
    assert "100 or more groups of variants to review" in home and note.id in home and rules.id in home


async def test_groups_of_variants_are_shown_with_their_products(application: ApplicationHarness) -> None:
    products = (await seed_console(application, ("Oak table", "Black table"))).products
    tenant = Tenant(application.orgs["Fjord"].id, True)
    variants = {product.variants[0].id: {"Finish": f"<{name}>"} for product, name in zip(products, "ab", strict=True)}
    group = builders.proposal(
        create_agent(tenant, AgentKind.GROUPING).id, Subject("product", products[0].id), source=products[0].source,
        kind=ProposalKind.VARIANT_GROUP, operation="matching.group_products", summary="Show 2 products as one.",
        change={"title": "Lund", "variants": variants | {new_id("var"): {"Finish": "x"}}},
    )  # fmt: skip
    async with application.uow.begin(tenant, builders.CALL) as tx:
        await tx[ProposalStore].add(group)
    browser = await application.open_browser()
    home = await browser.get("/console")
    assert "1 group of variants to review" in home.text and group.id not in home.text
    page = await browser.get(f"{PROPOSALS}?kind=variant_group")
    check_markup(page.text)
    assert all(f'href="/console/catalogue/{product.id}"' in page.text for product in products)
    assert "Finish: &lt;a&gt;" in page.text and "and 1 more product" in page.text
    assert 'name="next" value="/console/proposals?status=proposed&amp;kind=variant_group"' in page.text
    assert "No proposals" in (await browser.get(f"{PROPOSALS}?kind=mapping")).text
    assert f"{PROPOSALS}/{group.id}/accept" in page.text
    developer = await application.open_browser(role="developer")
    assert "/accept" not in (await developer.get(f"{PROPOSALS}?kind=variant_group")).text, "needs products:write"
