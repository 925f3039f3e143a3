"""The console's pages, module by module; the menu shows the entries in this order."""

from typing import Final

from entrypoints.console.page import Page
from entrypoints.console.pages import (
    account,
    audit,
    catalogue,
    consent,
    events,
    exports,
    home,
    invitations,
    keys,
    members,
    organisation,
    pictures,
    products,
    reference,
    request_logs,
    session,
    sign_in,
    single_sign_on,
    sso,
    usage,
    webhooks,
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
    *single_sign_on.PAGES,
    *audit.PAGES,
    *usage.PAGES,
    *exports.PAGES,
    *organisation.PAGES,
    *invitations.PAGES,
    *session.PAGES,
    *sign_in.PAGES,
    *account.PAGES,
    *consent.PAGES,
    *sso.PAGES,
)
