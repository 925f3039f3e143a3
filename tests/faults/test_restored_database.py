"""A backup is put in the database's place while everybody reads on: all are notified, and none misses anything afterwards."""

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
    """Everybody writes and reads."""
    with run_scenario([{}]) as made, made.writers.run(), made.follower_thread.run():
        made.wait_for_events(20)
        yield made


def _assert_consistent(scenario: DatabaseFaultScenario) -> None:
    wrong = scenario.wait_for_consistency()
    assert not wrong, "\n".join([*wrong, *scenario.format_totals()])


def _advance_beyond_backup(scenario: DatabaseFaultScenario) -> list[LoggedEvent]:
    """Everybody has read what the backup does not know. Answers the logs, with the writers at rest."""
    scenario.wait_for_events(40)
    scenario.writers.pause()
    _assert_consistent(scenario)
    return scenario.fetch_log()


def _resume_and_settle(scenario: DatabaseFaultScenario, before: list[LoggedEvent]) -> None:
    """Writers go on, and in the end everybody has been told of all that is in the logs, and of nothing else since."""
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
    """Those whose streams stayed open all the time heard it there."""
    assert [one.reasons for one in scenario.followers if isinstance(one, StreamFollower)] == [["cursor_expired"]] * 3


def _count_events(logs: list[LoggedEvent], org: str) -> int:
    return sum(one.org == org for one in logs)


@pytest.mark.soak
@pytest.mark.parametrize("frozen", [("api",), ("api", "worker")], ids="-".join)
def test_files_restored_while_no_process_looks(
    scenario: DatabaseFaultScenario, tmp_path: Path, frozen: tuple[str, ...]
) -> None:
    """Same server, same timeline: when anybody looks again, the logs go further than ever, with other events."""
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
    """The logs end before the places where everybody stands."""
    scenario.server.back_up(tmp_path / "base")
    before = _advance_beyond_backup(scenario)
    _restore_backup(scenario, tmp_path / "base", before, recovering=recovering)
    _assert_consistent(scenario)
    _resume_and_settle(scenario, before)
    _assert_expired(scenario)


@pytest.mark.soak
def test_a_restored_backup_of_rows(scenario: DatabaseFaultScenario, tmp_path: Path) -> None:
    """`joinery restore` into a new server's empty database, at the old one's address."""
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
