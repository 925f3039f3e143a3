"""Every command in README and docs/ works as documented, against a running server, in the order of the page."""

import json
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from entrypoints.demo.messages import format_own_feed_commands
from tests.docs.commands import PAGES, ROOT, Block, build_script, find_unexpected_responses, read_blocks
from tests.docs.server import Server

SHELLS = [shell for shell in ("dash", "bash", "zsh") if shutil.which(shell)]
EXPECTED_OUTPUT = (
    '"object": "list"',
    "src_",
    "succeeded",
    "'products_created': 2",
    "Oak bench",
    '"price"',
    "18900",
    "16900",
)
"""Texts that the output of docs/quickstart.md contains."""
pytestmark = pytest.mark.skipif(shutil.which("curl") is None or not SHELLS, reason="needs curl and a shell")


def run_blocks(server: Server, parts: list[Block], shell: str, scratch: Path) -> list[str]:
    """Run the blocks of a page in a shell and return the errors."""
    scratch.mkdir()
    (scratch / ".venv").symlink_to(sys.prefix)
    text = build_script(parts).replace("127.0.0.1:9000", f"127.0.0.1:{server.receiver_port}")
    done = subprocess.run([shell, "-c", text], cwd=scratch, env=server.env, capture_output=True, text=True, timeout=60)
    name = f"{parts[0].page} ({shell})"
    faults = [f"{name}: {fault}" for fault in find_unexpected_responses(parts, done.stderr)]
    if done.returncode:
        at = re.findall(r"^BLOCK (\d+)$", done.stderr, re.MULTILINE)
        faults.append(f"{name}: the block of line {at[-1]} ended with {done.returncode}: {done.stderr[-800:]}")
    (scratch / "output").write_text(done.stdout + done.stderr)
    return faults


def test_every_command_works_as_documented(server: Server, tmp_path: Path) -> None:
    work = []
    for page in PAGES:
        parts = [block for block in read_blocks(page) if not block.skip_reason]
        shells = SHELLS if page.name == "README.md" else SHELLS[:1]
        work += [(parts, shell, tmp_path / f"{page.stem}-{shell}") for shell in shells if parts]
    with ThreadPoolExecutor(8) as pool:
        faults = list(pool.map(lambda task: run_blocks(server, *task), work))
    messages = [fault for found in faults for fault in found]
    assert not messages, "\n".join(messages)
    shown = (tmp_path / f"quickstart-{SHELLS[0]}" / "output").read_text()
    assert not [words for words in EXPECTED_OUTPUT if words not in shown]
    ran = {(part.page, part.line) for parts, _, _ in work for part in parts}
    left = [block for page in PAGES for block in read_blocks(page) if block.skip_reason]
    print(f"{len(ran)} blocks ran in {', '.join(SHELLS)}; {len(left)} did not:")
    print("\n".join(f"  {block.page}:{block.line} {block.skip_reason}" for block in left))
    assert len(ran) > 30


@pytest.mark.parametrize("shell", SHELLS)
def test_commands_that_the_demo_prints_work(server: Server, tmp_path: Path, shell: str) -> None:
    lines = format_own_feed_commands(server.env["JOINERY_URL"], server.env["JOINERY_KEY"])
    done = subprocess.run(
        [shell, "-c", "\n".join(lines)], cwd=tmp_path, env=server.env, capture_output=True, text=True, timeout=60
    )
    assert json.loads(done.stdout)["data"][0]["data"]["title"] == "Oak stool", done.stderr


def test_all_pages_have_the_same_field_function() -> None:
    """The function `field` is the same on each page."""
    made = [
        re.findall(r"^field\(\) \{.*?\}$", block.text, re.M | re.S) for page in PAGES for block in read_blocks(page)
    ]
    found = [text for each in made for text in each]
    assert len(found) > 4 and len(set(found)) == 1


def test_a_missing_field_is_reported_with_the_response() -> None:
    """`field` prints the response instead of a traceback."""
    readme = next(text for block in read_blocks(ROOT / "README.md") if "field()" in (text := block.text))
    [function] = re.findall(r"^field\(\) \{.*?\}$", readme, re.M | re.S)
    for given, field in (('{"code": "not_found"}', "id"), ('{"data": []}', "data.0.id"), ("[]", "id")):
        done = subprocess.run(
            [SHELLS[0], "-c", f"{function}\nfield {field}"], input=given, capture_output=True, text=True, timeout=20
        )
        assert (done.returncode, done.stdout, done.stderr.strip()) == (1, "", given)


def test_no_block_has_a_comment() -> None:
    """An interactive zsh does not treat `#` as the start of a comment."""
    for page in PAGES:
        for block in read_blocks(page):
            found = [line for line in block.text.splitlines() if re.search(r"(^|\s)# ", line)]
            assert not found, (page.name, block.line, found)


def test_a_block_that_is_not_run_states_the_reason() -> None:
    """Commands are only in `sh` blocks, so that only a comment with a reason excludes them from the test."""
    for page in PAGES:
        for block in read_blocks(page):
            assert not block.note.startswith("not run") or len(block.skip_reason) > 8, (page.name, block.line)
        for language in ("", "bash", "shell", "console"):
            hidden = [
                b.line
                for b in read_blocks(page, language)
                if not b.skip_reason and re.match(r"(\$ )?(curl|make|joinery|pip|npm) ", b.text)
            ]
            assert not hidden, (page.name, hidden)
