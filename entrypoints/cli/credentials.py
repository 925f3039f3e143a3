"""Commands for the credentials of programs: API keys and OAuth apps."""

from datetime import timedelta
from typing import Annotated, Any

from cyclopts import Parameter

from domain.access.model import ROLES, SCOPES, Principal
from domain.access.ports import KeyStore
from domain.access.usecases import KeyRequest, parse_scopes
from domain.audit.model import Change
from domain.audit.ports import AuditLog
from domain.kernel.errors import DomainError
from domain.kernel.tenancy import Tenant
from domain.oauth.model import App, AppKind
from domain.oauth.ports import AppStore
from domain.oauth.usecases.apps import AppService, NewApp
from domain.orgs.model import Organisation
from domain.orgs.ports import OrgStore
from entrypoints.cli.store import Mode, OrganisationOptions, select_attributes
from entrypoints.errors import CommandError
from entrypoints.provisioning import OPERATOR, create_api_key
from ports.unit_of_work import UnitOfWork


async def create_key(
    *,
    mode: Mode,
    scopes: str = "all",
    restricted: bool = False,
    name: str = "created by an operator",
    member: str | None = None,
    expires_in_days: int | None = None,
    network: tuple[str, ...] = (),
    options: OrganisationOptions,
) -> int:
    """Create an API key; its secret is shown once.

    Args:
        mode: Mode of the key.
        scopes: Scopes of the key: all, or a comma-separated list.
        restricted: Restrict the key to what an unattended AI agent may do.
        name: Name of the key.
        member: Limit the key to the role of the member with this email address.
        expires_in_days: Let the key expire after this number of days (default: the key does not expire).
        network: Permit requests only from this network (CIDR notation). Repeatable.
    """
    async with options.begin_change("keys.create", mode) as (dependencies, organisation, tx):
        owner = await tx[OrgStore].find_member(member) if member else None
        if member and owner is None:
            raise CommandError(f"{member} is not a member of the organisation. Add them with `joinery member add`.")
        request = KeyRequest(
            name=name,
            restricted=restricted,
            scopes=SCOPES if scopes == "all" else frozenset(filter(None, scopes.split(","))),
            role=owner.role if owner else "owner",
            networks=network,
            expires_at=tx.now + timedelta(days=expires_in_days) if expires_in_days else None,
            member=owner.user if owner else None,
        )
        key, secret = await create_api_key(dependencies, tx, request)
    result = {"organisation": organisation.id, "key": key.id, "secret": secret}
    return options.print_result(result, f"Created key {key.id}. Its secret, shown only once: {secret}")


async def revoke_key(*, mode: Mode, key: str, options: OrganisationOptions) -> int:
    """Revoke an API key immediately.

    Args:
        mode: Mode of the key.
        key: ID of the key.
    """
    async with options.begin_change("keys.revoke", mode) as (_, _, tx):
        if not await tx[KeyStore].revoke(key):
            raise CommandError(f"The organisation has no valid key {key!r} in {mode} mode.")
        await tx[AuditLog].add(Change("api_key", key, "update", {"revoked": False}, {"revoked": True}))
    return options.print_result({"key": key, "revoked": True}, f"Revoked {key}.")


async def create_app(
    *,
    kind: Annotated[str, Parameter(choices=[kind.replace("_", "-") for kind in AppKind])],
    name: str,
    redirect_uri: tuple[str, ...] = (),
    scopes: str = "all",
    options: OrganisationOptions,
) -> int:
    """Create an OAuth app; its secret is shown once.

    Args:
        kind: Kind of the app.
        name: Name that the consent page shows to users.
        redirect_uri: Permit this redirect URI. Repeatable.
        scopes: Scopes that the app may request: all, or a comma-separated list.
    """
    new_app = NewApp(name, AppKind(kind.replace("-", "_")), redirect_uri, parse_scopes(scopes.split(",")))
    async with options.begin_change("oauth.create_app") as (dependencies, organisation, tx):
        app, secret = await dependencies[AppService].create_app(tx, _create_owner_principal(organisation), new_app)
    secret_line = f"Its secret, shown only once: {secret}" if secret else "A public app has no secret."
    result = {"organisation": organisation.id, **_build_app_json(app), **({"client_secret": secret} if secret else {})}
    return options.print_result(result, f"Created app {app.name}. client_id {app.client_id}\n{secret_line}")


async def list_apps(*, options: OrganisationOptions) -> int:
    """List an organisation's OAuth apps."""
    async with (
        options.open_organisation() as (dependencies, organisation),
        dependencies[UnitOfWork].begin_reading(Tenant(organisation.id, True)) as tx,
    ):
        apps = await tx[AppStore].list_apps()
    lines = [f"{app.client_id}  {app.kind:<12} {app.name}" for app in apps]
    result = {"organisation": organisation.id, "apps": [_build_app_json(app) for app in apps]}
    return options.print_result(result, *lines or ["No apps."])


async def delete_app(*, app: str, options: OrganisationOptions) -> int:
    """Delete an OAuth app; its tokens become invalid.

    Args:
        app: The client_id of the app.
    """
    async with options.begin_change("oauth.delete_app") as (dependencies, organisation, tx):
        try:
            await dependencies[AppService].delete_app(tx, _create_owner_principal(organisation), app)
        except DomainError as error:
            raise CommandError(f"There is no app {app!r}. List apps with `joinery app list`.") from error
    return options.print_result({"organisation": organisation.id, "deleted": app}, f"Deleted {app}.")


def _create_owner_principal(organisation: Organisation) -> Principal:
    """Return a principal with which the operator manages apps as an owner of the organisation would."""
    tenant = Tenant(organisation.id, True)
    return Principal(tenant, OPERATOR, "console", "owner", ROLES["owner"], organisation, is_console_session=True)


def _build_app_json(app: App) -> dict[str, Any]:
    """Return an app as JSON, without its secret."""
    scopes = "all" if app.scopes == SCOPES else ",".join(sorted(app.scopes))
    return select_attributes(app, "client_id", "name", "kind", "redirect_uris") | {"scopes": scopes}
