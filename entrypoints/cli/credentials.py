"""Commands for the credentials of programs: API keys and OAuth apps."""

from datetime import timedelta
from typing import Annotated, Any

from cyclopts import Parameter

from domain.access.model import ROLES, SCOPES, Principal
from domain.access.ports import KeyStore
from domain.access.usecases import KeyRequest, scopes_of
from domain.audit.model import Change
from domain.audit.ports import AuditLog
from domain.kernel.errors import DomainError
from domain.kernel.tenancy import Tenant
from domain.oauth.model import App, AppKind
from domain.oauth.ports import AppStore
from domain.oauth.usecases.apps import AppService, NewApp
from domain.orgs.model import Organisation
from domain.orgs.ports import OrgStore
from entrypoints.cli.store import Mode, OrganisationStore, attributes
from entrypoints.errors import CommandError
from entrypoints.provisioning import OPERATOR, issue_key
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
    store: OrganisationStore,
) -> int:
    """Create an API key; its secret is shown once.

    Args:
        scopes: all, or a comma-separated list
        restricted: for an unattended AI agent
        member: limit the key to the role of the member with this email address
        network: allow use only from this network (CIDR); repeatable
    """
    async with store.change("keys.create", mode) as (parts, organisation, tx):
        owner = await tx[OrgStore].member(member) if member else None
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
        key, secret = await issue_key(parts, tx, request)
    answer = {"organisation": organisation.id, "key": key.id, "secret": secret}
    return store.answer(answer, f"Created key {key.id}. Its secret, shown only once: {secret}")


async def revoke_key(*, mode: Mode, key: str, store: OrganisationStore) -> int:
    """Revoke an API key immediately.

    Args:
        key: its ID
    """
    async with store.change("keys.revoke", mode) as (_, _, tx):
        if not await tx[KeyStore].revoke(key):
            raise CommandError(f"The organisation has no valid key {key!r} in {mode} mode.")
        await tx[AuditLog].add(Change("api_key", key, "update", {"revoked": False}, {"revoked": True}))
    return store.answer({"key": key, "revoked": True}, f"Revoked {key}.")


async def create_app(
    *,
    kind: Annotated[str, Parameter(choices=[kind.replace("_", "-") for kind in AppKind])],
    name: str,
    redirect_uri: tuple[str, ...] = (),
    scopes: str = "all",
    store: OrganisationStore,
) -> int:
    """Create an OAuth app; its secret is shown once.

    Args:
        name: shown to users on the consent page
        redirect_uri: allowed redirect URI; repeatable
        scopes: scopes that it may request: all, or a comma-separated list
    """
    new_app = NewApp(name, AppKind(kind.replace("-", "_")), redirect_uri, scopes_of(scopes.split(",")))
    async with store.change("oauth.create_app") as (parts, organisation, tx):
        app, secret = await parts[AppService].create_app(tx, _owner(organisation), new_app)
    secret_line = f"Its secret, shown only once: {secret}" if secret else "A public app has no secret."
    answer = {"organisation": organisation.id, **_app_json(app), **({"client_secret": secret} if secret else {})}
    return store.answer(answer, f"Created app {app.name}. client_id {app.client_id}\n{secret_line}")


async def list_apps(*, store: OrganisationStore) -> int:
    """List an organisation's OAuth apps."""
    async with (
        store.find() as (parts, organisation),
        parts[UnitOfWork].read(Tenant(organisation.id, True)) as tx,
    ):
        apps = await tx[AppStore].all()
    lines = [f"{app.client_id}  {app.kind:<12} {app.name}" for app in apps]
    answer = {"organisation": organisation.id, "apps": [_app_json(app) for app in apps]}
    return store.answer(answer, *lines or ["No apps."])


async def delete_app(*, app: str, store: OrganisationStore) -> int:
    """Delete an OAuth app; its tokens become invalid.

    Args:
        app: its client_id
    """
    async with store.change("oauth.delete_app") as (parts, organisation, tx):
        try:
            await parts[AppService].delete_app(tx, _owner(organisation), app)
        except DomainError as error:
            raise CommandError(f"There is no app {app!r}. List apps with `joinery app list`.") from error
    return store.answer({"organisation": organisation.id, "deleted": app}, f"Deleted {app}.")


def _owner(organisation: Organisation) -> Principal:
    """Return the principal of the operator, who acts as an owner in the console."""
    tenant = Tenant(organisation.id, True)
    return Principal(tenant, OPERATOR, "console", "owner", ROLES["owner"], organisation, session=True)


def _app_json(app: App) -> dict[str, Any]:
    scopes = "all" if app.scopes == SCOPES else ",".join(sorted(app.scopes))
    return attributes(app, "client_id", "name", "kind", "redirect_uris") | {"scopes": scopes}
