"""Vendor profiles, claims and claim invitations in PostgreSQL, in reference tables."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from adapters.postgres.errors import CONFLICT_MESSAGES
from adapters.postgres.session import encode_jsonb
from adapters.postgres.stores import (
    ReferenceTableReader,
    ReferenceTableStore,
    build_page,
    build_page_line_names,
    build_page_params,
    execute_count,
    execute_one,
    fetch_first,
    load_statements,
    render_statement,
)
from adapters.postgres.table import RowMapping, Table, TableStore
from domain.brand.model import BrandClaim, ClaimInvitation, ClaimStatus, DirectoryFilter, Grade, VendorProfile
from domain.brand.names import (
    brand_term,
    compute_brand_key,
    domain_term,
    list_deletions,
    list_profile_terms,
    list_profile_words,
    list_status_terms,
    name_term,
    select_similar,
    split_query,
    word_term,
)
from domain.brand.ports import BrandClaimStore, BrandRegistry, ClaimInvitationStore, VendorProfileStore
from domain.catalogue.search_terms import MAX_QUERY_WORDS
from domain.kernel.paging import Page, PageRequest
from domain.kernel.tenancy import Tenant

PROFILES = RowMapping(VendorProfile)
CLAIMS = Table(
    BrandClaim,
    "brand_claims",
    conflicts={"brand_claims_pending": "Your organisation already has a pending claim to this profile."},
)
INVITATIONS = RowMapping(ClaimInvitation)
CONFLICT_MESSAGES |= {
    "vendor_profiles_slug": "Another request created a profile with this name at the same time. Try again.",
    "vendor_profiles_holder": "The organisation already holds a profile, and can hold only one.",
    "vendor_profile_terms_brand": "A brand, or the name as a brand, already has another profile. Claim that profile, or merge the two.",
}
_SCAN_LIMIT = 3_000
"""Maximum number of profiles that are scanned for a page with several filters or words (a look-up takes about 2 µs)."""
_FREQUENT = 1_000
"""A term is frequent if at least this many profiles after the page's start have it."""
_MAX_GROUPS = MAX_QUERY_WORDS + 2
"""Maximum number of groups of terms: words, a domain, and a status."""
_RIVAL_GRADES = [Grade.STRONG, Grade.CONCLUSIVE]
_COLUMNS = PROFILES.stored_columns
_GROUP_CONDITION = """\
            AND (s.profile IN ( --? group{place}
                SELECT t.profile FROM vendor_profile_terms t WHERE t.livemode = %(livemode)s AND t.term = ANY(%(rare{place})s) --? group{place}
                    AND t.profile < %(page_key)s --? group{place} after
                    AND t.profile > %(page_key)s --? group{place} before
            ) OR ( --? group{place}
                SELECT true FROM vendor_profile_terms t --? group{place}
                WHERE t.livemode = %(livemode)s AND t.term = ANY(%(frequent{place})s) AND t.profile = s.profile LIMIT 1 --? group{place}
            )) --? group{place}"""
"""Template of the SQL condition that a profile has a term of the group.

The profiles of rare terms are read once, and frequent terms are looked up for each profile. A scalar sub-select remains a look-up in
every plan.
"""
SQL = load_statements(
    "brand",
    profile=PROFILES.build_column_list(),
    stored=", ".join(_COLUMNS),
    values=", ".join(f"%({name})s" for name in _COLUMNS),
    settings=", ".join(f"{name} = %({name})s" for name in _COLUMNS if name != "id"),
    claim=CLAIMS.build_column_list(),
    invitation=INVITATIONS.build_column_list(),
    scan_limit=str(_SCAN_LIMIT),
    frequent=str(_FREQUENT),
    group_conditions="\n".join(_GROUP_CONDITION.replace("{place}", str(place)) for place in range(_MAX_GROUPS - 1)),
)


def list_terms(profile: VendorProfile) -> list[str]:
    """Return the stored search keys of a profile; a merged profile has none."""
    if profile.merged_into is not None:
        return []
    return list_profile_terms(profile)


def list_word_rows(profile: VendorProfile) -> list[tuple[str, str]]:
    """Return the words of a profile, each with each text that remains without one of its letters."""
    words = sorted(list_profile_words(profile.name, profile.brands))
    return [(deletion, word) for word in words for deletion in list_deletions(word)]


