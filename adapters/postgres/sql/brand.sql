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
    AND status = %(status)s --? status
    AND verified = %(verified)s --? verified
    AND id < %(page_key)s --? after
    AND id > %(page_key)s --? before
ORDER BY id DESC LIMIT {limit} --? forwards
ORDER BY id ASC LIMIT {limit} --? backwards

-- list_similar_words --
SELECT DISTINCT word FROM vendor_words WHERE livemode = %(livemode)s AND deletion = ANY(%(deletions)s)

-- count_profiles --
-- The number of profiles of each group of terms, at most about `max_count` for each term.
SELECT (
    SELECT count(*) FROM jsonb_array_elements_text(g.terms) AS given (term)
    CROSS JOIN LATERAL (
        SELECT FROM vendor_profile_terms t WHERE t.livemode = %(livemode)s AND t.term = given.term LIMIT %(max_count)s
    ) AS counted
)
FROM jsonb_array_elements(%(groups)s) WITH ORDINALITY AS g (terms, place)
ORDER BY g.place

-- search_profiles --
-- Each start is a term and the groups of terms of which a profile must have one each. The first profiles of each start are merged.
WITH found AS (
    SELECT DISTINCT one.profile
    FROM jsonb_to_recordset(%(starts)s) AS start (term text, groups jsonb)
    CROSS JOIN LATERAL (
        SELECT t.profile FROM vendor_profile_terms t
        WHERE t.livemode = %(livemode)s AND t.term = start.term
            AND EXISTS ( --? filtered
                SELECT FROM vendor_profiles p WHERE p.livemode = %(livemode)s AND p.id = t.profile --? filtered
                    AND p.status = %(status)s --? status
                    AND p.verified = %(verified)s --? verified
            ) --? filtered
            AND t.profile < %(page_key)s --? after
            AND t.profile > %(page_key)s --? before
            AND NOT EXISTS (
                SELECT FROM jsonb_array_elements(start.groups) AS g (terms)
                WHERE NOT EXISTS (
                    SELECT FROM vendor_profile_terms m
                    WHERE m.livemode = %(livemode)s AND m.profile = t.profile
                        AND m.term = ANY(ARRAY(SELECT jsonb_array_elements_text(g.terms)))
                )
            )
        ORDER BY t.profile DESC LIMIT {limit} --? forwards
        ORDER BY t.profile ASC LIMIT {limit} --? backwards
    ) AS one
    ORDER BY one.profile DESC LIMIT {limit} --? forwards
    ORDER BY one.profile ASC LIMIT {limit} --? backwards
)
SELECT p.* FROM found
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
