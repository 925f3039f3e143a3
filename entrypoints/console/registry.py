"""The console's pages, module by module; the menu shows the entries in this order."""

from typing import Final

from entrypoints.console.page import Page
from entrypoints.console.pages import account, catalogue, consent, home, pictures, products, session, sign_in

PAGES: Final[tuple[Page, ...]] = (
    *home.PAGES,
    *catalogue.PAGES,
    *products.PAGES,
    *pictures.PAGES,
    *session.PAGES,
    *sign_in.PAGES,
    *account.PAGES,
    *consent.PAGES,
)