class PostgresVendorProfileStore(ReferenceTableStore, VendorProfileStore):
    """Vendor profiles of the session's mode."""

    _sql = SQL

    async def get(self, id: str, *, lock: bool = False, merged: bool = False) -> VendorProfile | None:
        return await self._fetch_profile("get_profile", lock=lock, id=id, merged=merged)

    async def find_own(self, *, lock: bool = False) -> VendorProfile | None:
        return await self._fetch_profile("find_own", lock=lock)

    async def _fetch_profile(self, statement: str, *, lock: bool, **values: Any) -> VendorProfile | None:
        if not lock:
            row = await self._session.fetch_row(render_statement(SQL[statement], frozenset()), **values)
        else:
            async with self._session.as_owner():
                row = await self._session.fetch_row(render_statement(SQL[statement], frozenset({"lock"})), **values)
        return PROFILES.build_from_row(*row) if row else None

    async def page(self, request: PageRequest, filter: DirectoryFilter) -> Page[VendorProfile]:
        if filter.get_conditions():
            groups = await self._list_groups(filter)
            return await self._search(request, groups) if all(groups) else build_page([], request)
        statement = render_statement(SQL["list_profiles"], build_page_line_names(request), request.limit + 1)
        rows = await self._session.fetch_rows(statement, **build_page_params(request))
        return build_page([PROFILES.build_from_row(*row) for row in rows], request)

    async def _search(self, request: PageRequest, groups: Sequence[Sequence[str]]) -> Page[VendorProfile]:
        """Return a page of the profiles that have a term of each group. The profiles of the rarest group are scanned."""
        names, params = build_page_line_names(request), build_page_params(request)
        if len(groups) == 1:
            names, params["terms"] = names | {"page_limit"}, groups[0]
        else:
            ranking = render_statement(SQL["rank_groups"], names)
            ranked = await self._session.fetch_rows(ranking, groups=encode_jsonb(groups), **params)
            (rare, frequent), *others = ranked
            params["terms"] = [*rare, *frequent]
            for place, (rare, frequent) in enumerate(others):
                params |= {f"rare{place}": rare, f"frequent{place}": frequent}
            names |= {"scan_limit", *(f"group{place}" for place in range(len(others)))}
        statement = render_statement(SQL["search_profiles"], names, request.limit + 1)
        rows = await self._session.fetch_rows(statement, **params)
        found = [(PROFILES.build_from_row(*row), is_match) for is_match, *row in rows]
        scan_end = next((profile.id for profile, is_match in found if not is_match), None)
        return build_page([profile for profile, is_match in found if is_match], request, scan_end=scan_end)

    async def _list_groups(self, filter: DirectoryFilter) -> list[list[str]]:
        """Return groups of terms. A profile matches the filter if it has a term of each group."""
        groups = list[list[str]]()
        if filter.domain is not None:
            groups.append([domain_term(filter.domain)])
        if filter.status is not None or filter.verified is not None:
            groups.append(list_status_terms(filter.status, filter.verified))
        if filter.q is not None:
            words, joined = split_query(filter.q)
            deletions = sorted({text for word in (*words, joined) for text in list_deletions(word)})
            known = [word for (word,) in await self._fetch_rows("list_similar_words", deletions=deletions)]
            # `walnut oak` also finds profiles with the word `walnutoak`
            joined_words = select_similar(joined, known)
            groups += [
                [word_term(similar) for similar in dict.fromkeys((*select_similar(word, known), *joined_words))]
                for word in words or (joined,)
            ]
        return groups

    async def find_proven_profiles(self, names: Collection[str], *, besides: str) -> Mapping[str, str]:
        key_by_term = {term(name): compute_brand_key(name) for term in (brand_term, name_term) for name in names}
        rows = await self._fetch_rows("find_proven_profiles", terms=list(key_by_term), besides=besides)
        return {key_by_term[term]: profile for term, profile in rows}

    async def is_slug_taken(self, slug: str) -> bool:
        return bool(await self._fetch_rows("is_slug_taken", slug=slug))

    async def add(self, profile: VendorProfile) -> None:
        await self._run("add_profile", **PROFILES.build_params(profile))
        await self._run("add_terms", id=profile.id, terms=list_terms(profile))
        await self._add_words(profile)

    async def save(self, profile: VendorProfile) -> None:
        before = await self.get(profile.id, lock=True, merged=True)
        old, new = set(list_terms(before)) if before else set(), set(list_terms(profile))
        await self._run("save_profile", **PROFILES.build_params(profile))
        await self._run("remove_terms", id=profile.id, terms=sorted(old - new))
        await self._run("add_terms", id=profile.id, terms=sorted(new - old))
        await self._add_words(profile)

    async def _add_words(self, profile: VendorProfile) -> None:
        """Add the words of a profile, so that they are found with a wrong letter."""
        rows = list_word_rows(profile)
        await self._run("add_words", deletions=[row[0] for row in rows], words=[row[1] for row in rows])

    async def remove(self, id: str) -> bool:
        before = await self.get(id, lock=True, merged=True)
        if before is not None:
            await self._run("remove_terms", id=id, terms=list_terms(before))
        return await self._run("remove_profile", id=id) == 1


