"""Hash chain of a tenant's audit entries: each hash includes the one before it, so that changes are detected."""

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
"""The hash before a chain's first entry."""
FORMAT = "v1"
"""Version of the hashed representation, which begins with it."""
_ENCODE = JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode
MOST_FAULTS = 100
"""Maximum number of faults in a report."""


class FaultKind(StoredEnum):
    """Kinds of faults in a chain."""

    CHANGED = "changed"
    MISSING = "missing"
    REORDERED = "reordered"
    INSERTED = "inserted"
    UNCHECKED = "unchecked"
    """An expected hash cannot be compared: its entry was deleted by age or is older than the chain."""


@dataclass(frozen=True, slots=True)
class ChainHead:
    """The stored end of a chain: the last number and hash.

    Entries up to `began` are not chained, because they are older than the chain or were deleted; `anchor` is the hash
    that precedes the first chained entry.
    """

    last: int
    hash: bytes
    began: int = 0
    anchor: bytes = GENESIS


@dataclass(frozen=True, slots=True)
class ChainFault:
    """One fault at the entry number `sequence`; `until` is the last number of a missing or inserted range."""

    kind: FaultKind
    sequence: int
    entry: str | None = None
    until: int | None = None


@dataclass(frozen=True, slots=True)
class ChainReport:
    """Result of a check of one tenant's chain: numbers of valid entries and of unchained ones, and faults."""

    tenant: Tenant
    entries: int
    before: int
    head: ChainHead
    faults: tuple[ChainFault, ...]
    more: int = 0
    """Number of entries beyond MOST_FAULTS whose hash does not follow from the one before."""


def canonical(value: Any) -> str:
    """Serialise a value as canonical JSON: sorted keys, no spaces, numbers independent of type and store."""
    return _ENCODE(_exact(value))


def _exact(value: Any) -> Any:
    """Return the value with integral numbers as int, others as decimal text after NUL, which no stored text has."""
    if isinstance(value, (str, bool, int)) or value is None:
        return value
    if isinstance(value, (float, Decimal)):
        exact = Decimal(repr(value)) if isinstance(value, float) else value
        return int(exact) if exact == exact.to_integral_value() else f"\0{exact.normalize():f}"
    if isinstance(value, (list, tuple)):
        return [_exact(part) for part in value]
    return {name: _exact(part) for name, part in value.items()}


def digest_of(tenant: Tenant, entry: AuditEntry) -> bytes:
    """Compute the SHA-256 of an entry's contents without its place in the chain."""
    context, change = entry.context, entry.change
    actor = {"kind": context.actor.kind, "id": context.actor.id, "on_behalf_of": context.actor.on_behalf_of}
    contents = (
        FORMAT, tenant.org, tenant.livemode, entry.id, actor, context.operation, context.request_id, context.reversible,
        change.object, change.id, change.action, change.before, change.after,
        entry.created_at.astimezone(UTC).isoformat(timespec="microseconds"), entry.act, entry.undoes, entry.undone,
        entry.kept,
    )  # fmt: skip
    return sha256(canonical(contents).encode("utf-8", "surrogatepass")).digest()


def chained(before: bytes, digest: bytes) -> bytes:
    """Compute the chain hash of an entry from the hash `before` and the entry's digest."""
    return sha256(before + digest).digest()


