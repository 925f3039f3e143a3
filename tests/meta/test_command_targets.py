"""Every command has its function, a summary and a text for each option. Modules are only imported when their command is run."""

import re
from importlib import import_module

import pytest

from entrypoints.cli.main import COMMANDS, build_command_line, main

OPTION_WITHOUT_TEXT = re.compile(r"^  (?:--[\w-]+|[A-Z_]+)(?: \S+)?(?:: \[.*)?$", re.MULTILINE)


@pytest.mark.parametrize("command", COMMANDS)
def test_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command.split(), "--help"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"Usage: joinery {command}")
    module, _, function = COMMANDS[command][0].partition(":")
    doc = getattr(import_module(f"entrypoints.cli.{module}"), function).__doc__
    assert doc.partition("\n")[0].replace("`", "") in " ".join(out.split())
    assert "Args:" not in out
    assert OPTION_WITHOUT_TEXT.findall(out) == []


def test_summaries_are_sentences() -> None:
    assert [summary for _, summary in COMMANDS.values() if not re.fullmatch(r"[A-Z][^.]+\.", summary)] == []


def test_aliases() -> None:
    app = build_command_line()
    files = ["--left", "a.csv", "--right", "b.csv", "--out", "c.csv"]
    commands = [
        (["match", *files, "--least", "0.5"], ["match", *files, "--min-probability", "0.5"]),
        (["audit", "verify", "--noted", "1:ab"], ["audit", "verify", "--expected-hash", "1:ab"]),
        (["source", "why", "src_1"], ["source", "explain", "src_1"]),
    ]
    for argv, with_alias in commands:
        assert app.parse_args(argv)[:2] == app.parse_args(with_alias)[:2]


@pytest.mark.parametrize(
    ("argv", "reason"),
    [
        (["nonsense"], 'Unknown command "nonsense"'),
        (["org", "creat"], 'Did you mean "create"?'),
        (["org", "create", "--name", "x"], "--kind requires an argument"),
        (["org", "create", "--name", "x", "--kind", "maker"], 'Choose from: "retailer", "vendor"'),
        (["worker", "--for", "nothing"], 'Choose from: "runs", "webhooks"'),
        (["source", "why", "src_1", "src_2"], "src_2"),
        (["up", "--port", "many"], "--port"),
    ],
)
def test_wrong_use_is_refused(argv: list[str], reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(argv) == 2
    out, err = capsys.readouterr()
    assert (out, err.startswith("joinery: "), reason in err) == ("", True, True)
