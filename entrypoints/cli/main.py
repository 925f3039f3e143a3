"""The command line `joinery`. The function of a command is imported only when the command is run."""

import asyncio
import inspect
import sys
import tomllib
from collections.abc import Sequence
from importlib.resources import files
from typing import Any, Final

from cyclopts import App, CycloptsError, Parameter

from domain.kernel.errors import DomainError
from entrypoints.errors import OperatorError
from entrypoints.preflight import check_packages, raise_file_limit

_INSUFFICIENT_PRIVILEGE = "42501"
"""Error code of PostgreSQL (SQLSTATE) for a missing privilege."""
_CONFIGURATION = tomllib.loads(files(__package__).joinpath("commands.toml").read_text("utf-8"))
COMMANDS: Final[dict[str, list[str]]] = _CONFIGURATION["commands"]
"""Function (`module:name`) and summary of each command, by command."""


def build_command_line() -> App:
    """Build the parser of the command line with all commands."""
    app = App(
        "joinery",
        help="Combine the feeds of furniture vendors into one catalogue.",
        help_epilogue="Start with `joinery up --demo`. Settings are environment variables, which docs/configuration.md lists.",
        help_format="plaintext",
        help_formatter="plain",
        version=_format_version,
        default_parameter=Parameter(negative=(), show_default=_describe_default),
    )
    groups = {name: App(name, help=summary, help_epilogue="") for name, summary in _CONFIGURATION["groups"].items()}
    for group in groups.values():
        app.command(group)
    for command, (target, summary) in COMMANDS.items():
        parent, _, name = command.rpartition(" ")
        groups.get(parent, app).command(f"entrypoints.cli.{target}", name=name, help=summary, help_epilogue="")
    return app


def _describe_default(value: Any) -> str | None:
    """Return the text that the help shows for an option's default; None for an empty or false default."""
    return (", ".join(value) if isinstance(value, tuple) else str(value)) if value else None


def _format_version() -> str:
    """Return the output of `joinery --version`."""
    from importlib.metadata import version  # noqa: PLC0415  speeds up all other commands

    return f"joinery {version('joinery')}"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code. Expected errors are printed in one line."""
    try:
        check_packages()
        raise_file_limit()
        app = build_command_line()
        _, apps, _ = app.parse_commands(argv)
        for subcommand in apps:
            if subcommand.default_command:
                # help of a command is its function's docstring; the summary is for lists, which need no import
                subcommand.help, subcommand.help_format = None, "markdown"
        command, bound, _ = app.parse_args(argv, print_error=False, exit_on_error=False)
        result = command(*bound.args, **bound.kwargs)
        return int((asyncio.run(result) if inspect.iscoroutine(result) else result) or 0)
    except CycloptsError as error:
        print(f"joinery: {error}", file=sys.stderr)
        return 2
    except (OperatorError, DomainError) as error:
        print(f"joinery: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        if getattr(error, "sqlstate", None) != _INSUFFICIENT_PRIVILEGE:
            raise
        print(
            "joinery: This command requires the database role that owns the schema. Set JOINERY_MIGRATE_DATABASE_URL to a URL "
            "with this role.",
            file=sys.stderr,
        )
        return 1


if __name__ == "__main__":
    sys.exit(main())
