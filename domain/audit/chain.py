"""The chain of a tenant's audit entries: each is hashed with the hash before it, so that none can be changed unseen."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from hashlib import sha256
from json import JSONEncoder
from typing import Any

from domain.audit.model import AuditEntry
from domain.kernel.enums import StoredEnum
from domain.kernel.tenancy import Tenant

GENESIS = bytes(32)
"""What stands before a chain's first entry."""
FORMAT = "v1"
"""What is hashed begins with it: another way of writing entries down would be another format beside this one."""
_ENCODE = JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode
MOST_FAULTS = 100
"""Faults of a chain that are told."""


class FaultKind(StoredEnum):
    """What is wrong at a place of the chain."""

    CHANGED = "changed"
    MISSING = "missing"
    REORDERED = "reordered"
    INSERTED = "inserted"
    UNCHECKED = "unchecked"
    """An entry that is not kept any more, or older than the chain, so that a hash that was noted of it tells nothing."""


@dataclass(frozen=True, slots=True)
class ChainHead:
    """The end of a chain as it is kept beside the entries: how many there are, and the last one's hash.

    Entries up to `began` are not chained: they are older than the chain, or no longer kept; `anchor` is what the next one
    is hashed with.
    """

    last: int
    hash: bytes
    began: int = 0
    anchor: bytes = GENESIS


@dataclass(frozen=True, slots=True)
class ChainFault:
    """One fault: what, at which number (the last one too, of a range that is missing), and which entry if there is one."""

    kind: FaultKind
    sequence: int
    entry: str | None = None
    until: int | None = None


@dataclass(frozen=True, slots=True)
class ChainReport:
    """What a check of one tenant's chain found: entries that hold, those from before the chain, and faults."""

    tenant: Tenant
    entries: int
    before: int
    head: ChainHead
    faults: tuple[ChainFault, ...]
    more: int = 0
    """Entries beyond MOST_FAULTS that do not follow on those before them."""


def canonical(value: Any) -> str:
    """JSON that is the same whoever reads the value, and out of whichever store: sorted, without spaces, numbers written out."""
    return _ENCODE(_exact(value))


def _exact(value: Any) -> Any:
    """Return the value with numbers in canonical form; fractions become text after a character that no stored text contains."""
    if isinstance(value, (str, bool, int)) or value is None:
        return value
    if isinstance(value, (float, Decimal)):
        exact = Decimal(repr(value)) if isinstance(value, float) else value
        return int(exact) if exact == exact.to_integral_value() else f"\0{exact.normalize():f}"
    if isinstance(value, (list, tuple)):
        return [_exact(part) for part in value]
    return {name: _exact(part) for name, part in value.items()}


def digest_of(tenant: Tenant, entry: AuditEntry) -> bytes:
    """Return the SHA-256 of an entry's content, without its place in the chain."""
    context, change = entry.context, entry.change
    actor = {"kind": context.actor.kind, "id": context.actor.id, "on_behalf_of": context.actor.on_behalf_of}
    said = (
        FORMAT, tenant.org, tenant.livemode, entry.id, actor, context.operation, context.request_id, context.reversible,
        change.object, change.id, change.action, change.before, change.after,
        entry.created_at.astimezone(UTC).isoformat(timespec="microseconds"), entry.act, entry.undoes, entry.undone,
        entry.kept,
    )  # fmt: skip
    return sha256(canonical(said).encode("utf-8", "surrogatepass")).digest()


def chained(before: bytes, digest: bytes) -> bytes:
    """Return the hash of an entry with the digest, following the entry with the hash `before`."""
    return sha256(before + digest).digest()


