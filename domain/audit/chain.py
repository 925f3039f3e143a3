"""Hash chain of a tenant's audit entries: each hash covers the previous one, so that changes are detected."""

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
"""Version of the hashed representation; the representation begins with it."""
_ENCODE = JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode
MAX_FAULTS = 100
"""Maximum number of faults in a report."""


class FaultKind(StoredEnum):
    """Kinds of faults in a chain."""

    CHANGED = "changed"
    MISSING = "missing"
    REORDERED = "reordered"
    INSERTED = "inserted"
    UNCHECKED = "unchecked"
    """An expected hash cannot be compared, because the entry was deleted by age or is older than the chain."""


@dataclass(frozen=True, slots=True)
class ChainHead:
    """Stored end of a tenant's hash chain: the number and the hash of the last entry.

    Attributes:
        last: The number of the last entry.
        hash: The hash of the last entry.
        unchained_until: Entries up to this number are not chained: they are older than the chain, or were deleted.
        anchor: The hash before the first chained entry.
    """

    last: int
    hash: bytes
    unchained_until: int = 0
    anchor: bytes = GENESIS


@dataclass(frozen=True, slots=True)
class ChainFault:
    """Fault in a hash chain.

    Attributes:
        sequence: The number of the faulty entry, or the first number of a range.
        entry: The ID of the faulty entry; None if unknown.
        until: The last number of the range, for missing entries and for entries inserted at the end; otherwise None.
    """

    kind: FaultKind
    sequence: int
    entry: str | None = None
    until: int | None = None


@dataclass(frozen=True, slots=True)
class ChainReport:
    """Result of a check of one tenant's hash chain.

    Attributes:
        valid_entries: Number of valid entries.
        unchained_entries: Number of unchained entries.
        head: The stored end of the chain.
        faults: The first faults, up to MAX_FAULTS.
        unlisted_faults: Number of invalid entries that are not listed in `faults`.
    """

    tenant: Tenant
    valid_entries: int
    unchained_entries: int
    head: ChainHead
    faults: tuple[ChainFault, ...]
    unlisted_faults: int = 0


def to_canonical_json(value: Any) -> str:
    """Serialise a value as canonical JSON: sorted keys, no spaces, numbers independent of type and store."""
    return _ENCODE(_to_exact_numbers(value))


def _to_exact_numbers(value: Any) -> Any:
    """Return the value with whole numbers as int, and others as decimal text after NUL, which no stored text contains."""
    if isinstance(value, (str, bool, int)) or value is None:
        return value
    if isinstance(value, (float, Decimal)):
        exact = Decimal(repr(value)) if isinstance(value, float) else value
        return int(exact) if exact == exact.to_integral_value() else f"\0{exact.normalize():f}"
    if isinstance(value, (list, tuple)):
        return [_to_exact_numbers(part) for part in value]
    return {name: _to_exact_numbers(part) for name, part in value.items()}


def compute_entry_digest(tenant: Tenant, entry: AuditEntry) -> bytes:
    """Compute the SHA-256 of an entry's contents, without its number and hash in the chain."""
    context, change = entry.context, entry.change
    actor = {"kind": context.actor.kind, "id": context.actor.id, "on_behalf_of": context.actor.on_behalf_of}
    contents = (
        FORMAT, tenant.org, tenant.livemode, entry.id, actor, context.operation, context.request_id, context.is_reversible,
        change.object, change.id, change.action, change.before, change.after,
        entry.created_at.astimezone(UTC).isoformat(timespec="microseconds"), entry.act, entry.undoes, entry.undone,
        entry.has_sealed,
    )  # fmt: skip
    return sha256(to_canonical_json(contents).encode("utf-8", "surrogatepass")).digest()


def compute_chain_hash(previous_hash: bytes, digest: bytes) -> bytes:
    """Compute the chain hash of an entry from the hash of the previous entry (`previous_hash`) and the entry's digest."""
    return sha256(previous_hash + digest).digest()


