"""What many commands take: the store that they work on, and the organisation."""

import argparse
from pathlib import Path


def group(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]", name: str, what: str
) -> "argparse._SubParsersAction[argparse.ArgumentParser]":
    """A word that commands stand behind."""
    word = commands.add_parser(name, help=f"manage {what}")
    return word.add_subparsers(title="commands", required=True, metavar="COMMAND")


def organisation(command: argparse.ArgumentParser) -> None:
    """Whose it is about."""
    command.add_argument(
        "--org", required=True, metavar="ID", help="the organisation's id, or its name if that is unique"
    )


def store(command: argparse.ArgumentParser) -> None:
    """Where everything is kept, and how to answer."""
    command.add_argument("--data-dir", type=Path, help="the store that `joinery up` is running there")
    command.add_argument("--json", action="store_true", help="print one JSON object")
