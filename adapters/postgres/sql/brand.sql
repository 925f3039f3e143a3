-- get_profile --
SELECT {profile} FROM vendor_profiles
WHERE livemode = %(livemode)s AND id = %(id)s AND (merged_into IS NULL OR %(merged)s)
FOR UPDATE --? lock

-- find_own --
SELECT {profile} FROM vendor_profiles WHERE livemode = %(livemode)s AND holder = %(org)s AND merged_into IS NULL
FOR UPDATE --? lock

-- is_slug_taken --
SELECT true FROM vendor_profiles WHERE livemode = %(livemode)s AND slug = %(slug)s

-- find_proven_profiles --
SELECT term, profile FROM vendor_profile_terms
WHERE livemode = %(livemode)s AND term = ANY(%(terms)s) AND profile <> %(besides)s

-- list_profiles --
SELECT {profile} FROM vendor_profiles
WHERE livemode = %(livemode)s AND merged_into IS NULL
    AND id < %(page_key)s --? after
    AND id > %(page_key)s --? before
ORDER BY id DESC LIMIT {limit} --? forwards
ORDER BY id ASC LIMIT {limit} --? backwards

-- list_similar_words --
SELECT DISTINCT word FROM vendor_words WHERE livemode = %(livemode)s AND deletion = ANY(%(deletions)s)

-- rank_groups --
-- The rare and the frequent terms of each group, from the rarest group after the page's start to the most frequent. A term is
-- frequent if `frequent` profiles have it.
SELECT coalesce(array_agg(given.term) FILTER (WHERE nearest.number < {frequent}), '{}'),
    coalesce(array_agg(given.term) FILTER (WHERE nearest.number = {frequent}), '{}')
FROM jsonb_array_elements(%(groups)s) WITH ORDINALITY AS g (terms, place)
CROSS JOIN LATERAL jsonb_array_elements_text(g.terms) AS given (term)
CROSS JOIN LATERAL (
    SELECT count(*) AS number,
        min(t.profile) AS last --? forwards
        max(t.profile) AS last --? backwards
    FROM (
        SELECT profile FROM vendor_profile_terms WHERE livemode = %(livemode)s AND term = given.term
            AND profile < %(page_key)s --? after
            AND profile > %(page_key)s --? before
        ORDER BY profile DESC LIMIT {frequent} --? forwards
        ORDER BY profile ASC LIMIT {frequent} --? backwards
    ) AS t
) AS nearest
GROUP BY g.place
ORDER BY max(nearest.last) FILTER (WHERE nearest.number = {frequent}) ASC NULLS FIRST, sum(nearest.number) --? forwards
ORDER BY min(nearest.last) FILTER (WHERE nearest.number = {frequent}) DESC NULLS FIRST, sum(nearest.number) --? backwards

-- search_profiles --
-- The nearest profiles with one of the `terms` are scanned; the conditions state what else a match has. If the scan has reached its limit, its last
-- profile follows the matches, with `is_match` false.
WITH scanned AS MATERIALIZED (
    SELECT DISTINCT nearest.profile FROM unnest(%(terms)s::text[]) AS given (term) CROSS JOIN LATERAL (
        SELECT profile FROM vendor_profile_terms WHERE livemode = %(livemode)s AND term = given.term
            AND profile < %(page_key)s --? after
            AND profile > %(page_key)s --? before
        ORDER BY profile DESC LIMIT {limit} --? forwards page_limit
        ORDER BY profile ASC LIMIT {limit} --? backwards page_limit
        ORDER BY profile DESC LIMIT {scan_limit} --? forwards scan_limit
        ORDER BY profile ASC LIMIT {scan_limit} --? backwards scan_limit
    ) AS nearest
    ORDER BY nearest.profile DESC LIMIT {scan_limit} --? forwards
    ORDER BY nearest.profile ASC LIMIT {scan_limit} --? backwards
), found AS (
    (
        SELECT s.profile, true AS is_match FROM scanned s WHERE true
{group_conditions}
        ORDER BY s.profile DESC LIMIT {limit} --? forwards
        ORDER BY s.profile ASC LIMIT {limit} --? backwards
    )
    UNION ALL ( --? scan_limit
        SELECT s.profile, false FROM scanned s --? scan_limit
        ORDER BY s.profile DESC OFFSET {scan_limit} - 1 LIMIT 1 --? forwards scan_limit
        ORDER BY s.profile ASC OFFSET {scan_limit} - 1 LIMIT 1 --? backwards scan_limit
    ) --? scan_limit
)
SELECT found.is_match, p.* FROM found
CROSS JOIN LATERAL (
    SELECT {profile} FROM vendor_profiles WHERE livemode = %(livemode)s AND id = found.profile LIMIT 1
) AS p
ORDER BY found.profile DESC --? forwards
ORDER BY found.profile ASC --? backwards

