"""What retailers learn when a vendor withdraws its whole catalogue, over running processes."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.flows.service_processes import ServiceProcesses
from tests.flows.test_vendor import Vendor, processes, read_changes, run_command, vendor  # noqa: F401  (fixtures)


def test_followers_learn_that_a_catalogue_was_withdrawn(
    processes: ServiceProcesses,
    vendor: Vendor,
    tmp_path: Path,
) -> None:
    retailer = processes.create_organisation()
    cursor = retailer.api.get("/v1/changes", cursor="now")["next_cursor"]
    vendor.claim()
    text = tmp_path / "agreement.md"
    text.write_text("# Data agreement\n\nWe may publish your data.\n")
    run_command(processes, "agreement", "publish", str(text), "--kind", "vendor_data", "--title", "Data agreement")
    vendor.sign()
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: vendor.api.call("POST", "/v1/catalogue/publish", {}).status, range(8)))
    assert sorted(answers) == [202, *[409] * 7], answers
    open_run = vendor.api.get("/v1/catalogue/publication-runs")["data"][0]["id"]
    for _ in range(300):
        if vendor.find_ended(open_run):
            break
    _, cursor = read_changes(retailer, cursor, "product.published")
    assert vendor.run("withdraw")["status"] == "succeeded"
    events, _ = read_changes(retailer, cursor, "product.withdrawn")
    assert any(event["type"] == "product.withdrawn" for event in events)
