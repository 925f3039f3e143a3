-- Only a vendor's own source is first-party: take that from sources of retailers, which earlier releases let set it. A job of each
-- source shows its merged products anew (domain/matching/usecases/ranking.py).

INSERT INTO jobs (org, livemode, id, kind, lane, args, run_at, created_at)
SELECT s.org, s.livemode, 'job_' || substr(s.id, 5), 'matching.rank', 'match',
    jsonb_build_object('source', s.id, 'first_party', true, 'licence_basis', s.licence_basis), now(), now()
FROM sources s JOIN organisations o ON o.id = s.org
WHERE s.first_party AND o.kind <> 'vendor';

UPDATE sources s SET first_party = false, version = s.version + 1, updated_at = now()
FROM organisations o
WHERE o.id = s.org AND o.kind <> 'vendor' AND s.first_party;
