"""Where the console leads after a form: only ever to pages of this service (OWASP: unvalidated redirects)."""

from typing import Final
from urllib.parse import quote

HOME: Final = "/console"
SIGN_IN: Final = "/console/sign-in"
_OURS: Final = ("/console", "/oauth/authorize", "/oauth/device")
_LONGEST: Final = 4000


def safe_place(text: str, otherwise: str = HOME) -> str:
    """The place, when it is one of ours; `otherwise` for anything else."""
    if len(text) > _LONGEST or any(not "!" <= char <= "~" or char == "\\" for char in text):
        return otherwise
    path = text.partition("?")[0].partition("#")[0]
    if "//" in path or "/." in path:
        return otherwise
    return text if any(path == ours or path.startswith(ours + "/") for ours in _OURS) else otherwise


def sign_in_place(place: str) -> str:
    """The sign-in that leads back to a place."""
    return SIGN_IN if place == HOME else f"{SIGN_IN}?next={quote(place, safe='/')}"