@dataclass(slots=True)
class ChainCheck:
    """Checks one tenant's chain, of which it is given the entries in the order of their numbers.

    `noted` are hashes that entries of these numbers are known to have had.
    """

    tenant: Tenant
    head: ChainHead | None
    noted: Mapping[int, bytes] = field(default_factory=dict)
    kept_since: datetime | None = None
    """Entries that were made later are kept, whatever the chain's head says; None: all are."""
    may_be_purged: bool = False
    """Whether the tenant is so old that entries may have gone by age."""
    faults: list[ChainFault] = field(default_factory=list)
    entries: int = 0
    before: int = 0
    more: int = 0
    _last: "_Suspect | None" = None
    _seen_before: set[int] = field(default_factory=set)
    _sequence: int = 0
    _hashes: list[bytes] = field(default_factory=list)
    _suspects: "list[_Suspect]" = field(default_factory=list)

    def __post_init__(self) -> None:
        """Begin where the chain does."""
        self._sequence = self._began.began
        self._hashes = [self._began.anchor]

    @property
    def _began(self) -> ChainHead:
        return self.head or ChainHead(0, GENESIS)

    def look_at(self, entries: Iterable[AuditEntry]) -> None:
        """Check the next entries."""
        for entry in entries:
            if entry.sequence <= self._began.began:
                self._look_before(entry)
            else:
                self._follow(entry)

    def _look_before(self, entry: AuditEntry) -> None:
        """Check an entry before the start of the chain: from before chains existed, or about to be deleted by age."""
        self.before += 1
        if entry.sequence in self.noted:
            self._seen_before.add(entry.sequence)
        young = self.kept_since is None or entry.created_at > self.kept_since
        known = self.noted.get(entry.sequence, entry.hash)
        if (entry.hash is not None and young) or known != entry.hash:
            self.faults.append(ChainFault(FaultKind.CHANGED, entry.sequence, entry.id))

    def _follow(self, entry: AuditEntry) -> None:
        expected = self._sequence + 1
        gap = entry.sequence > expected
        if gap:
            self.faults.append(ChainFault(FaultKind.MISSING, expected, until=entry.sequence - 1))
        if self.noted.get(entry.sequence, entry.hash) != entry.hash:
            self.faults.append(ChainFault(FaultKind.CHANGED, entry.sequence, entry.id))
        digest = digest_of(self.tenant, entry)
        follows = entry.hash is not None and chained(self._hashes[-1], digest) == entry.hash
        if self._passes_over(entry, digest) or follows:
            self.entries += 1
        else:
            # behind a gap it cannot be told what it was hashed with; only whether it belongs elsewhere
            verdict = None if gap and entry.hash is not None else FaultKind.CHANGED
            self._last = _Suspect(entry.id, entry.sequence, entry.hash, digest, len(self._hashes), verdict)
            if len(self._suspects) < MOST_FAULTS:
                self._suspects.append(self._last)
            else:
                self.more += 1
        self._sequence = entry.sequence
        self._hashes.append(entry.hash or GENESIS)

    def _passes_over(self, entry: AuditEntry, digest: bytes) -> bool:
        """Whether it follows on the entry before the last one, which then was put in between."""
        last = self._last
        if last is None or last.place != len(self._hashes) - 1 or chained(self._hashes[-2], digest) != entry.hash:
            return False
        last.verdict = FaultKind.INSERTED
        return True

    def report(self) -> ChainReport:
        """Return the findings after all entries were checked."""
        for suspect in self._suspects:
            if any(chained(one, suspect.digest) == suspect.hash for one in self._hashes):
                suspect.verdict = FaultKind.REORDERED
            if suspect.verdict is None:
                self.entries += 1
            else:
                self.faults.append(ChainFault(suspect.verdict, suspect.sequence, suspect.id))
        self._compare_early()
        self.faults += [ChainFault(FaultKind.MISSING, one, until=one) for one in self.noted if one > self._sequence]
        self._end()
        ordered = sorted(self.faults, key=lambda fault: fault.sequence)[:MOST_FAULTS]
        return ChainReport(self.tenant, self.entries, self.before, self._began, tuple(ordered), self.more)

    def _compare_early(self) -> None:
        """Check the entries before the chain's start: noted hashes, the anchor, and that none is missing early."""
        head = self._began
        for number, hash in self.noted.items():
            if number == head.began and hash != head.anchor:
                self.faults.append(ChainFault(FaultKind.CHANGED, number))
            elif number < head.began and number not in self._seen_before:
                self.faults.append(ChainFault(FaultKind.UNCHECKED, number))
        if self.before < head.began and not self.may_be_purged:
            self.faults.append(ChainFault(FaultKind.MISSING, 1, until=head.began))

    def _end(self) -> None:
        head = self._began
        inserted = sum(fault.kind is FaultKind.INSERTED for fault in self.faults)
        if self._sequence < head.last:
            self.faults.append(ChainFault(FaultKind.MISSING, self._sequence + 1, until=head.last))
        elif self._sequence - inserted > head.last:
            self.faults.append(ChainFault(FaultKind.INSERTED, head.last + 1, until=self._sequence))
        elif self._hashes[-1] != head.hash and not self.faults:
            self.faults.append(ChainFault(FaultKind.CHANGED, self._sequence))


@dataclass(slots=True)
class _Suspect:
    """An entry that does not follow on the one before it, and what that comes to; None: nothing but a gap before it."""

    id: str
    sequence: int
    hash: bytes | None
    digest: bytes
    place: int
    verdict: FaultKind | None


def linked(tenant: Tenant, head: ChainHead, entries: Sequence[AuditEntry]) -> Iterator[tuple[int, bytes]]:
    """Yield the numbers and hashes of entries that are appended to the head."""
    hash = head.hash
    for number, entry in enumerate(entries, start=head.last + 1):
        hash = chained(hash, digest_of(tenant, entry))
        yield number, hash
