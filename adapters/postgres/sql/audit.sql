-- append_entry --
-- Increments the chain's head and inserts one entry. The row stays locked until the transaction ends, which follows immediately.
WITH head AS (
    UPDATE audit_chains SET last = last + 1, hash = sha256(hash || %(digest)s)
    WHERE org = %(org)s AND livemode = %(livemode)s
    RETURNING org, livemode, last, hash
)
INSERT INTO audit_entries (org, livemode, id, actor, action, target, target_id, change, before, after, request_id, created_at,
    act, undoes, undone, reversible, kept, sequence, hash)
SELECT org, livemode, %(id)s, %(actor)s, %(action)s, %(target)s, %(target_id)s, %(change)s, %(before)s, %(after)s, %(request_id)s,
    %(created_at)s, %(act)s, %(undoes)s, %(undone)s, %(reversible)s, %(kept)s, last, hash
FROM head

-- create_chain --
INSERT INTO audit_chains (org, livemode, last, hash, began, anchor)
VALUES (%(org)s, %(livemode)s, 0, %(genesis)s, 0, %(genesis)s) ON CONFLICT (org, livemode) DO NOTHING

-- lock_head --
SELECT last, hash FROM audit_chains WHERE org = %(org)s AND livemode = %(livemode)s FOR UPDATE

-- advance_head --
UPDATE audit_chains SET last = %(last)s, hash = %(hash)s WHERE org = %(org)s AND livemode = %(livemode)s

-- get_head --
SELECT last, hash, began, anchor FROM audit_chains WHERE org = %(org)s AND livemode = %(livemode)s

-- read_chain --
SELECT {entry} FROM audit_entries
WHERE org = %(org)s AND livemode = %(livemode)s AND sequence > %(after)s ORDER BY sequence LIMIT %(limit)s

-- store_sealed --
INSERT INTO audit_kept (org, livemode, entry, sealed, expires_at)
VALUES (%(org)s, %(livemode)s, %(entry)s, %(sealed)s, %(expires_at)s)

-- get_sealed --
SELECT sealed FROM audit_kept
WHERE org = %(org)s AND livemode = %(livemode)s AND entry = %(entry)s AND expires_at > %(now)s

-- get --
SELECT {entry} FROM audit_entries WHERE org = %(org)s AND livemode = %(livemode)s AND id = %(id)s

-- list_entries_of_acts --
SELECT {entry} FROM audit_entries WHERE org = %(org)s AND livemode = %(livemode)s AND id = ANY(%(acts)s) AND act IS NULL
UNION ALL SELECT {entry} FROM audit_entries WHERE org = %(org)s AND livemode = %(livemode)s AND act = ANY(%(acts)s)

-- find_undoing_acts --
SELECT undoes, id FROM audit_entries WHERE org = %(org)s AND livemode = %(livemode)s AND undoes = ANY(%(acts)s)

-- find_dependents --
-- Later entries that depend on the given ones (AuditLog.find_dependents). `bound` is an ID shortly before the entry: later
-- entries of the same target have higher IDs, because every change of a target locks it.
SELECT c.act, dependent.id FROM jsonb_to_recordset(%(entries)s)
    AS c (act text, object text, target text, sequence bigint, bound text, affects_all_fields boolean, fields jsonb)
CROSS JOIN LATERAL (
    SELECT l.id FROM audit_entries AS l
    WHERE l.org = %(org)s AND l.livemode = %(livemode)s AND l.target_id = c.target AND l.id > c.bound
        AND l.target = c.object AND l.sequence > c.sequence AND coalesce(l.act, l.id) <> c.act
        AND (c.affects_all_fields OR l.change <> 'update'
            OR (l.before || l.after) ?| ARRAY(SELECT jsonb_array_elements_text(c.fields)))
        AND NOT EXISTS (SELECT FROM audit_entries AS u
            WHERE u.org = %(org)s AND u.livemode = %(livemode)s AND u.undoes = coalesce(l.act, l.id))
        AND (SELECT count(*) FROM unnest(l.undone) AS s (sequence) WHERE s.sequence > c.sequence) %% 2 = 0
    ORDER BY l.id DESC LIMIT 1
) AS dependent

-- list_entries --
SELECT {entry} FROM audit_entries
WHERE org = %(org)s AND livemode = %(livemode)s
    AND target_id = %(target)s --? target
    AND actor_id = %(actor)s --? actor
    AND action = %(action)s --? action
    AND target = %(object)s --? object
    AND reversible --? reversible
    AND id >= %(since_id)s AND created_at >= %(since)s --? since
    AND id < %(until_id)s AND created_at < %(until)s --? until
    AND id < %(page_key)s --? after
    AND id > %(page_key)s --? before
ORDER BY id DESC LIMIT {limit} --? forwards
ORDER BY id ASC LIMIT {limit} --? backwards

-- scan_by_index --
-- Scans the index that `scan_…` selects, up to a limit of rows; the other filters apply to the scanned rows.
SELECT {entry} FROM (
    {index_scan}
) AS scanned
WHERE true
    AND actor_id = %(actor)s --? actor
    AND action = %(action)s --? action
    AND target = %(object)s --? object
    AND reversible --? reversible
ORDER BY id DESC LIMIT {limit} --? forwards
ORDER BY id ASC LIMIT {limit} --? backwards

-- find_scan_end --
SELECT id FROM (
    {index_scan}
) AS scanned
ORDER BY id DESC OFFSET {scan_limit} - 1 --? forwards
ORDER BY id ASC OFFSET {scan_limit} - 1 --? backwards

-- index_scan --
SELECT * FROM audit_entries
    WHERE org = %(org)s AND livemode = %(livemode)s
        AND target_id = %(target)s --? scan_target
        AND actor_id = %(actor)s --? scan_actor
        AND action = %(action)s --? scan_action
        AND target = %(object)s --? scan_object
        AND id >= %(since_id)s AND created_at >= %(since)s --? since
        AND id < %(until_id)s AND created_at < %(until)s --? until
        AND id < %(page_key)s --? after
        AND id > %(page_key)s --? before
    ORDER BY id DESC LIMIT {scan_limit} --? forwards
    ORDER BY id ASC LIMIT {scan_limit} --? backwards
