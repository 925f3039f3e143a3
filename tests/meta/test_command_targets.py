"""Every command has its function and an own line of help: modules are only imported when their command is given."""

from importlib import import_module

import pytest

from entrypoints.cli.main import COMMANDS, main


@pytest.mark.parametrize("command", COMMANDS)
def test_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command.split(), "--help"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"Usage: joinery {command}")
    module, _, function = COMMANDS[command][0].partition(":")
    doc = getattr(import_module(f"entrypoints.cli.{module}"), function).__doc__
    assert doc.partition("\n")[0].replace("`", "") in " ".join(out.split())
    assert "Args:" not in out


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
