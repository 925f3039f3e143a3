"""Who is signed in, by the session's cookie: asked of the store once in half a second, and judged the same by every page."""

from hashlib import blake2b
from typing import Final

from domain.access.model import SESSION_PREFIX, is_secret
from domain.people.model import SignedIn
from domain.people.usecases.sessions import SessionService
from entrypoints.console.asked import Asked
from entrypoints.console.cookies import LOOK, Cookies
from entrypoints.http.credentials import TtlCache

_LONGEST_LOOK: Final = 64


class Guard:
    """Finds the session of a request."""

    def __init__(self, sessions: SessionService, cookies: Cookies) -> None:
        self._sessions, self._cookies = sessions, cookies
        self._known: TtlCache[SignedIn] = TtlCache()

    async def find(self, asked: Asked) -> SignedIn | None:
        """Who it is; None for a cookie that is missing, no cookie of ours, or of a session that has ended."""
        text = asked.cookies.get(self._cookies.session, "")
        if not is_secret(text, (SESSION_PREFIX,)):
            return None
        look = asked.cookies.get(LOOK, "")[:_LONGEST_LOOK]
        digest = blake2b(f"{text}\0{look}".encode(), digest_size=16).digest()
        entry = self._known.get(digest)
        if entry is not None:
            return entry[0]
        return await self._known.ask(digest, lambda: self._sessions.find(text))