@dataclass(slots=True)
class ChainCheck:
    """Check of one tenant's chain, fed with its entries in the order of their numbers.

    `noted` are expected hashes by number.
    """

    tenant: Tenant
    head: ChainHead | None
    noted: Mapping[int, bytes] = field(default_factory=dict)
    kept_since: datetime | None = None
    """Entries made after this time must be chained, whatever the head says; None: all must be."""
    may_be_purged: bool = False
    """Whether the tenant is old enough for entries to have been deleted by age."""
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
        """Start at the beginning of the chain."""
        self._sequence = self._began.began
        self._hashes = [self._began.anchor]

    @property
    def _began(self) -> ChainHead:
        return self.head or ChainHead(0, GENESIS)

    def look_at(self, entries: Iterable[AuditEntry]) -> None:
        """Check the next entries."""
        for entry in entries:
            if entry.sequence <= self._began.began:
                self._check_unchained(entry)
            else:
                self._check_chained(entry)

    def _check_unchained(self, entry: AuditEntry) -> None:
        """Check an entry before the chain's beginning, which is unchained or about to be deleted by age."""
        self.before += 1
        if entry.sequence in self.noted:
            self._seen_before.add(entry.sequence)
        young = self.kept_since is None or entry.created_at > self.kept_since
        known = self.noted.get(entry.sequence, entry.hash)
        if (entry.hash is not None and young) or known != entry.hash:
            self.faults.append(ChainFault(FaultKind.CHANGED, entry.sequence, entry.id))

    def _check_chained(self, entry: AuditEntry) -> None:
        expected = self._sequence + 1
        gap = entry.sequence > expected
        if gap:
            self.faults.append(ChainFault(FaultKind.MISSING, expected, until=entry.sequence - 1))
        if self.noted.get(entry.sequence, entry.hash) != entry.hash:
            self.faults.append(ChainFault(FaultKind.CHANGED, entry.sequence, entry.id))
        digest = digest_of(self.tenant, entry)
        follows = entry.hash is not None and chained(self._hashes[-1], digest) == entry.hash
        if self._follows_second_last(entry, digest) or follows:
            self.entries += 1
        else:
            # after a gap the preceding hash is unknown; only whether the entry belongs elsewhere can be checked
            verdict = None if gap and entry.hash is not None else FaultKind.CHANGED
            self._last = _Suspect(entry.id, entry.sequence, entry.hash, digest, len(self._hashes), verdict)
            if len(self._suspects) < MOST_FAULTS:
                self._suspects.append(self._last)
            else:
                self.more += 1
        self._sequence = entry.sequence
        self._hashes.append(entry.hash or GENESIS)

    def _follows_second_last(self, entry: AuditEntry, digest: bytes) -> bool:
        """Return whether the entry follows the one before the last; if so, mark the last one as inserted."""
        last = self._last
        if last is None or last.place != len(self._hashes) - 1 or chained(self._hashes[-2], digest) != entry.hash:
            return False
        last.verdict = FaultKind.INSERTED
        return True

    def report(self) -> ChainReport:
        """Return the report, once all entries were checked."""
        for suspect in self._suspects:
            if any(chained(hash, suspect.digest) == suspect.hash for hash in self._hashes):
                suspect.verdict = FaultKind.REORDERED
            if suspect.verdict is None:
                self.entries += 1
            else:
                self.faults.append(ChainFault(suspect.verdict, suspect.sequence, suspect.id))
        self._check_beginning()
        self.faults += [ChainFault(FaultKind.MISSING, n, until=n) for n in self.noted if n > self._sequence]
        self._check_end()
        ordered = sorted(self.faults, key=lambda fault: fault.sequence)[:MOST_FAULTS]
        return ChainReport(self.tenant, self.entries, self.before, self._began, tuple(ordered), self.more)

    def _check_beginning(self) -> None:
        """Compare expected hashes of unchained entries and the anchor.

        Detect unchained entries that were deleted too early.
        """
        head = self._began
        for number, hash in self.noted.items():
            if number == head.began and hash != head.anchor:
                self.faults.append(ChainFault(FaultKind.CHANGED, number))
            elif number < head.began and number not in self._seen_before:
                self.faults.append(ChainFault(FaultKind.UNCHECKED, number))
        if self.before < head.began and not self.may_be_purged:
            self.faults.append(ChainFault(FaultKind.MISSING, 1, until=head.began))

    def _check_end(self) -> None:
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
    """An entry whose hash does not follow from the one before, and its verdict; None if only a gap precedes it."""

    id: str
    sequence: int
    hash: bytes | None
    digest: bytes
    place: int
    verdict: FaultKind | None


def linked(tenant: Tenant, head: ChainHead, entries: Sequence[AuditEntry]) -> Iterator[tuple[int, bytes]]:
    """Yield the numbers and hashes of entries that are appended after the head."""
    hash = head.hash
    for number, entry in enumerate(entries, start=head.last + 1):
        hash = chained(hash, digest_of(tenant, entry))
        yield number, hash
