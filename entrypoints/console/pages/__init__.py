"""All pages of the console, in the order of the menu."""

from typing import Final

from entrypoints.console.context import Page
from entrypoints.console.pages import (
    account,
    audit,
    catalogue,
    connecting,
    consent,
    home,
    keys,
    logs,
    mappings,
    matching,
    organisation,
    reference,
    runs,
    sign_in,
    sources,
    sso_settings,
    webhooks,
)

PAGES: Final[tuple[Page, ...]] = (
    *home.pages,
    *catalogue.pages,
    *sources.pages,
    *connecting.pages,
    *runs.pages,
    *mappings.pages,
    *matching.pages,
    *keys.keys,
    *keys.apps,
    *webhooks.pages,
    *logs.requests,
    *logs.events,
    *reference.pages,
    *organisation.members,
    *sso_settings.pages,
    *audit.pages,
    *organisation.pages,
    *account.pages,
    *sign_in.pages,
    *consent.pages,
)
