"""Single sign-on put together: which adapters stand behind it."""

from adapters.dns.records import DnsRecords
from adapters.http.client import GuardedClient
from adapters.http.outbound import HttpOutbound
from adapters.oidc.provider import OidcProviders
from domain.people.ports import People
from domain.secrets.ports import Vault
from domain.sso.ports import SsoDirectory
from domain.sso.usecases.proving import DomainProofs
from domain.sso.usecases.rules import SsoRules
from domain.sso.usecases.settings import SsoSettings
from domain.sso.usecases.signing_in import SsoSignIn
from entrypoints.dependencies import Sso, callback_of
from entrypoints.settings import Settings
from ports.clock import Clock
from ports.unit_of_work import UnitOfWork


def sso_of(
    settings: Settings,
    uow: UnitOfWork,
    directory: SsoDirectory,
    rules: SsoRules,
    people: People,
    vault: Vault,
    clock: Clock,
    http: GuardedClient,
) -> Sso:
    """All of it, asking providers through the guarded client and name servers as the settings say."""
    providers = OidcProviders(HttpOutbound(http, settings.allow_private_hosts))
    return Sso(
        settings=SsoSettings(vault),
        proofs=DomainProofs(DnsRecords(settings.resolver), directory, clock),
        rules=rules,
        providers=providers,
        sign_in=SsoSignIn(uow, directory, people, providers, vault, clock, callback_of(settings)),
    )
