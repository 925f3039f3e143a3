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
from tests.http.browser import COOKIE, Browser, Page
from tests.http.fakes import OPERATOR, World, running

pytestmark = [pytest.mark.clients, pytest.mark.asyncio]
SECRET = "a secret with %, + and & in it: 0123456789"
PROGRAM = Path(__file__).with_name("identity_provider.mjs")


@dataclass
class Deployment:
    """A console whose outbound requests are real, and a provider beside it."""

    world: World
    org: str
    issuer: str

    async def came_in(self, email: str, login: str) -> tuple[Browser, Page]:
        """What the console answers to somebody who signs in at the provider."""
        browser = Browser(self.world.app)
        page = await browser.get(f"/console/sso?email={email}", sec_fetch_site="same-origin")
        assert page.status == 200, page.text
        answer = self._signed_in((page.header("refresh") or "").removeprefix("0;url="), login)
        return browser, await browser.get(
            f"{urlsplit(answer).path}?{urlsplit(answer).query}", sec_fetch_site="cross-site"
        )

    def _signed_in(self, url: str, login: str) -> str:
        """Through the provider's own pages, as a browser goes, up to the address that leads back."""
        with httpx.Client() as person:
            answer = person.get(url)
            while True:
                if answer.is_redirect:
                    url = urljoin(str(answer.url), answer.headers["location"])
                    if not url.startswith(self.issuer):
                        return url
                    answer = person.get(url)
                    continue
                assert answer.status_code == 200, answer.text
                action = unescape(re.search(r'action="([^"]+)"', answer.text)[1])  # type: ignore[index]
                fields = dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', answer.text))
                answer = person.post(urljoin(str(answer.url), action), data=fields | {"login": login, "password": "x"})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the provider's package is."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    made = tmp_path_factory.mktemp("provider")
    npm_install(made, "oidc-provider@9.13.3")
    shutil.copy(PROGRAM, made)
    return made


@pytest_asyncio.fixture
async def deployment(folder: Path) -> AsyncIterator[Deployment]:
    """Set up and proven."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    allowed = frozenset({f"127.0.0.1:{port}"})
    async with running() as world, GuardedClient(allowed_hosts=allowed) as client:
        world.clock.set(datetime.now(UTC))
        providers = OidcProviders(HttpOutbound(client, allowed))
        world.dependencies[IdentityProviders] = providers
        object.__setattr__(world.dependencies[SsoSignIn], "providers", providers)
        org = world.orgs["Fjord"].id
        redirect = world.dependencies[SsoSignIn].build_redirect_uri(org)
        program: Any = subprocess.Popen(
            ["node", PROGRAM.name], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )  # fmt: skip
        try:
            program.stdin.write(json.dumps({"port": port, "redirect": redirect, "secret": SECRET}) + "\n")
            program.stdin.flush()
            issuer = program.stdout.readline().strip()
            async with world.uow.begin(Tenant(org, True), OPERATOR) as tx:
                found = await providers.check_issuer(f"{issuer}/")
                await world.dependencies[SsoSettings].save_connection(
                    tx, SsoConnectionInput(found, "joinery", SECRET, "editor")
                )
                now = world.clock.now()
                await tx[SsoStore].save_domain(MailDomain(org, "fjord.example", "token", now, None, now, now))
            yield Deployment(world, org, issuer)
        finally:
            program.kill()
            program.wait()


async def test_people_come_in_and_others_do_not(deployment: Deployment) -> None:
    world = deployment.world
    for _ in range(2):
        browser, page = await deployment.came_in("ada@fjord.example", "ada")
        assert page.status == 303, page.text
        found = await world.sessions.find(browser.cookies[COOKIE])
        assert found.principal.role == "editor" and found.user.email == "ada@fjord.example" and found.user.name == "ADA"
    for login, sentence in (("mallory", "not in a verified domain"), ("nils", "has not verified")):
        browser, page = await deployment.came_in("ada@fjord.example", login)
        assert page.status == 403 and sentence in page.text and COOKIE not in browser.cookies


async def test_a_wrong_secret_is_reported(deployment: Deployment) -> None:
    world = deployment.world
    async with world.uow.begin(Tenant(deployment.org, True), OPERATOR) as tx:
        await world.dependencies[SsoSettings].save_connection(
            tx, SsoConnectionInput(deployment.issuer, "joinery", "another", None)
        )
    browser, page = await deployment.came_in("ada@fjord.example", "ada")
    assert page.status == 403 and "does not accept the client ID and secret" in page.text
    assert COOKIE not in browser.cookies


async def test_an_internal_address_is_not_requested(deployment: Deployment) -> None:
    async with GuardedClient() as client:
        for address in (deployment.issuer, "https://127.0.0.1", "https://169.254.169.254", "http://id.example"):
            with pytest.raises(ProviderFault):
                await OidcProviders(HttpOutbound(client)).check_issuer(address)
