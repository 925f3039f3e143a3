-- list --
SELECT id, source, trigger, stream, status, created_at, stage, served_by, stats, error, waiting, problems, started_at,
    finished_at, snapshot, input, fetched, checkpoint, waits, accept_shrink
FROM runs WHERE org = %(org)s AND livemode = %(livemode)s
    AND id = %(id)s --? id
    AND source = %(source)s --? source
    AND stream = %(stream)s --? stream
    AND status = ANY(%(statuses)s) --? statuses
    AND snapshot IS NOT NULL --? snapshot
    AND id < %(page_key)s --? after
    AND id > %(page_key)s --? before
ORDER BY id DESC LIMIT {limit} --? forwards
ORDER BY id ASC LIMIT {limit} --? backwards

-- add --
INSERT INTO runs (org, livemode, id, source, trigger, stream, status, stage, served_by, stats, error, waiting, problems,
    snapshot, input, fetched, checkpoint, waits, accept_shrink, created_at, started_at, finished_at)
VALUES (%(org)s, %(livemode)s, %(id)s, %(source)s, %(trigger)s, %(stream)s, %(status)s, %(stage)s, %(served_by)s,
    %(stats)s, %(error)s, %(waiting)s, %(problems)s, %(snapshot)s, %(input)s, %(fetched)s, %(checkpoint)s, %(waits)s,
    %(accept_shrink)s, %(created_at)s, %(started_at)s, %(finished_at)s)

-- save --
UPDATE runs SET status = %(status)s, stream = %(stream)s, stage = %(stage)s, served_by = %(served_by)s,
    stats = %(stats)s, error = %(error)s, waiting = %(waiting)s, problems = %(problems)s, snapshot = %(snapshot)s,
    input = %(input)s, fetched = %(fetched)s, checkpoint = %(checkpoint)s, waits = %(waits)s,
    accept_shrink = %(accept_shrink)s, started_at = %(started_at)s, finished_at = %(finished_at)s
WHERE org = %(org)s AND livemode = %(livemode)s AND id = %(id)s