@dataclass(slots=True)
class ChainCheck:
    """Check of one tenant's hash chain, to which all entries must be passed in the order of their numbers.

    `expected_hashes` are hashes that were stored outside the database, by number of the entry.
    """

    tenant: Tenant
    head: ChainHead | None
    expected_hashes: Mapping[int, bytes] = field(default_factory=dict)
    retention_start: datetime | None = None
    """Start of the retention period; None if all entries are within the period.

    Only expired entries are removed from the chain. Therefore, an entry with a hash that is within the period, but
    before the start of the chain, is reported as changed.
    """
    may_have_purged_entries: bool = False
    """True if the tenant is older than the retention period, so that expired entries may have been deleted."""
    faults: list[ChainFault] = field(default_factory=list)
    valid_entries: int = 0
    unchained_entries: int = 0
    unlisted_faults: int = 0
    _last: "_HashMismatch | None" = None
    """The latest mismatch."""
    _seen_before: set[int] = field(default_factory=set)
    """Numbers of the checked unchained entries for which a hash is expected."""
    _sequence: int = 0
    """Number of the last checked entry of the chain."""
    _hashes: list[bytes] = field(default_factory=list)
    """The anchor, and the hashes of the checked entries of the chain in order."""
    _mismatches: "list[_HashMismatch]" = field(default_factory=list)

    def __post_init__(self) -> None:
        """Set the position to the beginning of the chain."""
        self._sequence = self._stored_head.unchained_until
        self._hashes = [self._stored_head.anchor]

    @property
    def _stored_head(self) -> ChainHead:
        """The stored end of the chain; for a tenant without a chain, the end of an empty chain."""
        return self.head or ChainHead(0, GENESIS)

    def check_entries(self, entries: Iterable[AuditEntry]) -> None:
        """Check the next entries of the chain; each call continues after the entries of the previous call."""
        for entry in entries:
            if entry.sequence <= self._stored_head.unchained_until:
                self._check_unchained(entry)
            else:
                self._check_chained(entry)

    def _check_unchained(self, entry: AuditEntry) -> None:
        """Check an entry before the start of the chain, which has no hash or will soon be deleted by age."""
        self.unchained_entries += 1
        if entry.sequence in self.expected_hashes:
            self._seen_before.add(entry.sequence)
        is_retained = self.retention_start is None or entry.created_at > self.retention_start
        expected_hash = self.expected_hashes.get(entry.sequence, entry.hash)
        if (entry.hash is not None and is_retained) or expected_hash != entry.hash:
            self.faults.append(ChainFault(FaultKind.CHANGED, entry.sequence, entry.id))

    def _check_chained(self, entry: AuditEntry) -> None:
        expected = self._sequence + 1
        gap = entry.sequence > expected
        if gap:
            self.faults.append(ChainFault(FaultKind.MISSING, expected, until=entry.sequence - 1))
        if self.expected_hashes.get(entry.sequence, entry.hash) != entry.hash:
            self.faults.append(ChainFault(FaultKind.CHANGED, entry.sequence, entry.id))
        digest = compute_entry_digest(self.tenant, entry)
        follows = entry.hash is not None and compute_chain_hash(self._hashes[-1], digest) == entry.hash
        if self._detect_inserted_predecessor(entry, digest) or follows:
            self.valid_entries += 1
        else:
            # after a gap the preceding hash is unknown; only whether the entry belongs elsewhere can be checked
            fault = None if gap and entry.hash is not None else FaultKind.CHANGED
            self._last = _HashMismatch(entry.id, entry.sequence, entry.hash, digest, len(self._hashes), fault)
            if len(self._mismatches) < MAX_FAULTS:
                self._mismatches.append(self._last)
            else:
                self.unlisted_faults += 1
        self._sequence = entry.sequence
        self._hashes.append(entry.hash or GENESIS)

    def _detect_inserted_predecessor(self, entry: AuditEntry, digest: bytes) -> bool:
        """Mark the last checked entry as inserted if the hash of `entry` follows from the second last checked entry.

        Only an entry with a hash mismatch is marked. Returns whether an entry was marked.
        """
        last = self._last
        if (
            last is None
            or last.position != len(self._hashes) - 1
            or compute_chain_hash(self._hashes[-2], digest) != entry.hash
        ):
            return False
        last.fault = FaultKind.INSERTED
        return True

    def build_report(self) -> ChainReport:
        """Return the result of the check, after all entries were checked."""
        for suspect in self._mismatches:
            if any(compute_chain_hash(hash, suspect.digest) == suspect.hash for hash in self._hashes):
                suspect.fault = FaultKind.REORDERED
            if suspect.fault is None:
                self.valid_entries += 1
            else:
                self.faults.append(ChainFault(suspect.fault, suspect.sequence, suspect.id))
        self._check_beginning()
        self.faults += [ChainFault(FaultKind.MISSING, n, until=n) for n in self.expected_hashes if n > self._sequence]
        self._check_end()
        ordered = sorted(self.faults, key=lambda fault: fault.sequence)[:MAX_FAULTS]
        return ChainReport(
            self.tenant,
            self.valid_entries,
            self.unchained_entries,
            self._stored_head,
            tuple(ordered),
            self.unlisted_faults,
        )

    def _check_beginning(self) -> None:
        """Compare expected hashes with the unchained entries and the anchor, and find entries that were deleted too early."""
        head = self._stored_head
        for number, hash in self.expected_hashes.items():
            if number == head.unchained_until and hash != head.anchor:
                self.faults.append(ChainFault(FaultKind.CHANGED, number))
            elif number < head.unchained_until and number not in self._seen_before:
                self.faults.append(ChainFault(FaultKind.UNCHECKED, number))
        if self.unchained_entries < head.unchained_until and not self.may_have_purged_entries:
            self.faults.append(ChainFault(FaultKind.MISSING, 1, until=head.unchained_until))

    def _check_end(self) -> None:
        head = self._stored_head
        inserted = sum(fault.kind is FaultKind.INSERTED for fault in self.faults)
        if self._sequence < head.last:
            self.faults.append(ChainFault(FaultKind.MISSING, self._sequence + 1, until=head.last))
        elif self._sequence - inserted > head.last:
            self.faults.append(ChainFault(FaultKind.INSERTED, head.last + 1, until=self._sequence))
        elif self._hashes[-1] != head.hash and not self.faults:
            self.faults.append(ChainFault(FaultKind.CHANGED, self._sequence))


@dataclass(slots=True)
class _HashMismatch:
    """Entry whose chain hash does not follow from the previous entry's hash.

    Attributes:
        id: The ID of the entry.
        sequence: The number of the entry.
        hash: The stored chain hash; None if the entry has none.
        digest: The digest of the entry's content.
        position: The number of checked entries before this entry.
        fault: The kind of fault; None if the mismatch only results from missing entries before this entry.
    """

    id: str
    sequence: int
    hash: bytes | None
    digest: bytes
    position: int
    fault: FaultKind | None


def compute_hashes(tenant: Tenant, head: ChainHead, entries: Sequence[AuditEntry]) -> Iterator[tuple[int, bytes]]:
    """Yield the number and the chain hash that each entry gets when the entries are appended after the head."""
    hash = head.hash
    for number, entry in enumerate(entries, start=head.last + 1):
        hash = compute_chain_hash(hash, compute_entry_digest(tenant, entry))
        yield number, hash
