"""What the commands of single sign-on take."""

import argparse

from domain.access.model import ROLES
from entrypoints.cli import options


def sso(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """`joinery sso …`."""
    words = options.group(commands, "sso", "organisations' own identity providers (OpenID Connect)")
    make = words.add_parser(
        "set",
        help="set a provider up, or change it; its secret comes from JOINERY_SSO_SECRET or the standard input",
    )
    make.add_argument("--issuer", required=True, metavar="URL", help="the provider's issuer")
    make.add_argument("--client-id", required=True, metavar="ID", help="what Joinery is registered as there")
    roles = (*sorted(set(ROLES) - {"owner"}), "nobody")
    make.add_argument(
        "--joins-as",
        choices=roles,
        default="nobody",
        help="what whoever signs in first becomes (default: nobody joins)",
    )
    make.add_argument("--keep-secret", action="store_true", help="keep the secret that is kept")
    name = words.add_parser("domain", help="name a domain, or look for its record when it is named already")
    name.add_argument("domain", metavar="DOMAIN")
    force = words.add_parser("enforce", help="let members of proven domains in by it alone")
    force.add_argument("--off", action="store_true", help="let them in in other ways again")
    told = words.add_parser("show", help="what is set up, and each domain's record")
    gone = words.add_parser("remove", help="forget the provider and whom it knows")
    runs = ((make, "set_up"), (told, "show"), (name, "add_domain"), (force, "enforce"), (gone, "remove"))
    for command, function in runs:
        options.organisation(command)
        options.store(command)
        command.set_defaults(run=f"sso:{function}")
