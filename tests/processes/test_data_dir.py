"""The data directory and the packaged programs under adverse conditions, each reported or overcome."""

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
from entrypoints.up.directory import read_run_file, write_run_file
from entrypoints.up.servers import Postgres
from entrypoints.up.service_processes import build_environment
from entrypoints.up.supervisor import compute_restart_delay, describe_exit, get_default_data_dir

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="root only")


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Create a folder that every user can enter."""
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(total=100, used=100, free=5 * 2**20))
    with pytest.raises(UpError, match=r"has only 5 MiB free. At least 200 MiB are required. Free some space"):
        directory.prepare_directory(tmp_path)


def test_a_failed_start_of_postgres_includes_the_reason(tmp_path: Path) -> None:
    with pytest.raises(UpError, match=r"The embedded PostgreSQL did not start \(.*FATAL.*shared_buffers.*See its log"):
        asyncio.run(Postgres(tmp_path, {"shared_buffers": "nonsense"}).start())


def test_a_process_number_that_went_to_another(tmp_path: Path) -> None:
    """After a crash of the machine, the recorded process ID may belong to another process, here to this one."""

    async def go() -> None:
        postgres = Postgres(tmp_path)
        await postgres.start()
        await postgres.stop()
        note = tmp_path / "postgres" / "postmaster.pid"
        lines = f"{os.getpid()}\n{tmp_path}\n0\n5432\n\n\n0 0\nready   \n"
        sockets = directory.create_socket_folder(tmp_path, "postgres", (tmp_path / "postgres").stat().st_uid or None)
        for path in (note, sockets / ".s.PGSQL.5432.lock"):
            path.write_text(lines)
        await postgres.start()
        with psycopg.connect(postgres.build_url()) as connection:
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
    copy = binaries.ensure_accessible_home(tmp_path / "pg", [tmp_path / "closed", open_folder / "shared"])
    assert copy.is_relative_to(open_folder / "shared")
    assert binaries.is_accessible(copy / "bin")
    assert (copy / "bin" / "postgres").read_text() == "#!/bin/sh\n"
    assert binaries.ensure_accessible_home(tmp_path / "pg", [open_folder / "shared"]) == copy
    with pytest.raises(UpError, match="Install Joinery in a directory that all users can access"):
        binaries.ensure_accessible_home(tmp_path / "pg", [tmp_path / "closed"])


@as_root
def test_postgres_out_of_a_closed_folder(tmp_path: Path, open_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = binaries.find_postgres_home().parent
    site = tmp_path / "site-packages"
    site.mkdir(mode=0o700)
    for name in (f"{package.name}.libs", f"{package.name}/pginstall{binaries.POSTGRES_MAJOR}"):
        shutil.copytree(package.parent / name, site / name)
    closed = site / package.name / f"pginstall{binaries.POSTGRES_MAJOR}"
    monkeypatch.setattr(binaries, "find_postgres_home", lambda: closed)
    monkeypatch.setattr(binaries.ensure_accessible_home, "__defaults__", ([open_folder / "shared"],))

    async def go() -> None:
        postgres = Postgres(tmp_path / "data")
        await postgres.start()
        with psycopg.connect(postgres.build_url()) as connection:
            connection.execute("DO $$ BEGIN PERFORM 1; END $$")
        await postgres.stop()

    asyncio.run(go())
    assert list((open_folder / "shared").iterdir())


@as_root
def test_a_socket_folder_that_someone_else_made(tmp_path: Path) -> None:
    (tmp_path / "run" / "postgres").mkdir(parents=True)
    os.chown(tmp_path / "run" / "postgres", 4321, 4321)
    with pytest.raises(UpError, match="belongs to another user"):
        directory.create_socket_folder(tmp_path, "postgres")


def test_a_socket_folder_that_is_a_link(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "run" / "valkey").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UpError, match="belongs to another user"):
        directory.create_socket_folder(tmp_path, "valkey")


def test_the_secret_is_created_once_and_an_invalid_one_is_reported(tmp_path: Path) -> None:
    data = directory.prepare_directory(tmp_path)
    made = directory.read_or_create_secret(data)
    assert directory.read_or_create_secret(data) == made
    (tmp_path / "secret").write_text("short")
    with pytest.raises(UpError, match="contains no valid secret"):
        directory.read_or_create_secret(data)


def test_former_secrets_are_passed_on_with_the_current_one(tmp_path: Path) -> None:
    data = directory.prepare_directory(tmp_path)
    directory.store_secrets(data, ["c" * 32, "f" * 32, "o" * 32])
    servers = {"database_url": "postgresql://x", "redis_url": "redis://x", "includes_demo": False}
    kept = build_environment(data, 1, base_environment={}, **servers)
    assert (kept["JOINERY_SECRET"], kept["JOINERY_SECRET_FORMER"]) == ("c" * 32, f"{'f' * 32},{'o' * 32}")
    own = build_environment(data, 1, base_environment={"JOINERY_SECRET": "e" * 32}, **servers)
    assert (own["JOINERY_SECRET"], own["JOINERY_SECRET_FORMER"]) == ("e" * 32, "")
    (tmp_path / "secret").write_text("c" * 32 + "\nshort\n")
    with pytest.raises(UpError, match="contains no valid secret"):
        directory.read_or_create_secret(data)


def test_secrets_are_rotated_and_forgotten_without_losing_one(tmp_path: Path) -> None:
    data = directory.prepare_directory(tmp_path)
    first = directory.read_or_create_secret(data)
    with ThreadPoolExecutor(8) as several:
        list(several.map(lambda _: directory.rotate_secret(data), range(16)))
    kept = directory.read_secrets(data)
    assert len(set(kept)) == 17 and kept[-1] == first
    directory.remove_secrets(data, kept[3:])
    assert directory.read_secrets(data) == kept[:3]


def test_the_childrens_environment(tmp_path: Path) -> None:
    data = directory.prepare_directory(tmp_path)
    given = {"PATH": "/bin", "JOINERY_BASE_URL": "https://api.example", "JOINERY_SECRET": "s" * 40, "JOINERY_PORT": "1"}
    env = build_environment(data, 8081, database_url="d", redis_url="r", includes_demo=True, base_environment=given)
    assert env["JOINERY_BASE_URL"] == "https://api.example"
    assert env["JOINERY_SECRET"] == "s" * 40
    assert (env["JOINERY_PORT"], env["JOINERY_HOST"], env["JOINERY_DEMO"]) == ("8081", "127.0.0.1", "1")
    assert env["JOINERY_OBJECTS_URL"] == f"file://{tmp_path}/objects"
    assert env["PATH"] == "/bin"
    assert not (tmp_path / "secret").exists()


def test_attaching(tmp_path: Path) -> None:
    data = directory.prepare_directory(tmp_path)
    write_run_file(data, {"JOINERY_SECRET": "x", "HOME": "/root"})
    with pytest.raises(UpError, match=f"not running on {tmp_path}. Start it with `joinery up --data-dir {tmp_path}`"):
        read_run_file(tmp_path)
    claim = directory.lock_directory(data)
    assert read_run_file(tmp_path) == {"JOINERY_SECRET": "x"}
    data.run_file.unlink()
    with pytest.raises(UpError, match="still starting"):
        read_run_file(tmp_path)
    os.close(claim)
    assert get_default_data_dir({"JOINERY_DATA_DIR": "/srv/j"}) == Path("/srv/j")
    assert get_default_data_dir({}) == Path(".joinery")


def test_long_logs_are_put_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "LOG_ROTATION_BYTES", 10)
    log = tmp_path / "x.log"
    log.write_text("0123456789a")
    for word in ("new", "newer"):
        started = process.ChildProcess(("/bin/echo", word), {}, log)
        assert asyncio.run(started.wait()) == 0
        assert started.read_output() == word
    assert (log.read_text(), (tmp_path / "x.log.1").read_text()) == ("new\nnewer\n", "0123456789a")


def test_backing_off_and_words_for_ends() -> None:
    assert [compute_restart_delay(crashes) for crashes in (0, 1, 2, 3, 8, 99)] == [0.25, 0.25, 0.5, 1.0, 30.0, 30.0]
    assert describe_exit(-9) == "was killed by SIGKILL"
    assert describe_exit(3) == "ended (exit code 3)"
