"""A backup is put in the database's place while everybody reads on: all are notified, and none misses anything afterwards."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.faults.database_faults import Scene, scene
from tests.faults.followers import Stream
from tests.faults.log_checks import Logged, mixed
from tests.faults.test_backup import answered
from tests.flows.service_processes import wait_until

PutBack = Callable[[Scene, Path], None]


@pytest.fixture
def restored(tmp_path: Path) -> Iterator[Scene]:
    """Everybody writes and reads."""
    with scene([{}]) as made, made.writers.running(), made.reading.running():
        made.goes_on(20)
        yield made


def _all_well(restored: Scene) -> None:
    wrong = restored.in_the_end()
    assert not wrong, "\n".join([*wrong, *restored.figures()])


def _beyond(restored: Scene) -> list[Logged]:
    """Everybody has read what the backup does not know. Answers the logs, with the writers at rest."""
    restored.goes_on(40)
    restored.writers.pause()
    _all_well(restored)
    return restored.log()


def _settled(restored: Scene, before: list[Logged]) -> None:
    """Writers go on, and in the end everybody has been told of all that is in the logs, and of nothing else since."""
    restored.writers.resume()
    restored.goes_on(20)
    restored.writers.pause()
    _all_well(restored)
    assert [line for one in restored.followers for line in mixed(one, before)] == []
    assert [one.kind for one in restored.followers if len(one.lives) < 2] == []


def _put_back(restored: Scene, path: Path, before: list[Logged], *, recovering: bool = False) -> None:
    restored.server.kill()
    restored.server.put_back(path, recovering=recovering)
    restored.server.start()
    restored.server.settle()
    restored.gone_back(before)
    assert restored.lost


def _assert_expired(restored: Scene) -> None:
    """Those whose streams stayed open all the time heard it there."""
    assert [one.reasons for one in restored.followers if isinstance(one, Stream)] == [["cursor_expired"]] * 3


def _last(logs: list[Logged], org: str) -> int:
    return sum(one.org == org for one in logs)


@pytest.mark.soak
@pytest.mark.parametrize("frozen", [("api",), ("api", "worker")], ids="-".join)
def test_files_that_were_put_back_unnoticed(restored: Scene, tmp_path: Path, frozen: tuple[str, ...]) -> None:
    """Same server, same timeline: when anybody looks again, the logs go further than ever, with other events."""
    restored.server.back_up(tmp_path / "base")
    before = _beyond(restored)
    with restored.reading.held(), restored.frozen(*frozen):
        _put_back(restored, tmp_path / "base", before)
        restored.writers.resume()
        orgs = {one.org for one in before}
        wait_until(
            lambda: all(_last(now, org) > _last(before, org) + 5 for now in [restored.log()] for org in orgs),
            "every log, the network's too, goes further than before", within=120, every=0.5,
        )  # fmt: skip
        restored.writers.pause()
    _settled(restored, before)
    _assert_expired(restored)


@pytest.mark.soak
@pytest.mark.parametrize("recovering", [False, True], ids=["same timeline", "another timeline"])
def test_readers_that_look_before_anybody_writes(restored: Scene, tmp_path: Path, recovering: bool) -> None:
    """The logs end before the places where everybody stands."""
    restored.server.back_up(tmp_path / "base")
    before = _beyond(restored)
    _put_back(restored, tmp_path / "base", before, recovering=recovering)
    _all_well(restored)
    _settled(restored, before)
    _assert_expired(restored)


@pytest.mark.soak
def test_a_restored_backup_of_rows(restored: Scene, tmp_path: Path) -> None:
    """`joinery restore` into a new server's empty database, at the old one's address."""
    env = {name: value for name, value in restored.stage.env.items() if name != "JOINERY_PORT"}
    answered("backup", tmp_path / "backup", **env)
    before = _beyond(restored)
    restored.end_processes()
    restored.server.kill()
    shutil.rmtree(restored.server.home / "postgres")
    restored.server.start()
    answered("restore", tmp_path / "backup", **env)
    restored.gone_back(before)
    restored.start_processes()
    _settled(restored, before)
