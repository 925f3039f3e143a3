"""What operators do about OAuth apps, in an organisation's name: make one, list them, take one away."""

import argparse

from domain.access.model import ROLES, SCOPES, Principal
from domain.access.usecases import scopes_of
from domain.kernel.errors import DomainError
from domain.kernel.tenancy import Actor, Tenant
from domain.oauth.model import App, AppKind
from domain.oauth.ports import AppStore
from domain.oauth.usecases.apps import AppService, NewApp
from domain.orgs.model import Organisation
from entrypoints.cli.errors import CommandError
from entrypoints.cli.orgs import answered, container, found_organisation, operator_call


async def create_app(options: argparse.Namespace) -> int:
    """`joinery app create`: the secret is shown once."""
    kind = AppKind(options.kind.replace("-", "_"))
    wanted = NewApp(options.name, kind, tuple(options.redirect_uri), scopes_of(options.scopes.split(",")))
    async with container(options) as parts:
        organisation = await found_organisation(parts, options.org)
        apps = AppService(parts.access().digest)
        try:
            async with parts.uow().begin(Tenant(organisation.id, True), operator_call("oauth.create_app")) as tx:
                app, secret = await apps.create_app(tx, _operator(organisation), wanted)
        except DomainError as error:
            raise CommandError(error.detail) from error
    answer = _told(app) | ({"client_secret": secret} if secret else {})
    shown = f"\nIts secret, shown only now: {secret}" if secret else "\nIt is a public app: it has no secret."
    return answered(
        options, {"organisation": organisation.id, **answer}, f"App {app.name}: client_id {app.client_id}{shown}"
    )


async def list_apps(options: argparse.Namespace) -> int:
    """`joinery app list`."""
    async with container(options) as parts:
        organisation = await found_organisation(parts, options.org)
        async with parts.uow().read(Tenant(organisation.id, True)) as tx:
            apps = await tx[AppStore].all()
    lines = [f"{app.client_id}  {app.kind:<12} {app.name}" for app in apps]
    answer = {"organisation": organisation.id, "apps": [_told(app) for app in apps]}
    return answered(options, answer, "\n".join(lines) or "There is no app yet.")


async def delete_app(options: argparse.Namespace) -> int:
    """`joinery app delete`: its tokens prove nothing from then on."""
    async with container(options) as parts:
        organisation = await found_organisation(parts, options.org)
        apps = AppService(parts.access().digest)
        try:
            async with parts.uow().begin(Tenant(organisation.id, True), operator_call("oauth.delete_app")) as tx:
                await apps.delete_app(tx, _operator(organisation), options.app)
        except DomainError as error:
            raise CommandError(f"There is no app {options.app!r}; `joinery app list` shows them.") from error
    return answered(options, {"organisation": organisation.id, "deleted": options.app}, f"Deleted {options.app}.")


def _operator(organisation: Organisation) -> Principal:
    """Operators act as an owner would in the console."""
    tenant, actor = Tenant(organisation.id, True), Actor("service", "operator")
    return Principal(tenant, actor, "console", "owner", ROLES["owner"], organisation, session=True)


def _told(app: App) -> dict[str, object]:
    scopes = "all" if app.scopes == SCOPES else ",".join(sorted(app.scopes))
    return {
        "client_id": app.client_id, "name": app.name, "kind": str(app.kind), "redirect_uris": list(app.redirect_uris),
        "scopes": scopes,
    }  # fmt: skip
