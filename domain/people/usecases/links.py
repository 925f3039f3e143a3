"""Links for one use, which lead somebody in whom nobody has asked for a password."""

from dataclasses import dataclass

from domain.access.model import is_secret
from domain.access.usecases import AccessService, secret_with
from domain.people.model import LINK_LASTS, OneTimeLink, Purpose, User
from domain.people.ports import OneTimeLinks
from ports.clock import Clock

PREFIX = "svc_link_"


@dataclass(frozen=True, slots=True)
class LinkService:
    """Makes links and has them used, once."""

    links: OneTimeLinks
    access: AccessService
    clock: Clock

    async def make(self, user: User, purpose: Purpose, org: str | None = None) -> tuple[OneTimeLink, str]:
        """A link and its secret, which is told to that person alone; their earlier ones for the same are good no more."""
        text, now = secret_with(PREFIX), self.clock.now()
        link = OneTimeLink(self.access.digest(text), purpose, user.id, org, now, now + LINK_LASTS[purpose])
        await self.links.add(link)
        return link, text

    async def look(self, text: str, purpose: Purpose) -> OneTimeLink | None:
        """The link, while it can be used."""
        if not is_secret(text, (PREFIX,)):
            return None
        return await self.links.find(self.access.digest(text), purpose, self.clock.now())

    async def withdraw(self, user: str) -> None:
        """None of the person's unused links leads anywhere any more."""
        await self.links.withdraw(user)

    async def use(self, text: str, purpose: Purpose) -> OneTimeLink | None:
        """The link, used now; None when it cannot be."""
        if not is_secret(text, (PREFIX,)):
            return None
        return await self.links.use(self.access.digest(text), purpose, self.clock.now())
