"""A file uploaded in the console: inspected in a reader process, connected, and imported by the worker, with its problems."""

import re

from tests.flows.service_processes import ServiceProcesses, Tenancy, wait_until
from tests.support.console_browser import ConsoleBrowser, create_session

FEED = (
    b"SKU,Product Name,Width (cm),Price,Qty\n"
    b"ASH-1,Ash chair,45,99.00,40\nASH-2,Ash table,ca. wide,299.00,3\nASH-3,Ash bench,120,149.00,7\n"
)


def test_a_file_is_inspected_connected_and_imported(services: ServiceProcesses, fjord: Tenancy) -> None:
    person = ConsoleBrowser(
        services.port, services.run_with_dependencies(lambda container: create_session(container, fjord.tenant))
    )
    form = person.get("/console/sources/new/file")
    looked = person.submit(form, "/console/sources/new/file", file=("ash.csv", FEED))
    assert "dimensions.width" in looked and "Ash chair" in looked and "ca. wide" in looked
    [draft] = re.findall(r'name="draft" value="([^"]+)"', looked)
    run = person.submit(looked, "/console/sources/new/file/connect", draft=draft, name="Ash", currency="usd")
    assert "Run of Ash" in run
    place = person.place

    def over() -> str | None:
        page = person.get(place)
        return page if "data-events" not in page else None

    done = wait_until(over, "the run is over")
    assert "Succeeded" in done and "Unreadable value" in done
    sheet = person.get(f"{place}/sheet")
    assert 'class="cell-with-problem"' in sheet and "ca. wide" in sheet
    assert fjord.api.get("/v1/products", q="ash chair")["data"][0]["data"]["title"] == "Ash chair"


def test_an_ignored_problem_stays_ignored_in_later_runs(services: ServiceProcesses, fjord: Tenancy) -> None:
    person = ConsoleBrowser(
        services.port, services.run_with_dependencies(lambda container: create_session(container, fjord.tenant))
    )
    looked = person.submit(
        person.get("/console/sources/new/file"), "/console/sources/new/file", file=("ignored.csv", FEED)
    )
    [draft] = re.findall(r'name="draft" value="([^"]+)"', looked)
    person.submit(looked, "/console/sources/new/file/connect", draft=draft, name="Ignored", currency="usd")
    first = fjord.api.wait_for_end(person.place.rpartition("/")[2])
    assert [problem.get("ignored") for problem in first["problems"]] == [None]
    page = person.get(person.place)
    assert "Ignored" in person.submit(page, f"{person.place.partition('?')[0]}/problems", index="0")
    replay = fjord.api.post(f"/v1/sources/{first['source']}/replay", {})
    later = fjord.api.wait_for_end(replay["id"])
    assert [problem.get("ignored") for problem in later["problems"]] == [True]
    assert (later["stats"]["problems"], later["stats"]["problems_ignored"]) == (1, 1)