-- add_profile --
INSERT INTO vendor_profiles (livemode, {stored})
VALUES (%(livemode)s, {values})

-- save_profile --
UPDATE vendor_profiles SET {settings} WHERE livemode = %(livemode)s AND id = %(id)s

-- remove_profile --
DELETE FROM vendor_profiles WHERE livemode = %(livemode)s AND id = %(id)s

-- add_terms --
INSERT INTO vendor_profile_terms (livemode, term, profile)
SELECT %(livemode)s, term, %(id)s FROM unnest(%(terms)s::text[]) AS given (term)

-- add_words --
INSERT INTO vendor_words (livemode, deletion, word)
SELECT %(livemode)s, deletion, word FROM unnest(%(deletions)s::text[], %(words)s::text[]) AS given (deletion, word)
ON CONFLICT DO NOTHING

-- remove_terms --
DELETE FROM vendor_profile_terms WHERE livemode = %(livemode)s AND term = ANY(%(terms)s) AND profile = %(id)s

-- has_rival --
SELECT true FROM brand_claims
WHERE livemode = %(livemode)s AND profile = %(profile)s AND org <> %(org)s AND status = %(pending)s
    AND EXISTS (SELECT FROM jsonb_array_elements(evidence) AS item WHERE item ->> 'grade' = ANY(%(grades)s)) LIMIT 1

-- lock_claims --
SELECT {claim} FROM brand_claims
WHERE org = %(org)s AND livemode = %(livemode)s AND profile = %(profile)s AND status = %(status)s ORDER BY id FOR UPDATE

-- find_invitation --
SELECT {invitation} FROM claim_invitations WHERE livemode = %(livemode)s AND digest = %(digest)s

-- get_invitation --
SELECT {invitation} FROM claim_invitations WHERE livemode = %(livemode)s AND id = %(id)s

-- add_invitation --
INSERT INTO claim_invitations (livemode, id, profile, email, digest, created_at, expires_at)
VALUES (%(livemode)s, %(id)s, %(profile)s, %(email)s, %(digest)s, %(created_at)s, %(expires_at)s)

-- use_invitation --
UPDATE claim_invitations SET claim = %(claim)s
WHERE livemode = %(livemode)s AND id = %(id)s AND claim IS NULL AND revoked_at IS NULL AND expires_at > %(now)s

-- revoke_invitation --
UPDATE claim_invitations SET revoked_at = %(now)s
WHERE livemode = %(livemode)s AND id = %(id)s AND claim IS NULL AND revoked_at IS NULL

-- list_claims --
SELECT org, livemode, {claim} FROM brand_claims
WHERE %(status)s::text IS NULL OR status = %(status)s ORDER BY id DESC LIMIT %(limit)s

-- find_claim --
SELECT org, livemode, {claim} FROM brand_claims WHERE id = %(id)s

-- list_due_claims --
SELECT org, livemode, {claim} FROM brand_claims
WHERE (checked_at IS NULL OR checked_at < %(checked_before)s)
    AND (status = %(approved)s OR (status = %(pending)s AND created_at < %(created_before)s AND decision IS NULL))
ORDER BY checked_at NULLS FIRST LIMIT %(limit)s

-- count_pending --
SELECT count(*) FROM brand_claims WHERE profile = %(profile)s AND status = %(pending)s

-- find_open_invitation --
SELECT {invitation} FROM claim_invitations
WHERE livemode = %(livemode)s AND digest = %(digest)s AND claim IS NULL AND revoked_at IS NULL AND expires_at > %(now)s
