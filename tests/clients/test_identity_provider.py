"""Single sign-on against a certified provider: npm's oidc-provider."""

import json
import re
import shutil
import socket
import subprocess
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

import httpx
import pytest
import pytest_asyncio

from adapters.http.client import GuardedClient
from adapters.http.outbound import HttpOutbound
from adapters.oidc.provider import OidcProviders
from domain.kernel.tenancy import Tenant
from domain.sso.model import MailDomain
from domain.sso.ports import IdentityProviders, ProviderFault, SsoStore
from domain.sso.usecases.settings import SsoConnectionInput, SsoSettings
from domain.sso.usecases.sso_sign_in import SsoSignIn
from tests.clients.programs import npm_install
from tests.http.application import OPERATOR, ApplicationHarness, run_application
from tests.http.browser import COOKIE, BrowserPage, ConsoleBrowser

pytestmark = [pytest.mark.clients, pytest.mark.asyncio]
SECRET = "a secret with %, + and & in it: 0123456789"
PROGRAM = Path(__file__).with_name("identity_provider.mjs")


@dataclass
class ProviderHarness:
    """Console with real outbound requests, and a provider."""

    application: ApplicationHarness
    org: str
    issuer: str

    async def sign_in(self, email: str, login: str) -> tuple[ConsoleBrowser, BrowserPage]:
        """Sign in at the provider; return the browser and the console's response."""
        browser = ConsoleBrowser(self.application.app)
        page = await browser.get(f"/console/sso?email={email}", sec_fetch_site="same-origin")
        assert page.status == 200, page.text
        response = self._sign_in_at_provider((page.header("refresh") or "").removeprefix("0;url="), login)
        return browser, await browser.get(
            f"{urlsplit(response).path}?{urlsplit(response).query}", sec_fetch_site="cross-site"
        )

    def _sign_in_at_provider(self, url: str, login: str) -> str:
        """Complete the provider's pages as a browser does; return the redirect address."""
        with httpx.Client() as person:
            response = person.get(url)
            while True:
                if response.is_redirect:
                    url = urljoin(str(response.url), response.headers["location"])
                    if not url.startswith(self.issuer):
                        return url
                    response = person.get(url)
                    continue
                assert response.status_code == 200, response.text
                action = unescape(re.search(r'action="([^"]+)"', response.text)[1])  # type: ignore[index]
                fields = dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', response.text))
                response = person.post(
                    urljoin(str(response.url), action), data=fields | {"login": login, "password": "x"}
                )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the provider's package."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    made = tmp_path_factory.mktemp("provider")
    npm_install(made, "oidc-provider@9.13.3")
    shutil.copy(PROGRAM, made)
    return made


@pytest_asyncio.fixture
async def harness(folder: Path) -> AsyncIterator[ProviderHarness]:
    """Run a console with a verified connection."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    allowed = frozenset({f"127.0.0.1:{port}"})
    async with run_application() as application, GuardedClient(allowed_hosts=allowed) as client:
        application.clock.set(datetime.now(UTC))
        providers = OidcProviders(HttpOutbound(client, allowed))
        application.dependencies[IdentityProviders] = providers
        object.__setattr__(application.dependencies[SsoSignIn], "providers", providers)
        org = application.orgs["Fjord"].id
        redirect = application.dependencies[SsoSignIn].build_redirect_uri(org)
        program: Any = subprocess.Popen(
            ["node", PROGRAM.name], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )  # fmt: skip
        try:
            program.stdin.write(json.dumps({"port": port, "redirect": redirect, "secret": SECRET}) + "\n")
            program.stdin.flush()
            issuer = program.stdout.readline().strip()
            async with application.uow.begin(Tenant(org, True), OPERATOR) as tx:
                found = await providers.check_issuer(f"{issuer}/")
                await application.dependencies[SsoSettings].save_connection(
                    tx, SsoConnectionInput(found, "joinery", SECRET, "editor")
                )
                now = application.clock.now()
                await tx[SsoStore].save_domain(MailDomain(org, "fjord.example", "token", now, None, now, now))
            yield ProviderHarness(application, org, issuer)
        finally:
            program.kill()
            program.wait()


async def test_only_permitted_people_sign_in(harness: ProviderHarness) -> None:
    application = harness.application
    for _ in range(2):
        browser, page = await harness.sign_in("ada@fjord.example", "ada")
        assert page.status == 303, page.text
        found = await application.sessions.find(browser.cookies[COOKIE])
        assert found.principal.role == "editor" and found.user.email == "ada@fjord.example" and found.user.name == "ADA"
    for login, sentence in (("mallory", "not in a verified domain"), ("nils", "has not verified")):
        browser, page = await harness.sign_in("ada@fjord.example", login)
        assert page.status == 403 and sentence in page.text and COOKIE not in browser.cookies


async def test_a_wrong_secret_is_reported(harness: ProviderHarness) -> None:
    application = harness.application
    async with application.uow.begin(Tenant(harness.org, True), OPERATOR) as tx:
        await application.dependencies[SsoSettings].save_connection(
            tx, SsoConnectionInput(harness.issuer, "joinery", "another", None)
        )
    browser, page = await harness.sign_in("ada@fjord.example", "ada")
    assert page.status == 403 and "does not accept the client ID and secret" in page.text
    assert COOKIE not in browser.cookies


async def test_an_internal_address_is_not_requested(harness: ProviderHarness) -> None:
    async with GuardedClient() as client:
        for address in (harness.issuer, "https://127.0.0.1", "https://169.254.169.254", "http://id.example"):
            with pytest.raises(ProviderFault):
                await OidcProviders(HttpOutbound(client)).check_issuer(address)
