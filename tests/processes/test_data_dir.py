"""The data directory and the packaged programs under awkward circumstances, each told or overcome."""

import asyncio
import os
import shutil
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import psycopg
import pytest

from entrypoints.errors import UpError
from entrypoints.up import binaries, directory, process
from entrypoints.up.children import environment
from entrypoints.up.directory import announce, attach
from entrypoints.up.servers import Postgres
from entrypoints.up.supervisor import default_data_dir, describe, pause

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="root only")


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user may enter."""
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(total=100, used=100, free=5 * 2**20))
    with pytest.raises(UpError, match=r"has only 5 MiB free. At least 200 MiB are required. Free some space"):
        directory.prepare(tmp_path)


def test_postgres_says_why_it_does_not_start(tmp_path: Path) -> None:
    with pytest.raises(UpError, match=r"The embedded PostgreSQL did not start \(.*FATAL.*shared_buffers.*See its log"):
        asyncio.run(Postgres(tmp_path, {"shared_buffers": "nonsense"}).start())


def test_a_process_number_that_went_to_another(tmp_path: Path) -> None:
    """After a crash of the machine, the noted number may be that of any process, here of this one."""

    async def go() -> None:
        postgres = Postgres(tmp_path)
        await postgres.start()
        await postgres.stop()
        note = tmp_path / "postgres" / "postmaster.pid"
        lines = f"{os.getpid()}\n{tmp_path}\n0\n5432\n\n\n0 0\nready   \n"
        sockets = directory.socket_directory(tmp_path, "postgres", (tmp_path / "postgres").stat().st_uid or None)
        for path in (note, sockets / ".s.PGSQL.5432.lock"):
            path.write_text(lines)
        await postgres.start()
        with psycopg.connect(postgres.url()) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
        await postgres.stop()

    asyncio.run(go())


def test_an_interrupted_first_start(tmp_path: Path) -> None:
    half = tmp_path / "postgres.new"
    half.mkdir()
    (half / "PG_VERSION").write_text("18\n")
    (tmp_path / "postgres").mkdir()

    async def go() -> None:
        postgres = Postgres(tmp_path)
        await postgres.start()
        await postgres.stop()

    asyncio.run(go())
    assert not half.exists()


@as_root
def test_the_owner_of_the_database_runs_it(tmp_path: Path) -> None:
    async def go() -> None:
        postgres = Postgres(tmp_path)
        await postgres.start()
        await postgres.stop()
        for path in (tmp_path / "postgres", *(tmp_path / "postgres").rglob("*")):
            os.chown(path, 1234, 1234, follow_symlinks=False)
        server = await postgres.start()
        assert Path(f"/proc/{server.pid}").stat().st_uid == 1234
        await postgres.stop()

    asyncio.run(go())


@as_root
def test_programs_in_a_closed_folder_are_copied_once(tmp_path: Path, open_folder: Path) -> None:
    tmp_path.chmod(0o700)
    program = tmp_path / "pg" / "bin" / "postgres"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    copy = binaries.reachable_home(tmp_path / "pg", [tmp_path / "closed", open_folder / "shared"])
    assert copy.is_relative_to(open_folder / "shared")
    assert binaries.open_to_all(copy / "bin")
    assert (copy / "bin" / "postgres").read_text() == "#!/bin/sh\n"
    assert binaries.reachable_home(tmp_path / "pg", [open_folder / "shared"]) == copy
    with pytest.raises(UpError, match="Install Joinery in an accessible directory"):
        binaries.reachable_home(tmp_path / "pg", [tmp_path / "closed"])


@as_root
def test_postgres_out_of_a_closed_folder(tmp_path: Path, open_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = binaries.postgres_home().parent
    site = tmp_path / "site-packages"
    site.mkdir(mode=0o700)
    for name in (f"{package.name}.libs", f"{package.name}/pginstall{binaries.POSTGRES_MAJOR}"):
        shutil.copytree(package.parent / name, site / name)
    closed = site / package.name / f"pginstall{binaries.POSTGRES_MAJOR}"
    monkeypatch.setattr(binaries, "postgres_home", lambda: closed)
    monkeypatch.setattr(binaries.reachable_home, "__defaults__", ([open_folder / "shared"],))

    async def go() -> None:
        postgres = Postgres(tmp_path / "data")
        await postgres.start()
        with psycopg.connect(postgres.url()) as connection:
            connection.execute("DO $$ BEGIN PERFORM 1; END $$")
        await postgres.stop()

    asyncio.run(go())
    assert list((open_folder / "shared").iterdir())


@as_root
def test_a_socket_folder_that_someone_else_made(tmp_path: Path) -> None:
    (tmp_path / "run" / "postgres").mkdir(parents=True)
    os.chown(tmp_path / "run" / "postgres", 4321, 4321)
    with pytest.raises(UpError, match="belongs to another user"):
        directory.socket_directory(tmp_path, "postgres")


def test_a_socket_folder_that_is_a_link(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "run" / "valkey").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UpError, match="belongs to another user"):
        directory.socket_directory(tmp_path, "valkey")


def test_the_secret_is_made_once_and_a_broken_one_is_told(tmp_path: Path) -> None:
    data = directory.prepare(tmp_path)
    made = directory.secret(data)
    assert directory.secret(data) == made
    (tmp_path / "secret").write_text("short")
    with pytest.raises(UpError, match="contains no valid secret"):
        directory.secret(data)


def test_former_secrets_are_handed_on_beside_the_current_one(tmp_path: Path) -> None:
    data = directory.prepare(tmp_path)
    directory.keep_secrets(data, ["c" * 32, "f" * 32, "o" * 32])
    servers = {"database_url": "postgresql://x", "redis_url": "redis://x", "demo": False}
    kept = environment(data, 1, given={}, **servers)
    assert (kept["JOINERY_SECRET"], kept["JOINERY_SECRET_FORMER"]) == ("c" * 32, f"{'f' * 32},{'o' * 32}")
    own = environment(data, 1, given={"JOINERY_SECRET": "e" * 32}, **servers)
    assert (own["JOINERY_SECRET"], own["JOINERY_SECRET_FORMER"]) == ("e" * 32, "")
    (tmp_path / "secret").write_text("c" * 32 + "\nshort\n")
    with pytest.raises(UpError, match="contains no valid secret"):
        directory.secret(data)


def test_secrets_are_rotated_and_forgotten_without_losing_one(tmp_path: Path) -> None:
    data = directory.prepare(tmp_path)
    first = directory.secret(data)
    with ThreadPoolExecutor(8) as several:
        list(several.map(lambda _: directory.rotate_secret(data), range(16)))
    kept = directory.kept_secrets(data)
    assert len(set(kept)) == 17 and kept[-1] == first
    directory.forget_secrets(data, kept[3:])
    assert directory.kept_secrets(data) == kept[:3]


def test_the_childrens_environment(tmp_path: Path) -> None:
    data = directory.prepare(tmp_path)
    given = {"PATH": "/bin", "JOINERY_BASE_URL": "https://api.example", "JOINERY_SECRET": "s" * 40, "JOINERY_PORT": "1"}
    env = environment(data, 8081, database_url="d", redis_url="r", demo=True, given=given)
    assert env["JOINERY_BASE_URL"] == "https://api.example"
    assert env["JOINERY_SECRET"] == "s" * 40
    assert (env["JOINERY_PORT"], env["JOINERY_HOST"], env["JOINERY_DEMO"]) == ("8081", "127.0.0.1", "1")
    assert env["JOINERY_OBJECTS_URL"] == f"file://{tmp_path}/objects"
    assert env["PATH"] == "/bin"
    assert not (tmp_path / "secret").exists()


def test_attaching(tmp_path: Path) -> None:
    data = directory.prepare(tmp_path)
    announce(data, {"JOINERY_SECRET": "x", "HOME": "/root"})
    with pytest.raises(UpError, match=f"not running on {tmp_path}. Start it with `joinery up --data-dir {tmp_path}`"):
        attach(tmp_path)
    claim = directory.lock(data)
    assert attach(tmp_path) == {"JOINERY_SECRET": "x"}
    data.run_file.unlink()
    with pytest.raises(UpError, match="still starting"):
        attach(tmp_path)
    os.close(claim)
    assert default_data_dir({"JOINERY_DATA_DIR": "/srv/j"}) == Path("/srv/j")
    assert default_data_dir({}) == Path(".joinery")


def test_long_logs_are_put_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "LOG_LIMIT", 10)
    log = tmp_path / "x.log"
    log.write_text("0123456789a")
    for word in ("new", "newer"):
        started = process.Process(("/bin/echo", word), {}, log)
        assert asyncio.run(started.wait()) == 0
        assert started.output() == word
    assert (log.read_text(), (tmp_path / "x.log.1").read_text()) == ("new\nnewer\n", "0123456789a")


def test_backing_off_and_words_for_ends() -> None:
    assert [pause(crashes) for crashes in (0, 1, 2, 3, 8, 99)] == [0.25, 0.25, 0.5, 1.0, 30.0, 30.0]
    assert describe(-9) == "was killed by SIGKILL"
    assert describe(3) == "ended (exit code 3)"
