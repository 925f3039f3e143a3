"""The command line: what there is, and what each command takes."""

import argparse
import asyncio
import importlib
import sys
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

from domain.access.model import ROLES
from domain.kernel.errors import DomainError
from domain.orgs.model import KINDS
from domain.platform.model import COMPONENTS
from entrypoints.backup.archive import BackupError
from entrypoints.cli.errors import CommandError
from entrypoints.cli.options import group as _group
from entrypoints.cli.options import organisation as _org
from entrypoints.cli.options import store as _store
from entrypoints.cli.sso_options import sso as _sso
from entrypoints.preflight import PreflightError, allow_many_files, refuse_foreign_packages
from entrypoints.settings import SettingsError
from entrypoints.up.errors import UpError

_TROUBLED = ("degraded", "down")
_INSUFFICIENT_PRIVILEGE = "42501"
"""PostgreSQL's code of the error; the driver's class is not imported, so that commands without a database start fast."""
REFUSALS = (SettingsError, UpError, DomainError, PreflightError, CommandError, BackupError)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; answers its exit code. What goes wrong foreseeably is said in one sentence."""
    options = parser().parse_args(argv)
    try:
        refuse_foreign_packages()
        allow_many_files()
        return int(asyncio.run(_command(options.run)(options)))
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


class _Version(argparse.Action):
    """Prints the version, which is read from the package's metadata only when it is requested."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        """Print and exit."""
        from importlib.metadata import version  # noqa: PLC0415  every command starts without it

        print(f"joinery {version('joinery')}")
        parser.exit()


def _command(name: str) -> Callable[[argparse.Namespace], Coroutine[Any, Any, int]]:
    """The function that carries a command out; only what it needs is imported, so that every command starts fast."""
    module, _, function = name.partition(":")
    found: Callable[[argparse.Namespace], Coroutine[Any, Any, int]]
    found = getattr(importlib.import_module(f"entrypoints.cli.{module}"), function)
    return found


def parser() -> argparse.ArgumentParser:
    """Every command with its options."""
    top = argparse.ArgumentParser(
        prog="joinery",
        description="Joins furniture vendors' feeds into one catalogue.",
        epilog="Start with `joinery up --demo`. Settings are environment variables: see docs/configuration.md.",
    )
    top.add_argument("--version", action=_Version, nargs=0, help="print the version")
    commands = top.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _processes(commands)
    _maintenance(commands)
    _organisations(commands)
    _operators(commands)
    _audit(commands)
    _secrets(commands)
    _incidents(commands)
    _sources(commands)
    _cluster(commands)
    return top


