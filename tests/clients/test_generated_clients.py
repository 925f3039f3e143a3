"""Clients of common generators: they type-check, and 20 operations respond as described."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from tests.clients.programs import run

pytestmark = pytest.mark.clients
CALLS = Path(__file__).parent / "calls"
CALLED = sorted(
    [
        *"sources.create sources.list sources.read sources.update runs.push runs.read runs.list catalogue.list_products "
        "catalogue.read_product catalogue.list_offers catalogue.list_categories changes.page webhooks.create webhooks.update "
        "webhooks.list webhooks.delete orgs.read orgs.list_plans platform.status".split(),
        "a problem",
    ]
)
STRICT = {
    "strict": True,
    "noEmit": True,
    "target": "es2022",
    "module": "esnext",
    "moduleResolution": "bundler",
    "lib": ["es2022", "dom", "dom.iterable"],
    "types": ["node"],
}


def generate(kind: str, description: Path, out: Path, *settings: str) -> None:
    """Run openapi-generator, which requires Java."""
    if shutil.which("java") is None:
        pytest.skip("java is not installed")
    program = Path(sys.executable).with_name("openapi-generator-cli")
    run(program, "generate", "-i", description, "-g", kind, "-o", out, *settings, cwd=out.parent)


def check_and_call(folder: Path, calls: str, environment: dict[str, str], *checks: str) -> None:
    """Type-check the calls, then run them; `checks` are further settings of the type checker."""
    shutil.copy(CALLS / calls, folder / "calls.py")
    run(sys.executable, "-m", "mypy", "--strict", *checks, "-m", "calls", cwd=folder)
    called = run(sys.executable, "-P", "calls.py", cwd=folder, **environment, PYTHONPATH=str(folder))
    assert json.loads(called) == CALLED


def test_openapi_python_client(tmp_path: Path, description: Path, environment: dict[str, str]) -> None:
    package = tmp_path / "joinery_opc"
    program = Path(sys.executable).with_name("openapi-python-client")
    output = run(
        program, "generate", "--path", description, "--meta", "none", "--output-path", package, "--fail-on-warning",
        "--config", CALLS / "openapi_python_client.yaml", cwd=tmp_path,
    )  # fmt: skip
    assert "WARNING" not in output
    check_and_call(tmp_path, "openapi_python_client_calls.py", environment, "-p", package.name)


def test_openapi_generator_for_python(tmp_path: Path, description: Path, environment: dict[str, str]) -> None:
    out = tmp_path / "out"
    out.mkdir()
    # the code generated for `webhooks` has no types and is not imported
    (out / ".openapi-generator-ignore").write_text("joinery_ogp/api/events_api.py\n")
    generate("python", description, out, "--package-name", "joinery_ogp")
    # the generator's templates are not strict: only their use is checked
    check_and_call(out, "openapi_generator_calls.py", environment, "--follow-imports=silent")


def compile_and_call(folder: Path, npm: Path, environment: dict[str, str]) -> None:
    """Type-check `calls.ts` with its imports, then run it."""
    (folder / "node_modules").symlink_to(npm / "node_modules")
    (folder / "package.json").write_text('{"private": true, "type": "module"}')
    (folder / "tsconfig.json").write_text(json.dumps({"compilerOptions": STRICT, "files": ["calls.ts"]}))
    programs = npm / "node_modules" / ".bin"
    run(programs / "tsc", "-p", "tsconfig.json", cwd=folder)
    run(
        programs / "esbuild", "calls.ts", "--bundle", "--platform=node", "--format=esm", "--outfile=calls.mjs",
        "--log-level=error", cwd=folder,
    )  # fmt: skip
    assert json.loads(run("node", "calls.mjs", cwd=folder, **environment)) == CALLED


def test_openapi_typescript_and_fetch(
    tmp_path: Path, npm: Path, description: Path, environment: dict[str, str]
) -> None:
    run(npm / "node_modules" / ".bin" / "openapi-typescript", description, "-o", tmp_path / "api.d.ts", cwd=npm)
    shutil.copy(CALLS / "openapi_fetch_calls.ts", tmp_path / "calls.ts")
    compile_and_call(tmp_path, npm, environment)


def test_openapi_generator_for_typescript(
    tmp_path: Path, npm: Path, description: Path, environment: dict[str, str]
) -> None:
    generate("typescript-fetch", description, tmp_path / "generated")
    shutil.copy(CALLS / "openapi_generator_calls.ts", tmp_path / "calls.ts")
    compile_and_call(tmp_path, npm, environment)
