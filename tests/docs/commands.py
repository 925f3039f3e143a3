"""The commands of a page: its `sh` blocks in order, and the comments before them that control how they run.

A block is run unless `<!-- not run: why -->` stands in the line before it. `<!-- run with the key of test mode -->` has it, and
what follows on the page, use that key. `<!-- answers 400, 401 -->` lists the refusals that it shows.
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
    """A block of a page; `line` is where it begins."""

    page: str
    line: int
    language: str
    text: str
    note: str

    @property
    def reason(self) -> str:
        """Why it is not run; empty when it is."""
        return self.note.partition("not run: ")[2]

    @property
    def refusals(self) -> set[int]:
        """The statuses of refusals that it shows."""
        return {int(status) for status in re.findall(r"\d+", self.note)} if self.note.startswith("answers ") else set()

    @property
    def in_test_mode(self) -> bool:
        return self.note == "run with the key of test mode"


def blocks(page: Path, language: str = "sh") -> list[Block]:
    """The page's blocks in that language."""
    text = page.read_text("utf-8")
    return [
        Block(page.name, text.count("\n", 0, found.start()) + 1, language, found["text"], found["note"] or "")
        for found in _BLOCK.finditer(text)
        if found["language"] == language
    ]


def script(parts: list[Block]) -> str:
    """One script of the blocks; what goes to stderr tells which of them is under way."""
    lines = ["set -e"]
    for block in parts:
        lines.append(f"echo 'BLOCK {block.line}' >&2")
        if block.in_test_mode:
            lines.append("JOINERY_KEY=$JOINERY_TEST_KEY")
        lines.append(block.text)
    return "\n".join(lines)


def refused(parts: list[Block], stderr: str) -> list[str]:
    """What was answered with other than success, and is not shown on purpose; each with the line of its block."""
    allowed = {block.line: block.refusals for block in parts}
    found, line, seen = [], 0, {}
    for message in stderr.splitlines():
        if message.startswith("BLOCK "):
            line = int(message.split()[1])
        elif (match := re.match(r"ANSWER (\d+) (.*)", message)) is not None:
            status = int(match[1])
            seen.setdefault(line, set()).add(status)
            if not 200 <= status < 400 and status not in allowed[line]:
                found.append(f"line {line}: {match[2]} answered {status}")
    missing = {at: shown - seen.get(at, set()) for at, shown in allowed.items()}
    return found + [f"line {at}: {sorted(left)} never came" for at, left in missing.items() if left]