def _processes(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    up = commands.add_parser("up", help="run everything on embedded parts, on this machine only")
    up.add_argument("--data-dir", type=Path, help="where everything is kept (default: $JOINERY_DATA_DIR or ./.joinery)")
    up.add_argument("--port", type=int, default=None, help="the API's port (default: $JOINERY_PORT or 8080)")
    up.add_argument(
        "--operators-port", type=int, default=None, help="the operators' page's port (default: the next one)"
    )
    up.add_argument("--demo", action="store_true", help="add an organisation with two vendors' feeds, and a key to try")
    up.set_defaults(run="up:up")
    api = commands.add_parser("api", help="run the API (needs JOINERY_DATABASE_URL and JOINERY_SECRET)")
    api.add_argument(
        "--operators-port", type=int, default=None, help="show the operators' page there, on this machine only"
    )
    api.set_defaults(run="processes:api")
    worker = commands.add_parser("worker", help="run a worker: carries out runs, delivers webhooks")
    worker.add_argument(
        "--for",
        dest="duties",
        action="append",
        choices=("runs", "webhooks"),
        help="do only this (may be given twice; default: both)",
    )
    worker.set_defaults(run="processes:worker")
    scheduler = commands.add_parser("scheduler", help="run the scheduler: due pulls, waking workers, maintenance")
    scheduler.set_defaults(run="processes:scheduler")
    mail = commands.add_parser("mail", help="run the mail listener: takes messages for sources' inbound addresses")
    mail.set_defaults(run="processes:mail")


def _maintenance(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    migrate = commands.add_parser("migrate", help="bring the database to this release's schema")
    migrate.add_argument("--plan", action="store_true", help="list the pending migrations without applying them")
    _store(migrate)
    migrate.set_defaults(run="processes:migrate")
    _backups(commands)
    _mirrors(commands)
    openapi = commands.add_parser("openapi", help="print the OpenAPI document")
    openapi.set_defaults(run="processes:openapi")
    look = commands.add_parser("doctor", help="tell what is configured, reachable and wrong")
    _store(look)
    look.add_argument(
        "--sweep", action="store_true", help="first free and delete what nothing needs, as the scheduler does"
    )
    look.add_argument(
        "--repair-schedule",
        action="store_true",
        help="make implausibly late due times due now, and confirm that the database's clock is right",
    )
    look.set_defaults(run="doctor:doctor")
    _readings(commands)
    lists = commands.add_parser("sql", help="print the statement of a list as it is sent to PostgreSQL")
    lists.add_argument("list", nargs="?", metavar="LIST", help="products, offers or a table; without one, all names")
    lists.add_argument(
        "--filter", action="append", default=[], metavar="NAME", help="with this filter (may be repeated)"
    )
    lists.add_argument("--limit", type=int, default=20, help="items on a page (default: 20)")
    lists.add_argument("--after", action="store_true", help="the page after a cursor")
    lists.add_argument("--before", action="store_true", help="the page before a cursor")
    lists.set_defaults(run="sql:sql")
    plug = commands.add_parser("plugins", help="list or check connector plugins")
    plug.add_argument("what", choices=("list", "check"))
    plug.add_argument("--json", action="store_true", help="print JSON")
    plug.set_defaults(run="plugins:plugins")
    probe = commands.add_parser("probe", help="look at a website as a source probe does, without a server")
    probe.add_argument("url", metavar="URL")
    probe.add_argument("--json", action="store_true", help="print one JSON object")
    probe.set_defaults(run="probe:probe")


def _readings(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    one = commands.add_parser("read", help="try a feed: map and normalise a file, without a server")
    one.add_argument("file", type=Path, help="CSV, TSV, Excel, JSON, JSON Lines, XML, or one of them in a zip or gzip")
    one.add_argument("--json", action="store_true", help="print mapping, products and problems as one JSON object")
    one.add_argument("--currency", help="of prices that name none (ISO 4217; usd also reads bare sizes as inches)")
    one.add_argument(
        "--decimal", choices=("dot", "comma", "auto"), default="auto", help="the decimal mark (default: auto)"
    )
    one.add_argument("--stream", choices=("catalogue", "stock"), default="catalogue", help="what the file states")
    one.add_argument("--format", help="the file's format, where its content does not tell")
    one.add_argument("--connector", default="csv", help="what reads the file (default: csv, which reads all files)")
    one.add_argument("--warehouse", help="the location of stock that names none")
    one.add_argument("--price-code", help="which price column to take where there are several")
    one.set_defaults(run="read:read")
    pairs = commands.add_parser(
        "match",
        help="tell which items of two CSV files are the same, without a server",
        description="Tells which items of two CSV files are the same. Nothing is learnt from known pairs, and none are needed.",
        epilog="Both files need a column id, and title (or name) or a code; columns that are read besides: brand, mpn, model, sku, gtin "
        "(ean, upc), price, currency, description, collection, colour, finish, width, depth, height, dim_unit, weight, "
        "weight_unit, pack, pieces. docs/matching.md explains what comes out.",
    )
    pairs.add_argument("--left", type=Path, required=True, metavar="CSV", help="one vendor's items")
    pairs.add_argument("--right", type=Path, required=True, metavar="CSV", help="the other vendor's items")
    pairs.add_argument("--out", type=Path, required=True, metavar="CSV", help="where to write idA,idB,probability")
    pairs.add_argument("--explain", type=Path, metavar="JSONL", help="also write the evidence, one JSON object a pair")
    pairs.add_argument(
        "--least", type=float, default=0.01, metavar="P", help="leave out pairs less probable than this (default: 0.01)"
    )
    pairs.set_defaults(run="match:match")


def _mirrors(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    copy = commands.add_parser("mirror", help="keep a copy of a catalogue, through the API alone")
    copy.add_argument("--url", help="the service's address (default: $JOINERY_URL)")
    copy.add_argument("--key", help="an API key (default: $JOINERY_KEY)")
    copy.add_argument("--to", type=Path, required=True, metavar="PATH", help="FILE.sqlite, or a folder")
    copy.add_argument("--once", action="store_true", help="end as soon as everything is read")
    copy.set_defaults(run="mirror:mirror")


def _backups(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    make = commands.add_parser("backup", help="copy everything, while it runs: rows, objects, the secret")
    make.add_argument("path", type=Path, help="a folder to make, or a file that ends with .tar")
    make.add_argument(
        "--without-secret", action="store_true", help="leave the secret out; without it a backup is useless"
    )
    make.add_argument("--data-dir", type=Path, help="the store of `joinery up`, running or stopped")
    make.add_argument("--json", action="store_true", help="print one JSON object")
    make.set_defaults(run="backup:backup")
    restore = commands.add_parser("restore", help="fill an empty database and object store from a backup")
    restore.add_argument("path", type=Path, help="what `joinery backup` made")
    restore.add_argument(
        "--data-dir", type=Path, help="a new directory for `joinery up` (default: the settings' servers)"
    )
    restore.add_argument("--json", action="store_true", help="print one JSON object")
    restore.set_defaults(run="backup:restore")


def _organisations(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    org = _group(commands, "org", "organisations")
    create = org.add_parser("create", help="add an organisation")
    create.add_argument("--name", required=True)
    create.add_argument("--kind", required=True, choices=KINDS)
    create.add_argument("--plan", default="free", help="free, standard, high or max (default: free)")
    _store(create)
    create.set_defaults(run="orgs:create_org")
    every = org.add_parser("list", help="every organisation: id, plan, kind, name")
    _store(every)
    every.set_defaults(run="orgs:list_orgs")
    out = org.add_parser("export", help="write all of an organisation's data to a folder, as its API answers it")
    _org(out)
    out.add_argument("--to", required=True, type=Path, metavar="FOLDER", help="a new folder")
    _store(out)
    out.set_defaults(run="leaving:export")
    again = org.add_parser("rematch", help="match everything once more, with weights learnt anew")
    _org(again)
    again.add_argument("--mode", choices=("live", "test"), default="live", help="default: live")
    _store(again)
    again.set_defaults(run="orgs:rematch")
    leave = org.add_parser("delete", help="delete an organisation and everything of it, for good")
    _org(leave)
    leave.add_argument("--confirm", metavar="NAME", help="its exact name")
    _store(leave)
    leave.set_defaults(run="leaving:delete")
    change = org.add_parser("plan", help="put an organisation on another plan")
    _org(change)
    change.add_argument(
        "--plan", required=True, help="free, standard, high or max; GET /v1/plans tells what each includes"
    )
    _store(change)
    change.set_defaults(run="orgs:change_plan")


def _operators(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    member = _group(commands, "member", "members")
    add = member.add_parser("add", help="add a member to an organisation")
    _org(add)
    add.add_argument("--email", required=True)
    add.add_argument("--role", required=True, choices=sorted(ROLES))
    _store(add)
    add.set_defaults(run="people:add_member")

    token = _group(commands, "token", "members' bearer tokens")
    own = token.add_parser("create", help="make a token with which a script acts as a member does in the console")
    _org(own)
    own.add_argument("--email", required=True, help="the member's address")
    own.add_argument("--hours", type=int, default=8, metavar="N", help="how long it lasts (default: 8)")
    _store(own)
    own.set_defaults(run="people:create_token")
    _sessions(commands)
    _apps(commands)
    _sso(commands)

    key = _group(commands, "key", "API keys")
    make = key.add_parser("create", help="make an API key; its secret is shown once")
    _org(make)
    make.add_argument("--mode", required=True, choices=("live", "test"))
    make.add_argument("--scopes", default="all", help="all, or a comma-separated list (default: all)")
    make.add_argument("--restricted", action="store_true", help="for an unattended AI agent")
    make.add_argument("--name", default="made by an operator")
    make.add_argument("--member", metavar="EMAIL", help="the key never holds more than this member's role")
    make.add_argument("--expires-in-days", type=int, metavar="N")
    make.add_argument("--network", action="append", default=[], metavar="CIDR", help="may only be used from there")
    _store(make)
    make.set_defaults(run="orgs:create_key")
    revoke = key.add_parser("revoke", help="end an API key at once")
    _org(revoke)
    revoke.add_argument("--mode", required=True, choices=("live", "test"))
    revoke.add_argument("--key", required=True, metavar="ID")
    _store(revoke)
    revoke.set_defaults(run="orgs:revoke_key")


def _apps(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    app = _group(commands, "app", "OAuth apps of an organisation")
    make = app.add_parser("create", help="make an OAuth app; its secret is shown once")
    make.add_argument("--kind", required=True, choices=("web", "single-page", "native", "machine"))
    make.add_argument("--name", required=True, help="as people read it who are asked for their consent")
    make.add_argument(
        "--redirect-uri", action="append", default=[], metavar="URI", help="where answers go; again for more"
    )
    make.add_argument(
        "--scopes", default="all", help="what it may ask for: all, or a comma-separated list (default: all)"
    )
    make.set_defaults(run="apps:create_app")
    every = app.add_parser("list", help="list them")
    every.set_defaults(run="apps:list_apps")
    delete = app.add_parser("delete", help="delete one; its tokens prove nothing from then on")
    delete.add_argument("--app", required=True, metavar="ID", help="its client_id")
    delete.set_defaults(run="apps:delete_app")
    for command in (make, every, delete):
        _org(command)
        _store(command)


def _sessions(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    session = _group(commands, "session", "people's sessions in the console, and tokens")
    lead = session.add_parser("link", help="make a link with which a member signs in to the console, once")
    _org(lead)
    lead.add_argument("--email", required=True, help="the member's address")
    _store(lead)
    lead.set_defaults(run="people:link")
    every = session.add_parser("list", help="where a person is signed in")
    end = session.add_parser("end", help="end a person's sessions and tokens, at once")
    end.add_argument("--session", metavar="ID", help="only this one")
    for command, name in ((every, "list_sessions"), (end, "end_sessions")):
        command.add_argument("--email", required=True, help="the person's address")
        _store(command)
        command.set_defaults(run=f"people:{name}")


def _audit(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    audit = _group(commands, "audit", "the audit log")
    verify = audit.add_parser(
        "verify",
        help="check that no audit entry was changed, taken out, put in or moved; exits with 1 if one was",
        description="Checks the chains of all organisations. What was told of a chain's head earlier, by this command or as the hash of "
        "an entry, can be noted elsewhere and checked again: who rewrites a whole chain is found by that alone.",
    )
    verify.add_argument("--org", metavar="ID", help="only this organisation's: its id, or its name if that is unique")
    verify.add_argument(
        "--noted",
        action="append",
        default=[],
        metavar="N:HASH",
        help="entry N must have this hash (with --org and --mode)",
    )
    verify.add_argument("--mode", choices=("live", "test"), help="only this mode's")
    _store(verify)
    verify.set_defaults(run="audit:verify")


def _secrets(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    secret = _group(commands, "secret", "the secret that everything is sealed and signed under")
    for name, what in (
        ("rotate", "have a new secret take the place of the current one"),
        ("status", "tell how much stands under which secret"),
        ("retire", "do without the former secrets; refused while anything needs one"),
    ):
        one = secret.add_parser(name, help=what)
        _store(one)
        one.set_defaults(run=f"secret:{name}")


def _incidents(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    incident = _group(commands, "incident", "incidents, which /status shows")
    make = incident.add_parser("open", help="tell that a part of the service does not do its work")
    make.add_argument("--component", required=True, choices=COMPONENTS)
    make.add_argument("--state", choices=_TROUBLED, default="degraded", help="default: degraded")
    make.add_argument("--title", required=True, help="one line")
    make.add_argument("--text", help="what is known (default: the title)")
    update = incident.add_parser("update", help="tell what is known by now")
    update.add_argument("id", metavar="ID")
    update.add_argument("--text", required=True)
    update.add_argument("--state", choices=_TROUBLED)
    close = incident.add_parser("close", help="tell that it is over")
    close.add_argument("id", metavar="ID")
    close.add_argument("--text", default="It is over.")
    every = incident.add_parser("list", help="those that are open")
    for command, name in ((make, "open_one"), (update, "update"), (close, "close"), (every, "list_open")):
        _store(command)
        command.set_defaults(run=f"incident:{name}")


def _sources(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    source = _group(commands, "source", "sources")
    why = source.add_parser("why", help="explain the age of a source's data: status, freshness, latest runs")
    why.add_argument("id", metavar="ID")
    _store(why)
    why.set_defaults(run="source:why")


def _cluster(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    cluster = _group(commands, "cluster", "a cluster of PostgreSQL servers, at the coordinator JOINERY_DATABASE_URL")
    init = cluster.add_parser("init", help="give every table its place; run again, it does what is left")
    init.add_argument(
        "--shards",
        type=int,
        default=32,
        metavar="N",
        help="parts that the tenants' tables are cut into, for good: as many nodes can share them. Each costs every node's "
        "catalogue some 300 tables, for days are tables (default: 32)",
    )
    _store(init)
    init.set_defaults(run="cluster:init")
    look = cluster.add_parser("status", help="tell what each node holds, and what is being moved")
    _store(look)
    look.set_defaults(run="cluster:tell")
    move = cluster.add_parser("move", help="move an organisation's shard to another node while it is used")
    move.add_argument("org", metavar="ORG", help="the organisation's id")
    move.add_argument("--to", metavar="HOST:PORT", help="where to (default: the node that holds least)")
    _store(move)
    move.set_defaults(run="cluster:move")
    rebalance = cluster.add_parser("rebalance", help="spread the shards evenly; it goes on when this command is ended")
    _store(rebalance)
    rebalance.set_defaults(run="cluster:rebalance")


if __name__ == "__main__":
    sys.exit(main())
