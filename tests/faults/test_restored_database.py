"""Restores of a backup under running readers: all must restart, and none misses an event afterwards."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.faults.database_faults import DatabaseFaultScenario, run_scenario
from tests.faults.followers import StreamFollower
from tests.faults.log_checks import LoggedEvent, find_mixed_lives
from tests.faults.test_backup import run_command
from tests.flows.service_processes import wait_until

RestoreAction = Callable[[DatabaseFaultScenario, Path], None]


@pytest.fixture
def scenario(tmp_path: Path) -> Iterator[DatabaseFaultScenario]:
    """Run the scenario with writers and followers."""
    with run_scenario([{}]) as running_scenario, running_scenario.writers.run(), running_scenario.follower_thread.run():
        running_scenario.wait_for_events(20)
        yield running_scenario


def _assert_consistent(scenario: DatabaseFaultScenario) -> None:
    wrong = scenario.wait_for_consistency()
    assert not wrong, "\n".join([*wrong, *scenario.format_totals()])


def _advance_beyond_backup(scenario: DatabaseFaultScenario) -> list[LoggedEvent]:
    """Wait until all readers have events that the backup lacks, and pause the writers; return the logs."""
    scenario.wait_for_events(40)
    scenario.writers.pause()
    _assert_consistent(scenario)
    return scenario.fetch_log()


def _resume_and_settle(scenario: DatabaseFaultScenario, before: list[LoggedEvent]) -> None:
    """Resume the writers, and check that all followers finally received exactly the events of the logs."""
    scenario.writers.resume()
    scenario.wait_for_events(20)
    scenario.writers.pause()
    _assert_consistent(scenario)
    assert [line for one in scenario.followers for line in find_mixed_lives(one, before)] == []
    assert [one.kind for one in scenario.followers if len(one.lives) < 2] == []


def _restore_backup(
    scenario: DatabaseFaultScenario, path: Path, before: list[LoggedEvent], *, recovering: bool = False
) -> None:
    scenario.server.kill()
    scenario.server.restore(path, recovering=recovering)
    scenario.server.start()
    scenario.server.reset_settings()
    scenario.record_restore(before)
    assert scenario.lost_events


def _assert_expired(scenario: DatabaseFaultScenario) -> None:
    """Check that open streams ended with `cursor_expired`."""
    assert [one.reasons for one in scenario.followers if isinstance(one, StreamFollower)] == [["cursor_expired"]] * 3


def _count_events(logs: list[LoggedEvent], org: str) -> int:
    return sum(one.org == org for one in logs)


@pytest.mark.soak
@pytest.mark.parametrize("frozen", [("api",), ("api", "worker")], ids="-".join)
def test_files_restored_while_no_process_looks(
    scenario: DatabaseFaultScenario, tmp_path: Path, frozen: tuple[str, ...]
) -> None:
    """Same server and timeline: at the next read the logs are longer than before, with other events."""
    scenario.server.back_up(tmp_path / "base")
    before = _advance_beyond_backup(scenario)
    with scenario.follower_thread.pause(), scenario.freeze_processes(*frozen):
        _restore_backup(scenario, tmp_path / "base", before)
        scenario.writers.resume()
        orgs = {one.org for one in before}
        wait_until(
            lambda: all(_count_events(now, org) > _count_events(before, org) + 5 for now in [scenario.fetch_log()] for org in orgs),
            "every log, the network's too, goes further than before", within=120, every=0.5,
        )  # fmt: skip
        scenario.writers.pause()
    _resume_and_settle(scenario, before)
    _assert_expired(scenario)


@pytest.mark.soak
@pytest.mark.parametrize("recovering", [False, True], ids=["same timeline", "another timeline"])
def test_readers_that_read_before_the_next_write(
    scenario: DatabaseFaultScenario, tmp_path: Path, recovering: bool
) -> None:
    """The logs end before the positions of the readers."""
    scenario.server.back_up(tmp_path / "base")
    before = _advance_beyond_backup(scenario)
    _restore_backup(scenario, tmp_path / "base", before, recovering=recovering)
    _assert_consistent(scenario)
    _resume_and_settle(scenario, before)
    _assert_expired(scenario)


@pytest.mark.soak
def test_a_restored_backup_of_rows(scenario: DatabaseFaultScenario, tmp_path: Path) -> None:
    """`joinery restore` into the empty database of a new server at the same address."""
    env = {name: value for name, value in scenario.services.env.items() if name != "JOINERY_PORT"}
    run_command("backup", tmp_path / "backup", **env)
    before = _advance_beyond_backup(scenario)
    scenario.stop_processes()
    scenario.server.kill()
    shutil.rmtree(scenario.server.home / "postgres")
    scenario.server.start()
    run_command("restore", tmp_path / "backup", **env)
    scenario.record_restore(before)
    scenario.start_processes()
    _resume_and_settle(scenario, before)
