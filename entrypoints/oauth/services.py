"""OAuth's use cases, made once a process of what there is."""

from dataclasses import dataclass

from domain.oauth.ports import GrantRules
from domain.oauth.usecases.apps import AppService
from domain.oauth.usecases.clients import Clients
from domain.oauth.usecases.consent import ConsentService
from domain.oauth.usecases.grants import GrantService
from domain.oauth.usecases.tokens import TokenService
from entrypoints.dependencies import Dependencies


@dataclass(frozen=True, slots=True)
class OAuthServices:
    """What the endpoints and the pages call; `apps` and `grants` are what the console's page of apps needs."""

    rules: GrantRules
    clients: Clients
    tokens: TokenService
    consent: ConsentService
    apps: AppService
    grants: GrantService


def oauth_services(dependencies: Dependencies) -> OAuthServices:
    """The use cases on those adapters."""
    store, rules, limits = dependencies.token_store, dependencies.grant_rules, dependencies.limits
    clock, digest = dependencies.clock, dependencies.access.digest
    clients = Clients(store, rules, dependencies.web, limits, clock, digest)
    return OAuthServices(
        rules=rules,
        clients=clients,
        tokens=TokenService(store, clients, rules, limits, clock, digest),
        consent=ConsentService(store, clients, rules, limits, clock, digest),
        apps=AppService(digest),
        grants=GrantService(),
    )
