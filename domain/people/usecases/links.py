"""Links for one use, which lead somebody in whom nobody has asked for a password."""

from domain.access.model import is_secret
from domain.access.usecases import AccessService, secret_with
from domain.people.model import LINK_LASTS, OneTimeLink, Purpose, User
from domain.people.ports import OneTimeLinks
from ports.clock import Clock

PREFIX = "svc_link_"


class LinkService:
    """Makes links and has them used, once."""

    def __init__(self, links: OneTimeLinks, access: AccessService, clock: Clock) -> None:
        self._links, self._access, self._clock = links, access, clock

    async def make(self, user: User, purpose: Purpose, org: str | None = None) -> tuple[OneTimeLink, str]:
        """A link and its secret, which is told to that person alone; their earlier ones for the same are good no more."""
        text, now = secret_with(PREFIX), self._clock.now()
        link = OneTimeLink(self._access.digest(text), purpose, user.id, org, now, now + LINK_LASTS[purpose])
        await self._links.add(link)
        return link, text

    async def look(self, text: str, purpose: Purpose) -> OneTimeLink | None:
        """The link, while it can be used."""
        if not is_secret(text, (PREFIX,)):
            return None
        return await self._links.find(self._access.digest(text), purpose, self._clock.now())

    async def withdraw(self, user: str) -> None:
        """None of the person's unused links leads anywhere any more."""
        await self._links.withdraw(user)

    async def use(self, text: str, purpose: Purpose) -> OneTimeLink | None:
        """The link, used now; None when it cannot be."""
        if not is_secret(text, (PREFIX,)):
            return None
        return await self._links.use(self._access.digest(text), purpose, self._clock.now())
