"""The command line. Each command is a function, imported when it is run."""

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
from entrypoints.preflight import allow_many_files, refuse_foreign_packages

_INSUFFICIENT_PRIVILEGE = "42501"
"""PostgreSQL's error code; the driver's class is not imported, so that commands without a database start fast."""
_CONFIGURATION = tomllib.loads(files(__package__).joinpath("commands.toml").read_text("utf-8"))
COMMANDS: Final[dict[str, list[str]]] = _CONFIGURATION["commands"]
"""Target function and summary of every command."""


def command_line() -> App:
    """Build the parser of all commands."""
    app = App(
        "joinery",
        help="Joins furniture vendors' feeds into one catalogue.",
        help_epilogue="Start with `joinery up --demo`. Settings are environment variables: see docs/configuration.md.",
        help_format="plaintext",
        help_formatter="plain",
        version=_version,
        default_parameter=Parameter(negative=(), show_default=_describe_default),
    )
    groups = {
        name: App(name, help=f"manage {subject}", help_epilogue="")
        for name, subject in _CONFIGURATION["groups"].items()
    }
    for group in groups.values():
        app.command(group)
    for command, (target, summary) in COMMANDS.items():
        word, _, name = command.rpartition(" ")
        groups.get(word, app).command(f"entrypoints.cli.{target}", name=name, help=summary, help_epilogue="")
    return app


def _describe_default(value: Any) -> str | None:
    """Return the help text of an option's default; None for a false value."""
    return (", ".join(value) if isinstance(value, tuple) else str(value)) if value else None


def _version() -> str:
    from importlib.metadata import version  # noqa: PLC0415  speeds up all other commands

    return f"joinery {version('joinery')}"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. Expected errors are printed as one sentence."""
    try:
        refuse_foreign_packages()
        allow_many_files()
        app = command_line()
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
        print("joinery: This command requires the schema owner. Set JOINERY_MIGRATE_DATABASE_URL.", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
