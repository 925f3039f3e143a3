-- get_newest --
SELECT {turn} FROM assistant_turns
WHERE org = %(org)s AND livemode = %(livemode)s AND conversation = %(conversation)s ORDER BY number DESC LIMIT 1

-- find --
SELECT {turn} FROM assistant_turns
WHERE org = %(org)s AND livemode = %(livemode)s AND conversation = %(conversation)s AND request_key = %(request_key)s

-- has_answer --
SELECT EXISTS (
    SELECT FROM assistant_turns
    WHERE org = %(org)s AND livemode = %(livemode)s AND conversation = %(conversation)s AND answer = %(answer)s
)

-- save --
INSERT INTO assistant_turns (
    org, livemode, conversation, number, request_key, fingerprint, input, answer, attempt, alive_until, is_stopping, ended_at,
    has_failed
) VALUES (
    %(org)s, %(livemode)s, %(conversation)s, %(number)s, %(request_key)s, %(fingerprint)s, %(input)s, %(answer)s, %(attempt)s,
    %(alive_until)s, %(is_stopping)s, %(ended_at)s, %(has_failed)s
) ON CONFLICT (org, livemode, conversation, number) DO UPDATE
SET attempt = excluded.attempt, alive_until = excluded.alive_until, is_stopping = excluded.is_stopping, ended_at = excluded.ended_at,
    has_failed = excluded.has_failed

-- extend --
UPDATE assistant_turns SET alive_until = %(alive_until)s
WHERE org = %(org)s AND livemode = %(livemode)s AND conversation = %(conversation)s AND number = %(number)s
    AND attempt = %(attempt)s AND ended_at IS NULL
RETURNING is_stopping

-- append --
INSERT INTO assistant_frames (org, livemode, conversation, turn, number, data, stored_at)
VALUES (%(org)s, %(livemode)s, %(conversation)s, %(turn)s, %(number)s, %(data)s, %(now)s)
ON CONFLICT (org, livemode, conversation, turn, number) DO UPDATE SET data = excluded.data

-- list_chunks --
SELECT f.turn, f.number, f.data FROM assistant_frames AS f
JOIN assistant_turns AS t
    ON t.org = f.org AND t.livemode = f.livemode AND t.conversation = f.conversation AND t.number = f.turn
WHERE f.org = %(org)s AND f.livemode = %(livemode)s AND f.conversation = %(conversation)s
    AND t.org = %(org)s AND t.livemode = %(livemode)s AND t.answer = %(answer)s AND t.number <= %(until)s
    AND (f.turn, f.number) > (%(after_turn)s, %(after_number)s)
    AND (CASE WHEN f.turn = %(newest)s THEN t.attempt = %(attempt)s ELSE f.number <> %(final)s END)
ORDER BY f.turn, f.number LIMIT 4

-- delete_chunks --
DELETE FROM assistant_frames
WHERE org = %(org)s AND livemode = %(livemode)s AND conversation = %(conversation)s AND turn = %(number)s

-- delete_frames_of_conversation --
DELETE FROM assistant_frames WHERE org = %(org)s AND livemode = %(livemode)s AND conversation = %(conversation)s

-- delete_turns --
DELETE FROM assistant_turns WHERE org = %(org)s AND livemode = %(livemode)s AND conversation = %(conversation)s

-- list_entries --
SELECT day, person, allowance_micros, credit_micros FROM assistant_spend
WHERE org = %(org)s AND livemode = %(livemode)s AND day >= %(since)s ORDER BY day, person

-- add_spend --
INSERT INTO assistant_spend AS s (org, livemode, day, person, allowance_micros, credit_micros)
VALUES (%(org)s, %(livemode)s, %(day)s, %(person)s, %(allowance_micros)s, %(credit_micros)s)
ON CONFLICT (org, livemode, day, person) DO UPDATE
SET allowance_micros = s.allowance_micros + excluded.allowance_micros, credit_micros = s.credit_micros + excluded.credit_micros

-- list_usable --
SELECT {memory} FROM assistant_memories
WHERE org = %(org)s AND livemode = %(livemode)s AND (scope = 'org' OR created_by = %(person)s) AND expires_at > %(now)s ORDER BY id

-- page_visible --
SELECT {memory} FROM assistant_memories
WHERE org = %(org)s AND livemode = %(livemode)s AND (scope = 'org' OR created_by = %(person)s) AND expires_at > %(now)s
    AND scope = %(scope)s --? scope
    AND id < %(page_key)s --? after
    AND id > %(page_key)s --? before
ORDER BY id DESC LIMIT {limit} --? forwards
ORDER BY id ASC LIMIT {limit} --? backwards

-- count --
SELECT count(*) FROM assistant_memories
WHERE org = %(org)s AND livemode = %(livemode)s AND scope = %(scope)s AND (scope = 'org' OR created_by = %(person)s)
    AND expires_at > %(now)s

-- delete_scope --
DELETE FROM assistant_memories
WHERE org = %(org)s AND livemode = %(livemode)s AND scope = %(scope)s AND (scope = 'org' OR created_by = %(person)s)
RETURNING {memory}

-- count_ended_turns --
SELECT count(*) FILTER (WHERE t.has_failed), count(*) FROM here.assistant_turns AS t WHERE t.ended_at > %(since)s

-- list_orgs_with_old_conversations --
SELECT DISTINCT c.org FROM here.conversations AS c WHERE c.active_at < %(before)s

-- delete_conversations --
WITH old AS (
    DELETE FROM conversations WHERE org = ANY(%(orgs)s) AND active_at < %(before)s RETURNING org, livemode, id
)
DELETE FROM assistant_turns AS t USING old
WHERE t.org = ANY(%(orgs)s) AND t.org = old.org AND t.livemode = old.livemode AND t.conversation = old.id

-- list_orgs_with_old_frames --
SELECT DISTINCT f.org FROM here.assistant_frames AS f WHERE f.stored_at < %(before)s

-- delete_frames --
DELETE FROM assistant_frames WHERE org = ANY(%(orgs)s) AND stored_at < %(before)s

-- list_orgs_with_old_memories --
SELECT DISTINCT m.org FROM here.assistant_memories AS m WHERE m.expires_at < %(before)s

-- delete_memories --
DELETE FROM assistant_memories WHERE org = ANY(%(orgs)s) AND expires_at < %(before)s
