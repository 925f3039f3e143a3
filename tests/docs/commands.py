"""The commands of a page: its `sh` blocks in order, and the comments before the blocks that control how they run.

A block is run unless the line before it is `<!-- not run: reason -->`. From a block after `<!-- run with the key of test mode -->` on,
the page uses that key. `<!-- answers 400, 401 -->` lists the statuses of the errors that a block shows.
"""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
_BLOCK = re.compile(
    r"(?:^<!-- (?P<note>[^\n]*) -->\n)?^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)


@dataclass(frozen=True)
class Block:
    """A block of a page, which begins in the line `line`."""

    page: str
    line: int
    language: str
    text: str
    note: str

    @property
    def skip_reason(self) -> str:
        """The reason why the block is not run; empty if it is run."""
        return self.note.partition("not run: ")[2]

    @property
    def expected_errors(self) -> set[int]:
        """The statuses of errors that the block shows."""
        return {int(status) for status in re.findall(r"\d+", self.note)} if self.note.startswith("answers ") else set()

    @property
    def uses_test_key(self) -> bool:
        return self.note == "run with the key of test mode"


def read_blocks(page: Path, language: str = "sh") -> list[Block]:
    """Return the page's blocks in the language."""
    text = page.read_text("utf-8")
    return [
        Block(page.name, text.count("\n", 0, found.start()) + 1, language, found["text"], found["note"] or "")
        for found in _BLOCK.finditer(text)
        if found["language"] == language
    ]


def build_script(parts: list[Block]) -> str:
    """Build one script of the blocks, which writes the line of each block to stderr before the block runs."""
    lines = ["set -e"]
    for block in parts:
        lines.append(f"echo 'BLOCK {block.line}' >&2")
        if block.uses_test_key:
            lines.append("JOINERY_KEY=$JOINERY_TEST_KEY")
        lines.append(block.text)
    return "\n".join(lines)


def find_unexpected_responses(parts: list[Block], stderr: str) -> list[str]:
    """Return the errors that the page does not show, and the shown errors that did not occur, each with the line of its block."""
    allowed = {block.line: block.expected_errors for block in parts}
    found, line, seen = [], 0, {}
    for message in stderr.splitlines():
        if message.startswith("BLOCK "):
            line = int(message.split()[1])
        elif (match := re.match(r"ANSWER (\d+) (.*)", message)) is not None:
            status = int(match[1])
            seen.setdefault(line, set()).add(status)
            if not 200 <= status < 400 and status not in allowed[line]:
                found.append(f"line {line}: {match[2]} returned {status}")
    missing = {at: shown - seen.get(at, set()) for at, shown in allowed.items()}
    return found + [f"line {at}: {sorted(left)} did not occur" for at, left in missing.items() if left]
