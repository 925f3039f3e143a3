"""The console's pages, module by module; the menu shows the entries in this order."""

from typing import Final

from entrypoints.console.page import Page
from entrypoints.console.pages import (
    account,
    catalogue,
    consent,
    events,
    home,
    invitations,
    keys,
    members,
    pictures,
    products,
    reference,
    request_logs,
    session,
    sign_in,
    webhooks,
)
from entrypoints.console.pages import account, catalogue, home, pictures, products, session, sign_in
from entrypoints.console.pages import catalogue, home, pictures, products, session
from entrypoints.console.pages import catalogue, home, session, single_sign_on, sso
from entrypoints.console.pages import (
    account,
    audit,
    catalogue,
    exports,
    home,
    organisation,
    pictures,
    products,
    session,
    sign_in,
    single_sign_on,
    sso,
    usage,
)

PAGES: Final[tuple[Page, ...]] = (
    *home.PAGES,
    *catalogue.PAGES,
    *products.PAGES,
    *pictures.PAGES,
    *keys.PAGES,
    *webhooks.PAGES,
    *request_logs.PAGES,
    *events.PAGES,
    *reference.PAGES,
    *members.PAGES,
    *invitations.PAGES,
    *session.PAGES,
    *sign_in.PAGES,
    *account.PAGES,
    *consent.PAGES,
    *organisation.PAGES,
    *single_sign_on.PAGES,
    *audit.PAGES,
    *usage.PAGES,
    *exports.PAGES,
    *sso.PAGES,
)
