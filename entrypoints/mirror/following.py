"""Loads a copy and keeps it right: an export first, or the list where there are none, then the change feed for ever."""

import asyncio
import secrets
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

import msgspec

from entrypoints.mirror.api import Api, Changes, Event
from entrypoints.mirror.copies import CURSOR, Changed, Copy, Loading
from entrypoints.mirror.errors import Gone, MirrorError, Refused

WAIT: Final = 25
"""Seconds that a request waits for the next change."""
_AT_ONCE: Final = 100
"""Products that are read again in one request."""
_KEY: Final = "export-key"
_POLL: Final = (0.2, 5.0)
_TRIES: Final = 3
_PAUSES: Final = (1.0, 5.0, 30.0)
"""Before loading is tried again: three times where patience has an end, else for ever."""
_OTHERWISE: Final = frozenset({"feature_unavailable", "quota_exceeded", "permission_denied", "conflict"})
"""Refusals of an export that leave the list to be read."""
_ALSO: Final = ("product", "merged_into", "unmerged_from", "previous_product")


class _Offer(msgspec.Struct):
    id: str
    version: int


class _Variant(msgspec.Struct):
    id: str
    version: int
    offers: list[_Offer]


class _Product(msgspec.Struct):
    id: str
    version: int
    variants: list[_Variant]


class _Named(msgspec.Struct):
    id: str


_PRODUCT: Final = msgspec.json.Decoder(_Product).decode
_NAMED: Final = msgspec.json.Decoder(_Named).decode


@dataclass(frozen=True, slots=True)
class Mirror:
    """One copy, and where it comes from; `say` is told what happens, a line each."""

    api: Api
    copy: Copy
    say: Callable[[str], None]

    async def run(self, *, once: bool = False) -> None:
        """Follow for ever, or until nothing more is to be read. Raises MirrorError."""
        while True:
            cursor = self.copy.note(CURSOR)
            try:
                if cursor is None:
                    await self.load()
                elif await self.step(cursor, 0 if once else WAIT) and once:
                    return
            except Refused as refusal:
                if refusal.status == 410:
                    self.say("the cursor has expired: everything is taken anew")
                    await self.load()
                elif cursor is not None and refusal.status == 400:
                    raise MirrorError(
                        f"The copy's cursor is not one of this key's organisation and mode ({refusal}). Use the key that the copy was made with, "
                        "or another place."
                    ) from refusal
                else:
                    raise

    async def step(self, cursor: str, wait: int) -> bool:
        """Apply the next changes; answers whether there were none left."""
        page = await self.api.changes(cursor, wait)
        wanted = list(self._stale(page.data))
        changed: dict[str, bytes | None] = {}
        for begin in range(0, len(wanted), _AT_ONCE):
            changed |= await self._read(wanted[begin : begin + _AT_ONCE])
        if changed or page.next_cursor != cursor:
            self.copy.apply(changed, page.next_cursor)
        if changed:
            self.say(f"{len(page.data):,} events, {len(changed):,} products read again")
        return _ended(page)

    def _stale(self, events: Iterable[Event]) -> Iterator[str]:
        """Products that are to be read again, once each: those of which an event tells more than is held."""
        versions: dict[str, dict[str, int]] = {}
        seen: set[str] = set()
        for event in events:
            ids = [id for id in _products(event) if id not in seen]
            for id in ids:
                if id not in versions:
                    versions[id] = _versions(self.copy.held(id))
            known = versions.get(ids[0], {}) if len(ids) == 1 else {}
            if known.get(event.subject, 0) < event.version:
                seen.update(ids)
                yield from ids

    async def _read(self, ids: list[str]) -> Changed:
        """These products as they are now; what was merged is answered by what it was merged into."""
        found: dict[str, bytes | None] = dict.fromkeys(ids)
        async for page in self.api.products(ids):
            found |= {_NAMED(raw).id: bytes(raw) for raw in page}
        return found

    async def load(self) -> None:
        """Fill the copy anew. Raises MirrorError."""
        for tries in count(1):
            try:
                if not await self._by_export():
                    await self._by_list()
            except Refused:
                raise
            except MirrorError as error:
                if tries >= _TRIES and self.api.patience is not None:
                    raise
                if isinstance(error, Gone):
                    self.copy.set_note(_KEY, None)
                pause = _PAUSES[min(tries, len(_PAUSES)) - 1]
                self.say(f"{error} It is tried again in {pause:.0f} s.")
                await asyncio.sleep(pause)
            else:
                self.copy.set_note(_KEY, None)
                self.say(f"{self.copy.count():,} products are here; following")
                return

    async def _by_export(self) -> bool:
        """Whether there was an export to be had. Killed meanwhile, the same one is gone on with, under the same key."""
        key = self.copy.note(_KEY) or secrets.token_hex(16)
        self.copy.set_note(_KEY, key)
        try:
            id = await self.api.start_export(key)
        except Refused as refusal:
            self.copy.set_note(_KEY, None)
            if refusal.code not in _OTHERWISE:
                raise
            self.say(f"no export is to be had ({refusal.code}): the list is read")
            return False
        made = await self._awaited(id)
        if made["status"] != "succeeded":
            self.copy.set_note(_KEY, None)
            self.say(f"the export {made['status']} ({made.get('error', 'its files are gone')}): the list is read")
            return made["status"] == "expired" and await self._by_export()
        files = {file["dataset"]: file["url"] for file in made["files"]}
        manifest = [msgspec.json.decode(line) for line in (await self.api.small(files["manifest"])).splitlines()]
        digest = next(file["sha256"] for file in manifest if file["dataset"] == "products")
        self.say(f"loading {made['rows']:,} products of the export {id}")
        with self.copy.loading(made["changes_cursor"]) as loading:
            async for lines in self.api.lines(files["products"], digest):
                loading.put((_NAMED(line).id, line) for line in lines)
        return True

    async def _awaited(self, id: str) -> Any:
        pause, longest = _POLL
        while True:
            made = await self.api.export(id)
            if made["status"] not in ("pending", "running"):
                return made
            await asyncio.sleep(pause)
            pause = min(longest, pause * 1.5)

    async def _by_list(self) -> None:
        """Page by page; what changes meanwhile is told behind the cursor, which is taken first."""
        cursor = await self.api.now()
        with self.copy.loading(cursor) as loading:
            await self._listed(loading)

    async def _listed(self, loading: Loading) -> None:
        async for page in self.api.products():
            loading.put([(_NAMED(raw).id, bytes(raw)) for raw in page])


def _ended(page: Changes) -> bool:
    return page.caught_up and not page.data


def _products(event: Event) -> list[str]:
    """The products that an event is about."""
    named = [event.subject, *(event.data.get(name) for name in _ALSO)]
    return list(dict.fromkeys(id for id in named if isinstance(id, str) and id.startswith("prod_")))


def _versions(body: bytes | None) -> dict[str, int]:
    """The versions of a product, its variants and its offers, by id."""
    if body is None:
        return {}
    product = _PRODUCT(body)
    variants = {variant.id: variant.version for variant in product.variants}
    offers = {offer.id: offer.version for variant in product.variants for offer in variant.offers}
    return {product.id: product.version, **variants, **offers}
