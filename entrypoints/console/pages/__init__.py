"""List of all pages of the console, in the order of the menu."""

from typing import Final

from entrypoints.console.context import ConsolePage
from entrypoints.console.pages import (
    account,
    agreements,
    audit,
    catalogue,
    consent,
    demand,
    home,
    keys,
    logs,
    mappings,
    matching,
    organisation,
    publishing,
    reference,
    runs,
    sign_in,
    source_setup,
    sources,
    sso_settings,
    webhooks,
)

PAGES: Final[tuple[ConsolePage, ...]] = (
    *home.pages,
    *catalogue.pages,
    *publishing.pages,
    *demand.pages,
    *sources.pages,
    *source_setup.pages,
    *runs.pages,
    *mappings.pages,
    *matching.pages,
    *keys.key_pages,
    *keys.app_pages,
    *webhooks.pages,
    *logs.request_pages,
    *logs.event_pages,
    *reference.pages,
    *organisation.member_pages,
    *sso_settings.pages,
    *audit.pages,
    *agreements.pages,
    *organisation.pages,
    *account.pages,
    *sign_in.pages,
    *consent.pages,
)
