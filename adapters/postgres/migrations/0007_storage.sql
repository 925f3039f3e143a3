-- What is stored beside the rows: a ledger of objects and pushed parts, and what of it counts for each organisation and mode.

CREATE TABLE storage_usage (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    bytes bigint NOT NULL CHECK (bytes >= 0),
    PRIMARY KEY (org, livemode)
) WITH (fillfactor = 50);

CREATE TABLE stored_objects (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    key text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    bytes bigint NOT NULL CHECK (bytes >= 0),
    content text COLLATE "C",
    run text COLLATE "C",
    free_after timestamptz NOT NULL,
    freed boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (org, livemode, key)
) WITH (fillfactor = 70);
CREATE UNIQUE INDEX stored_objects_content ON stored_objects (org, livemode, content)
    WHERE content IS NOT NULL AND NOT freed;
CREATE INDEX stored_objects_due ON stored_objects (kind, free_after) WHERE NOT freed;
CREATE INDEX stored_objects_oldest ON stored_objects (org, livemode, free_after, key) WHERE content IS NOT NULL AND NOT freed;
CREATE INDEX stored_objects_freed ON stored_objects (key) WHERE freed;

-- Parts count by their own size, until the snapshot takes their place or they are dropped.
ALTER TABLE push_parts ADD COLUMN counted boolean NOT NULL DEFAULT true;

SELECT protect_tenant_table('storage_usage');
SELECT protect_tenant_table('stored_objects');

-- Which runs need a snapshot; and which batch of a name is the newest.
CREATE INDEX runs_snapshot ON runs (org, livemode, snapshot COLLATE "C") WHERE snapshot IS NOT NULL;
CREATE INDEX runs_batch ON runs (org, livemode, source, (input ->> 'batch'), id) WHERE input ->> 'batch' IS NOT NULL;

UPDATE plans SET meters = meters || jsonb_build_object('stored_bytes', jsonb_build_object('included', CASE
    WHEN tier = 'max' THEN 10995116277760 WHEN tier = 'high' THEN 1099511627776
    WHEN code = 'free' THEN 10737418240 ELSE 107374182400 END, 'per', 1073741824, 'amount', 0))
WHERE NOT meters ? 'stored_bytes';

-- What lies there already. Row-level security binds a table's owner as well, unless it is a superuser.
SELECT set_config('joinery.org', '*', true);
INSERT INTO stored_objects (org, livemode, key, kind, bytes, content, free_after, created_at)
SELECT org, livemode, snapshot, 'snapshot', max(coalesce((stats ->> 'bytes')::bigint, 0)),
       nullif(split_part(snapshot, '/', 4), ''), max(created_at) + interval '7 days', min(created_at)
FROM runs WHERE snapshot IS NOT NULL GROUP BY org, livemode, snapshot
ON CONFLICT DO NOTHING;
INSERT INTO stored_objects (org, livemode, key, kind, bytes, run, free_after, created_at)
SELECT org, livemode, key, 'upload', bytes, run, expires_at + interval '1 hour', created_at
FROM uploads
ON CONFLICT DO NOTHING;
INSERT INTO stored_objects (org, livemode, key, kind, bytes, run, free_after, created_at)
SELECT org, livemode, 'pushes/' || org || CASE WHEN livemode THEN '/live/' ELSE '/test/' END || id, 'push', 0, id,
       now() + interval '24 hours', created_at
FROM runs WHERE input ->> 'batch' IS NOT NULL AND status = 'queued'
ON CONFLICT DO NOTHING;
INSERT INTO storage_usage (org, livemode, bytes)
SELECT org, livemode, sum(bytes) FROM (
    SELECT org, livemode, bytes FROM stored_objects
    UNION ALL SELECT org, livemode, octet_length(records) + 1 FROM push_parts
) counted GROUP BY org, livemode;
SELECT set_config('joinery.org', '', true);
