-- columns --
SELECT id, source, trigger, stream, status, created_at, stage, served_by, stats, error, waiting, problems, started_at,
       finished_at, snapshot, input, accept_shrink
FROM runs WHERE org = %(org)s AND livemode = %(livemode)s

-- add --
INSERT INTO runs (org, livemode, id, source, trigger, stream, status, stage, served_by, stats, error, waiting, problems,
    snapshot, input, accept_shrink, created_at, started_at, finished_at)
VALUES (%(org)s, %(livemode)s, %(id)s, %(source)s, %(trigger)s, %(stream)s, %(status)s, %(stage)s, %(served_by)s, %(stats)s,
    %(error)s, %(waiting)s, %(problems)s, %(snapshot)s, %(input)s, %(accept_shrink)s, %(created_at)s, %(started_at)s,
    %(finished_at)s)

-- save --
UPDATE runs SET status = %(status)s, stream = %(stream)s, stage = %(stage)s, served_by = %(served_by)s, stats = %(stats)s, error = %(error)s,
    waiting = %(waiting)s, problems = %(problems)s, snapshot = %(snapshot)s, input = %(input)s,
    accept_shrink = %(accept_shrink)s, started_at = %(started_at)s, finished_at = %(finished_at)s
WHERE org = %(org)s AND livemode = %(livemode)s AND id = %(id)s