class PostgresBrandClaimStore(TableStore[BrandClaim], BrandClaimStore):
    """Claims of the tenant, which are written with the owner's privileges."""

    _sql, _table = SQL, CLAIMS

    async def get(self, id: str, *, lock: bool = False) -> BrandClaim | None:
        if not lock:
            return await super().get(id)
        async with self._session.as_owner():
            return await super().get(id, lock=True)

    async def add(self, row: BrandClaim, **more: Any) -> None:
        async with self._session.as_owner():
            await super().add(row, **more)

    async def save(self, row: BrandClaim, *, expected_version: int | None = None, **more: Any) -> None:
        async with self._session.as_owner():
            await super().save(row, expected_version=expected_version, **more)

    async def remove(self, id: str) -> bool:
        async with self._session.as_owner():
            return await super().remove(id)

    async def has_rival(self, profile: str) -> bool:
        async with self._session.as_owner():
            return bool(
                await self._fetch_rows("has_rival", profile=profile, pending=ClaimStatus.PENDING, grades=_RIVAL_GRADES)
            )

    async def lock_claims(self, profile: str, status: ClaimStatus) -> Sequence[BrandClaim]:
        async with self._session.as_owner():
            return await self._fetch_all(CLAIMS.build_from_row, "lock_claims", profile=profile, status=status)


class PostgresClaimInvitationStore(ReferenceTableStore, ClaimInvitationStore):
    """Claim invitations of the session's mode."""

    _sql = SQL
    add_invitation = execute_count()
    use_invitation = execute_one()
    revoke_invitation = execute_one()

    async def find_invitation(self, digest: bytes) -> ClaimInvitation | None:
        async with self._session.as_owner():
            return await self._fetch_first(ClaimInvitation, "find_invitation", digest=digest)

    async def get_invitation(self, id: str) -> ClaimInvitation | None:
        async with self._session.as_owner():
            return await self._fetch_first(ClaimInvitation, "get_invitation", id=id)


def _build_claim(org: str, livemode: bool, *row: Any) -> tuple[Tenant, BrandClaim]:
    return Tenant(org, livemode), CLAIMS.build_from_row(*row)


class PostgresBrandRegistry(ReferenceTableReader, BrandRegistry):
    """Claims and claim invitations of all organisations."""

    _sql = SQL
    find_claim = fetch_first(_build_claim)
    find_open_invitation = fetch_first(ClaimInvitation)

    async def list_claims(self, status: ClaimStatus | None, limit: int) -> Sequence[tuple[Tenant, BrandClaim]]:
        return await self._fetch_all(_build_claim, "list_claims", status=status, limit=limit)

    async def list_due_claims(
        self, checked_before: datetime, created_before: datetime, limit: int
    ) -> Sequence[tuple[Tenant, BrandClaim]]:
        return await self._fetch_all(
            _build_claim,
            "list_due_claims",
            checked_before=checked_before,
            created_before=created_before,
            limit=limit,
            approved=ClaimStatus.APPROVED,
            pending=ClaimStatus.PENDING,
        )

    async def count_pending(self, profile: str) -> int:
        return int(await self._fetch_scalar("count_pending", 0, profile=profile, pending=ClaimStatus.PENDING))
