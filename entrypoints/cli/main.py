"""The command line: what commands there are. Each is a function, imported when the command is given."""

import asyncio
import inspect
import sys
from collections.abc import Sequence
from typing import Any, Final

from cyclopts import App, CycloptsError, Parameter

from domain.kernel.errors import DomainError
from entrypoints.backup.archive import BackupError
from entrypoints.cli.errors import CommandError
from entrypoints.preflight import PreflightError, allow_many_files, refuse_foreign_packages
from entrypoints.settings import SettingsError
from entrypoints.up.errors import UpError

_INSUFFICIENT_PRIVILEGE: Final = "42501"
"""PostgreSQL's code of the error; the driver's class is not imported, so that commands without a database start fast."""
REFUSALS: Final = (SettingsError, UpError, DomainError, PreflightError, CommandError, BackupError)

COMMANDS: Final = {
    "up": ("processes:up", "run everything on embedded parts, on this machine only"),
    "api": ("processes:api", "run the API (needs JOINERY_DATABASE_URL and JOINERY_SECRET)"),
    "worker": ("processes:worker", "run a worker: carries out runs, delivers webhooks"),
    "scheduler": ("processes:scheduler", "run the scheduler: due pulls, waking workers, maintenance"),
    "mail": ("processes:mail", "run the mail listener: takes messages for sources' inbound addresses"),
    "migrate": ("database:migrate", "bring the database to this release's schema"),
    "backup": ("backup:backup", "copy everything, while it runs: rows, objects, the secret"),
    "restore": ("backup:restore", "fill an empty database and object store from a backup"),
    "mirror": ("mirror:mirror", "keep a copy of a catalogue, through the API alone"),
    "openapi": ("processes:openapi", "print the OpenAPI document"),
    "doctor": ("doctor:doctor", "tell what is configured, reachable and wrong"),
    "read": ("connectors:read", "try a feed: map and normalise a file, without a server"),
    "match": ("match:match", "tell which items of two CSV files are the same, without a server"),
    "sql": ("sql:sql", "print the statement of a list as it is sent to PostgreSQL"),
    "plugins": ("connectors:plugins", "list or check connector plugins"),
    "probe": ("probe:probe", "look at a website as a source probe does, without a server"),
    "org create": ("organisations:create", "add an organisation"),
    "org list": ("organisations:list_all", "every organisation: id, plan, kind, name"),
    "org export": ("organisations:export", "write all of an organisation's data to a folder, as its API answers it"),
    "org rematch": ("organisations:rematch", "match everything once more, with weights learnt anew"),
    "org delete": ("organisations:delete", "delete an organisation and everything of it, for good"),
    "org plan": ("organisations:change_plan", "put an organisation on another plan"),
    "member add": ("people:add_member", "add a member to an organisation"),
    "token create": ("people:create_token", "make a token with which a script acts as a member does in the console"),
    "session link": ("people:link", "make a link with which a member signs in to the console, once"),
    "session list": ("people:list_sessions", "where a person is signed in"),
    "session end": ("people:end_sessions", "end a person's sessions and tokens, at once"),
    "app create": ("credentials:create_app", "make an OAuth app; its secret is shown once"),
    "app list": ("credentials:list_apps", "list them"),
    "app delete": ("credentials:delete_app", "delete one; its tokens prove nothing from then on"),
    "sso set": ("sso:set_up", "set a provider up, or change it"),
    "sso show": ("sso:show", "what is set up, and each domain's record"),
    "sso domain": ("sso:add_domain", "name a domain, or look for its record when it is named already"),
    "sso enforce": ("sso:enforce", "let members of proven domains in by it alone"),
    "sso remove": ("sso:remove", "forget the provider and whom it knows"),
    "key create": ("credentials:create_key", "make an API key; its secret is shown once"),
    "key revoke": ("credentials:revoke_key", "end an API key at once"),
    "audit verify": ("audit:verify", "check that no audit entry was changed, taken out, put in or moved"),
    "secret rotate": ("secret:rotate", "have a new secret take the place of the current one"),
    "secret status": ("secret:status", "tell how much stands under which secret"),
    "secret retire": ("secret:retire", "do without the former secrets; refused while anything needs one"),
    "incident open": ("incident:open_one", "tell that a part of the service does not do its work"),
    "incident update": ("incident:update", "tell what is known by now"),
    "incident close": ("incident:close", "tell that it is over"),
    "incident list": ("incident:list_open", "those that are open"),
    "source why": ("source:why", "explain the age of a source's data: status, freshness, latest runs"),
    "cluster init": ("database:init", "give every table its place; run again, it does what is left"),
    "cluster status": ("database:show_status", "tell what each node holds, and what is being moved"),
    "cluster move": ("database:move", "move an organisation's shard to another node while it is used"),
    "cluster rebalance": ("database:rebalance", "spread the shards evenly; it goes on when this command is ended"),
}
"""Every command: the function that carries it out, and its line in the lists of commands."""
GROUPS: Final = {
    "org": "organisations",
    "member": "members",
    "token": "members' bearer tokens",
    "session": "people's sessions in the console, and tokens",
    "app": "OAuth apps of an organisation",
    "sso": "organisations' own identity providers (OpenID Connect)",
    "key": "API keys",
    "audit": "the audit log",
    "secret": "the secret that everything is sealed and signed under",
    "incident": "incidents, which /status shows",
    "source": "sources",
    "cluster": "a cluster of PostgreSQL servers, at the coordinator JOINERY_DATABASE_URL",
}


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
    groups = {name: App(name, help=f"manage {subject}", help_epilogue="") for name, subject in GROUPS.items()}
    for group in groups.values():
        app.command(group)
    for command, (target, summary) in COMMANDS.items():
        word, _, name = command.rpartition(" ")
        groups.get(word, app).command(f"entrypoints.cli.{target}", name=name, help=summary, help_epilogue="")
    return app


def _describe_default(value: Any) -> str | None:
    """Write an option's default for its help; nothing for what is off."""
    return (", ".join(value) if isinstance(value, tuple) else str(value)) if value else None


def _version() -> str:
    from importlib.metadata import version  # noqa: PLC0415  every command starts without it

    return f"joinery {version('joinery')}"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code. What goes wrong foreseeably is printed in one sentence."""
    try:
        refuse_foreign_packages()
        allow_many_files()
        app = command_line()
        _, apps, _ = app.parse_commands(argv)
        for one in apps:
            if one.default_command:
                # a command's own help is its function's docstring, reflowed; the summary is for lists, which start faster
                one.help, one.help_format = None, "markdown"
        command, bound, _ = app.parse_args(argv, print_error=False, exit_on_error=False)
        result = command(*bound.args, **bound.kwargs)
        return int((asyncio.run(result) if inspect.iscoroutine(result) else result) or 0)
    except CycloptsError as error:
        print(f"joinery: {error}", file=sys.stderr)
        return 2
    except REFUSALS as error:
        print(f"joinery: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        if getattr(error, "sqlstate", None) != _INSUFFICIENT_PRIVILEGE:
            raise
        print("joinery: This command needs the owner of the schema: set JOINERY_MIGRATE_DATABASE_URL.", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
